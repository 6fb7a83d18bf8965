#include "ops/alerts_notify.hpp"

#include <algorithm>
#include <utility>

namespace pawl::ops {
namespace {

using std::chrono::milliseconds;

/// Alerts wait for each other: none may wait long for a database that does not answer.
constexpr milliseconds kPatience{2000};

postgres::SessionSettings settings_of(const Options& options, const std::atomic<bool>& unwanted) {
  auto settings = postgres::settings_of(options.postgres);
  settings.application_name = "pawl alerts";
  settings.connect_timeout = std::min(options.postgres.connect_timeout, kPatience);
  settings.statement_timeout = kPatience;
  settings.lock_timeout = kPatience;
  settings.unwanted = &unwanted;
  return settings;
}

}  // namespace

AlertNotify::AlertNotify(const Options& options)
    : channel_(options.alerts.notify_channel), settings_(settings_of(options, interrupted_)) {}

std::string AlertNotify::send(const std::string& payload) {
  static const postgres::Statement notify{"", "SELECT pg_notify($1, $2)"};
  postgres::Parameters parameters;
  parameters.add_text(channel_);
  parameters.add_text(payload);
  std::string problem;
  // What an old connection cannot take any more, a new one may.
  for (const bool last : {false, true}) {
    try {
      const bool kept = session_ != nullptr;
      if (!kept) {
        auto fresh = std::make_unique<postgres::Session>(settings_);
        const std::scoped_lock lock(mutex_);
        session_ = std::move(fresh);
      }
      session_->exec(notify, parameters);
      return {};
    } catch (const postgres::Error& error) {
      problem = error.what();
    } catch (const postgres::InDoubt& error) {
      problem = error.what();
    }
    const std::scoped_lock lock(mutex_);
    if (std::exchange(session_, nullptr) == nullptr || last)
      break;
  }
  return problem;
}

void AlertNotify::interrupt() {
  interrupted_ = true;
  const std::scoped_lock lock(mutex_);
  if (session_)
    session_->interrupt();
}

}  // namespace pawl::ops
