#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "dead_letters/store/changes.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/failure.hpp"
#include "engine/frame_context.hpp"
#include "engine/message_processor.hpp"
#include "kafka/record.hpp"
#include "ledger/consumers.hpp"
#include "ledger/offset_register.hpp"
#include "pawl/handler.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// What became of one dead letter that was to be replayed.
struct ReplayResult {
  enum class Kind {
    kApplied,     ///< its effects are stored, once
    kDuplicate,   ///< its idempotency key was processed meanwhile; nothing to do any more
    kWaits,       ///< an earlier letter of its record key is unresolved
    kPending,     ///< another attempt has its idempotency key just now
    kResolved,    ///< somebody else has resolved it
    kFailed,      ///< as before; it stays dead
    kBreaks,      ///< its handler breaks the connection, again and again
    kUnreadable,  ///< its bytes are neither stored nor in Kafka any more, or its headers are
                  ///< unknown
    kNotRead      ///< its bytes are not stored, and Kafka did not say whether it has them
  };
  Kind kind = Kind::kApplied;
  std::string why;       ///< of all but the first two; no row values
  Failure failure = {};  ///< of kFailed
};

/// Takes dead letters through the frame of their handler, one at a time: claim, handler,
/// resolution, COMMIT. Killed at any point, or run twice at once, each letter takes effect once.
/// One thread.
class Replay {
 public:
  /// `fetch`: gives the message of a letter whose bytes are not all stored, or nullopt where Kafka
  /// does not have it; throws kafka::KafkaError where that is not known. May be empty.
  using Fetch = std::function<std::optional<kafka::Record>(const ledger::DeadLetter&)>;

  /// How often one() waits for a lock, each time for up to postgres.lock_timeout, until it fails.
  enum class LockWaits { kOne, kSeveral };

  Replay(const FrameContext& context, const Registry& registry, ledger::Registration registration,
         Fetch fetch, LockWaits lock_waits);

  /// Throws FatalError when PostgreSQL cannot be used.
  ReplayResult one(const ledger::DeadLetter& letter);

  /// It has called, and could not store the outcome yet: the same letter goes on with that.
  [[nodiscard]] bool has_call() const { return processor_.has_call(); }

  /// Who would get it, nullptr: none of the handlers; or why its message cannot be had. Behind
  /// that one() does not ask Kafka for the message.
  std::variant<const handlers::Binding*, ReplayResult> handler_of(const ledger::DeadLetter& letter);

 private:
  using UseMessage = std::function<ReplayResult(const Message&)>;

  postgres::Session& session();
  [[nodiscard]] bool may_go_on();
  ReplayResult with_message(const ledger::DeadLetter& letter, const UseMessage& use);
  void forget();
  ledger::SourceId source_of(postgres::Session& connection, const std::string& topic);
  std::unique_ptr<postgres::Session> connect() const;
  std::optional<ReplayResult> waits(const ledger::DeadLetter& letter,
                                    postgres::Session& connection);
  ReplayResult apply(const ledger::DeadLetter& letter, const Message& message);

  const FrameContext& context_;
  const Registry& registry_;
  const ledger::Registration registration_;
  ledger::DeadLetterChanges letters_;
  ledger::OffsetRegister topics_;
  Fetch fetch_;
  const LockWaits lock_waits_;
  /// The last one that Kafka had, and of which letter: whoever asks for its handler replays it
  /// next.
  std::optional<kafka::Record> fetched_;
  std::int64_t fetched_of_ = 0;
  MessageProcessor processor_;
  std::unique_ptr<postgres::Session> session_;
  std::map<std::string, ledger::SourceId> sources_;
};

}  // namespace pawl::engine
