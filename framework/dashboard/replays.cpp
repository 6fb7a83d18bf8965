#include "dashboard/replays.hpp"

#include <fmt/format.h>

#include "console/bad_call.hpp"
#include "console/connections.hpp"
#include "console/operator_change.hpp"
#include "dead_letters/operator_replay.hpp"
#include "kafka/error.hpp"
#include "ledger/history_view.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::dashboard {
namespace {

constexpr std::chrono::seconds kFarewell{3};

Outcome told(std::int64_t letter, const engine::ReplayResult& result) {
  using Kind = engine::ReplayResult::Kind;
  switch (result.kind) {
    case Kind::kApplied:
      return {true, fmt::format("Dead letter {} is replayed. Its changes are committed.", letter)};
    case Kind::kDuplicate:
      return {true, fmt::format("Dead letter {} is resolved: its idempotency key was already "
                                "processed, so nothing was applied.",
                                letter)};
    case Kind::kResolved:
      return {false, fmt::format("Another operator has resolved dead letter {}. Nothing was "
                                 "changed.",
                                 letter)};
    case Kind::kWaits:
    case Kind::kPending:
    case Kind::kUnreadable:
    case Kind::kNotRead:
      return {false, fmt::format("Dead letter {} was not replayed: {}.", letter, result.why)};
    case Kind::kFailed:
    case Kind::kBreaks:
      return {false, fmt::format("Dead letter {} has failed again: {}", letter, result.why)};
  }
  return {};
}

}  // namespace

Replays::~Replays() {
  if (thread_.joinable())
    thread_.join();
}

bool Replays::begin(std::int64_t letter, const std::string& reason, bool force) {
  std::unique_lock lock(mutex_);
  if (running_ || ending_)
    return false;
  // The one before has ended, and needs nothing more of the lock.
  if (thread_.joinable())
    thread_.join();
  running_ = letter;
  news_.clear();
  try {
    thread_ = start(letter, reason, force);
  } catch (const std::system_error&) {
    running_.reset();
    throw FatalError("this process cannot start another thread. Nothing was changed");
  }
  return true;
}

std::thread Replays::start(std::int64_t letter, const std::string& reason, bool force) {
  return std::thread([this, letter, reason, force] {
    auto result = replay(letter, reason, force);
    const std::scoped_lock ending(mutex_);
    ended_ = std::move(result);
    ended_of_ = letter;
    running_.reset();
    changed_.notify_all();
  });
}

std::string Replays::news() {
  const std::scoped_lock lock(mutex_);
  return news_;
}

std::optional<Outcome> Replays::wait(std::int64_t letter) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return running_ != letter; });
  if (running_ == letter || ended_of_ != letter)
    return std::nullopt;
  return ended_;
}

bool Replays::finish() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  return changed_.wait_for(lock, kFarewell, [&] { return !running_; });
}

Outcome Replays::replay(std::int64_t id, const std::string& reason, bool force) {
  try {
    const auto session = cli::connect_database(options_);
    const auto consumer = cli::require_consumer(*session, options_);
    const ledger::DeadLetterView view(options_.postgres.schema, consumer.id);
    ledger::DeadLetterFilter filter;
    filter.ids = {id};
    const auto found = view.list(*session, filter, 1, true);
    if (found.empty())
      return {false, fmt::format("Dead letter {} is already resolved. Nothing was changed.", id)};
    const auto& letter = found.front();
    cli::OperatorReplay replay(options_, registry_, *session, consumer,
                               [this](const std::string& text) {
                                 const std::scoped_lock lock(mutex_);
                                 news_ = text;
                               });
    if (!force) {
      if (const auto why = replay.beyond_keys(letter))
        return {false, fmt::format("Dead letter {} was not replayed: {}.", id, *why), true};
    }
    ledger::record_action(*session, options_.postgres.schema, consumer.id, letter.partition,
                          letter.offset, "dlq replay",
                          fmt::format("dead letter {}: {}", id, reason));
    return told(id, replay.replay(letter));
  } catch (const postgres::Error& error) {
    return {false, fmt::format("Dead letter {}: PostgreSQL: {}", id, error.what())};
  } catch (const postgres::InDoubt& error) {
    return {false, fmt::format("Dead letter {}: PostgreSQL: {}", id, error.what())};
  } catch (const kafka::KafkaError& error) {
    return {false, fmt::format("Dead letter {}: Kafka: {}", id, error.what())};
  } catch (const std::exception& error) {  // also of the configuration: the thread ends here
    return {false, fmt::format("Dead letter {} was not replayed: {}", id, error.what())};
  }
}

}  // namespace pawl::dashboard
