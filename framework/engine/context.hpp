#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/breaker.hpp"
#include "engine/commit_metadata.hpp"
#include "engine/fetch_turn.hpp"
#include "engine/frame_context.hpp"
#include "engine/lock_waits.hpp"
#include "engine/observers.hpp"
#include "engine/partition_status.hpp"
#include "engine/passes.hpp"
#include "engine/presence.hpp"
#include "engine/previous_owners.hpp"
#include "engine/reachability.hpp"
#include "engine/requests.hpp"
#include "engine/run_gate.hpp"
#include "engine/topic_directory.hpp"
#include "engine/tried_halts.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "kafka/membership.hpp"
#include "ledger/consumers.hpp"
#include "ledger/offset_register.hpp"
#include "ledger/suspects.hpp"
#include "ledger/topic_patterns.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

class Hands;

/// What all threads of one consumer share. Made by the supervisor before the workers start and
/// outlives them; everything in it is immutable or thread-safe. Wide on purpose: each part of the
/// engine names the members that it uses, and passing them on one by one would say no more.
struct Context {
  const Options& options;
  const Registry& registry;
  const handlers::Router& router;
  const Observers& observers;
  kafka::Client& kafka;
  Reachability& database_reachable;
  Reachability& kafka_reachable;
  ledger::Registration registration;
  ledger::OffsetRegister offsets;
  ledger::Suspects suspects;
  FrameContext frame;
  TopicDirectory directory;
  StatusBoard& board;
  /// This process in the register: host, process id and a random part.
  std::string owner;
  kafka::Membership* membership = nullptr;
  /// The longest timeout of any handler.
  std::chrono::milliseconds longest_handler{30000};
  /// What a batch may take: a revocation waits for it, and a statement's limit is not to be
  /// reached.
  std::chrono::milliseconds longest_batch{1000};
  Requests requests = {};
  Breaker breaker = {};
  Passes passes = {};
  LockWaits lock_waits = {};
  TriedHalts tried_halts = {};
  RunGate gate = {};
  FetchTurn fetch_turn = {};
  PreviousOwners previous_owners = {};
  /// What the patterns among the topics meant at first.
  ledger::FirstTopics first_topics = {};
  /// Made by the supervisor; runs what goes side by side.
  Hands* hands = nullptr;
  /// Null in tests that apply messages by hand.
  std::unique_ptr<Presence> presence = {};

  /// A message of the handler was applied.
  void applied(const std::string& handler) {
    breaker.applied(handler);
    passes.applied(handler);
  }

  /// A pattern means the topic, and it is there only since the consumer met that pattern.
  [[nodiscard]] bool came_later(const std::string& topic) const {
    return ledger::came_later(first_topics, std::string(router.entry_of(topic)), topic);
  }

  [[nodiscard]] std::string commit_metadata() const {
    return engine::commit_metadata(registration.database_id);
  }
};

/// The session settings of a worker.
[[nodiscard]] postgres::SessionSettings session_settings(const Options& options);

}  // namespace pawl::engine
