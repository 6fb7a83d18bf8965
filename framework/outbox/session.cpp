#include "outbox/session.hpp"

#include <algorithm>

#include "engine/context.hpp"

namespace pawl::engine {

postgres::SessionSettings outbox_session(const Options& options, const Bell& bell) {
  auto settings = session_settings(options);
  settings.application_name = "pawl outbox";
  settings.by_index = true;
  settings.unwanted = bell.stop_flag();
  return settings;
}

postgres::SessionSettings outbox_session(const Options& options, const Bell& bell,
                                         std::chrono::milliseconds longest_lock,
                                         std::chrono::milliseconds statement) {
  auto settings = outbox_session(options, bell);
  settings.lock_timeout = std::min(settings.lock_timeout, longest_lock);
  settings.statement_timeout = statement;
  return settings;
}

}  // namespace pawl::engine
