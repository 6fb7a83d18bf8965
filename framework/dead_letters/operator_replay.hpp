#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dead_letters/letter_source.hpp"
#include "dead_letters/replay.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/observers.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "ledger/instant.hpp"
#include "ledger/register_view.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// Replays letters one by one at an operator's word, by the handlers of the configuration. The
/// options, the registry and the session outlive it. `tell` is called with what a person should
/// know while a replay takes its time. One thread.
class OperatorReplay {
 public:
  OperatorReplay(const Options& options, const Registry& registry, postgres::Session& session,
                 const ledger::KnownConsumer& consumer,
                 std::function<void(const std::string&)> tell);
  OperatorReplay(const OperatorReplay&) = delete;
  OperatorReplay& operator=(const OperatorReplay&) = delete;

  /// Why the letter's key, if it was processed once, may be gone, so that a replay might apply the
  /// event a second time; nullopt: it is not.
  std::optional<std::string> beyond_keys(const ledger::DeadLetter& letter);

  /// Throws FatalError when PostgreSQL cannot be used. What a call has brought is not to be lost
  /// with a connection: that is stored for up to a minute.
  engine::ReplayResult replay(const ledger::DeadLetter& letter);

 private:
  const Options& options_;
  handlers::Router router_;
  engine::Observers observers_{{}};
  postgres::Session& session_;
  ledger::KnownConsumer consumer_;
  engine::FrameContext context_;
  std::unique_ptr<kafka::Client> client_;
  engine::LetterSource fetch_;
  engine::Replay replay_;
  const std::function<void(const std::string&)> tell_;
  std::map<std::string, std::optional<ledger::Instant>> pruned_to_;  ///< by topic
};

}  // namespace pawl::cli
