#include "dead_letters/operator_replay.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "console/connections.hpp"
#include "dead_letters/dlq.hpp"
#include "engine/backoff.hpp"
#include "engine/message_key.hpp"
#include "handlers/atomicity.hpp"
#include "ledger/register_view.hpp"
#include "pawl/errors.hpp"
#include "retention/store/retention.hpp"

namespace pawl::cli {
namespace {

/// For so long a replay waits for PostgreSQL once its call has ended.
constexpr std::chrono::minutes kStoringTime{1};

}  // namespace

OperatorReplay::OperatorReplay(const Options& options, const Registry& registry,
                               postgres::Session& session, const ledger::KnownConsumer& consumer,
                               std::function<void(const std::string&)> tell)
    : options_(options),
      router_(options, registry),
      session_(session),
      consumer_(consumer),
      context_(engine::frame_context(options_, router_, observers_, consumer_.id)),
      fetch_([this]() -> kafka::Client& {
        if (!client_)
          client_ = make_client(options_);
        return *client_;
      }),
      replay_(
          context_, registry,
          {consumer_.id, ledger::database_id(session, options.postgres.schema),
           consumer_.kafka_cluster_id},
          [this](const ledger::DeadLetter& letter) { return fetch_(letter); },
          engine::Replay::LockWaits::kSeveral),
      tell_(std::move(tell)) {
  handlers::require_atomicity(session_, router_, options_.handlers);
  context_.schema->confirm(session_);
}

std::optional<std::string> OperatorReplay::beyond_keys(const ledger::DeadLetter& letter) {
  const auto& topic = letter.partition.topic;
  auto known = pruned_to_.find(topic);
  if (known == pruned_to_.end()) {
    known = pruned_to_
                .emplace(topic,
                         ledger::pruned_to(session_, options_.postgres.schema, consumer_.id, topic))
                .first;
  }
  auto before = known->second;
  if (!before || letter.timestamp >= *before)
    return std::nullopt;
  // Its own handler may keep keys for longer than others of the topic.
  const auto found = replay_.handler_of(letter);
  const auto* const handler = std::get_if<const handlers::Binding*>(&found);
  if (handler != nullptr && *handler != nullptr) {
    std::string buffer;
    before =
        ledger::pruned_to(session_, options_.postgres.schema,
                          engine::scope_name(options_.kafka, (*handler)->scope, topic, buffer));
    if (!before || letter.timestamp >= *before)
      return std::nullopt;
  }
  return fmt::format(
      "its message is older than {}, and retention has removed older keys. If the same event was "
      "applied from another message, a replay applies it a second time. Check for its changes "
      "first",
      ledger::to_string(*before));
}

engine::ReplayResult OperatorReplay::replay(const ledger::DeadLetter& letter) {
  const auto until = std::chrono::steady_clock::now() + kStoringTime;
  engine::Backoff backoff(options_.postgres.retry_initial, options_.postgres.retry_max);
  bool told = false;
  while (true) {
    try {
      return replay_.one(letter);
    } catch (const FatalError& error) {
      if (!replay_.has_call() || std::chrono::steady_clock::now() >= until)
        throw;
      if (!std::exchange(told, true))
        tell_(fmt::format(
            "dead letter {} ({}): the call has returned, but its outcome is not recorded yet: {}",
            letter.id, place_of(letter), error.what()));
      std::this_thread::sleep_for(backoff.next());
    }
  }
}

}  // namespace pawl::cli
