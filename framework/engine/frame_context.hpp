#pragma once

#include <memory>
#include <string>
#include <utility>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/bell.hpp"
#include "engine/lease_keeper.hpp"
#include "engine/make_leases.hpp"
#include "engine/observers.hpp"
#include "engine/owner.hpp"
#include "engine/remote_services.hpp"
#include "handlers/router.hpp"
#include "leases/store/key_leases.hpp"
#include "ledger/batch_keys.hpp"
#include "ledger/idempotency_keys.hpp"
#include "ledger/skipped_messages.hpp"
#include "pawl/options.hpp"
#include "postgres/schema_version.hpp"

namespace pawl::engine {

/// What a message needs on its way through the frame, whether it comes from Kafka or is replayed.
struct FrameContext {
  const Options& options;
  const handlers::Router& router;
  const Observers& observers;
  ledger::IdempotencyKeys keys;
  ledger::SkippedMessages skips;
  ledger::DeadLetters dead_letters;
  ledger::BatchKeys batch_keys;
  /// Rung when a letter was stored, for whoever feeds them to somebody.
  std::shared_ptr<Bell> letter_stored = std::make_shared<Bell>();
  /// Rung when a transaction that publishes was committed, for whoever brings it into Kafka.
  std::shared_ptr<Bell> outbox_written = std::make_shared<Bell>();
  std::string owner;  ///< this process in the database
  /// Of the calls that leased handlers make in this process.
  std::shared_ptr<const ledger::KeyLeases> leases = make_leases(options);
  std::shared_ptr<LeaseKeeper> lease_keeper =
      std::make_shared<LeaseKeeper>(options, observers, leases, owner);
  /// Of all sessions that run handlers.
  std::shared_ptr<postgres::SchemaVersion> schema = std::make_shared<postgres::SchemaVersion>();
  /// Null: messages do not wait for a remote service, as where an operator is at it.
  std::shared_ptr<RemoteServices> remote_services = {};
};

/// Of a consumer's messages. What it refers to must outlive it.
[[nodiscard]] inline FrameContext frame_context(const Options& options,
                                                const handlers::Router& router,
                                                const Observers& observers,
                                                ledger::ConsumerId consumer,
                                                std::string owner = make_owner()) {
  const auto& schema = options.postgres.schema;
  return {options,
          router,
          observers,
          ledger::IdempotencyKeys(schema),
          ledger::SkippedMessages(schema, consumer),
          ledger::DeadLetters(schema, consumer, options.dead_letters),
          ledger::BatchKeys(schema),
          std::make_shared<Bell>(),
          std::make_shared<Bell>(),
          std::move(owner)};
}

}  // namespace pawl::engine
