#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/validation.hpp"

namespace pawl::config {

namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::uint32_t kMostAttempts = 1000;
constexpr std::uint32_t kMostCrashes = 100;
constexpr std::uint32_t kMostInARow = 1'000'000;
constexpr std::size_t kLargestPayload = std::size_t{512} << 20U;
constexpr std::uint32_t kMostWorkers = 256;
constexpr std::uint32_t kLongestPipeline = 1000;
constexpr std::uint32_t kLargestBatch = 10000;
constexpr std::size_t kLeastBatchBytes = std::size_t{1} << 10U;
constexpr std::size_t kMostBatchBytes = std::size_t{256} << 20U;
constexpr milliseconds kShortestProgress{100};
constexpr hours kLongestRetries{24 * 7};
constexpr hours kLongestRetention{24 * 3650};

/// NAMEDATALEN - 1: PostgreSQL refuses a longer channel.
constexpr std::size_t kLongestChannel = 63;

void validate_alerts(const AlertOptions& alerts, Validation& validation) {
  if (!alerts.command.empty() && !alerts.command.front().starts_with('/')) {
    validation.add("alerts.command[0]", in_quotes(alerts.command.front()), "not an absolute path",
                   "name the program by its whole path, such as \"/usr/local/bin/page\"");
  }
  for (std::size_t i = 0; i < alerts.command.size(); ++i) {
    if (alerts.command[i].find('\0') != std::string::npos) {
      validation.add(fmt::format("alerts.command[{}]", i), in_quotes(alerts.command[i]),
                     "holds a NUL character", "take it out");
    }
  }
  validation.range("alerts.timeout", alerts.timeout, milliseconds{100}, hours{1});
  validation.label("alerts.notify_channel", alerts.notify_channel, kLongestChannel);
  validation.range("alerts.min_interval", alerts.min_interval, milliseconds{0}, hours{24});
  validation.range("alerts.unreachable_after", alerts.unreachable_after, milliseconds{100},
                   hours{24});
}

}  // namespace

void validate_failures(const FailureOptions& failures, const std::string& option,
                       Validation& validation) {
  validation.range(option + ".retry_for", failures.retry_for, milliseconds{0}, kLongestRetries);
  validation.range(option + ".max_attempts", failures.max_attempts, 0, kMostAttempts);
  validation.range(option + ".max_crashes", failures.max_crashes, 1, kMostCrashes);
  validation.backoff(option, failures.retry_initial, failures.retry_max, hours{24});
  validation.range(option + ".program_error_retry", failures.program_error_retry, milliseconds{10},
                   hours{24});
  validation.range(option + ".breaker", failures.breaker, 0, kMostInARow);
}

namespace {

void validate_dead_letters(const Options& options, Validation& validation) {
  const auto& letters = options.dead_letters;
  validation.size_range("dead_letters.max_payload", letters.max_payload, 0, kLargestPayload);
  const std::string option = "dead_letters.topic";
  if (letters.topic.empty() || !validation.topic(option, letters.topic))
    return;
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const auto& topics = options.handlers[i].topics;
    if (std::find(topics.begin(), topics.end(), letters.topic) == topics.end())
      continue;
    // Letters that fail again would feed themselves.
    validation.add(
        option, in_quotes(letters.topic), fmt::format("handler[{}] consumes this topic", i),
        "name one that no handler of this consumer has", fmt::format("handler[{}].topics", i));
    return;
  }
}

void validate_retention(const RetentionOptions& retention, Validation& validation) {
  const auto range = [&](const char* name, milliseconds value, milliseconds least,
                         milliseconds most) {
    // Zero turns it off.
    if (value != milliseconds{0})
      validation.range(fmt::format("retention.{}", name), value, least, most);
  };
  range("keys", retention.keys, std::chrono::seconds{1}, kLongestRetention);
  range("dead_letters", retention.dead_letters, std::chrono::seconds{1}, kLongestRetention);
  range("skipped", retention.skipped, std::chrono::seconds{1}, kLongestRetention);
  range("interval", retention.interval, milliseconds{100}, hours{24});
  validation.range("retention.load", retention.load, 1, 100);
}

void validate_batch(const BatchOptions& batch, Validation& validation) {
  validation.range("batch.max_messages", batch.max_messages, 1, kLargestBatch);
  validation.size_range("batch.max_bytes", batch.max_bytes, kLeastBatchBytes, kMostBatchBytes);
  validation.range("batch.linger", batch.linger, milliseconds{0}, std::chrono::minutes{1});
}

}  // namespace

void validate_behaviour(const Options& options, Validation& validation) {
  validation.key_template("idempotency.key", options.idempotency.key);
  validation.scope("idempotency.scope", options.idempotency.scope);

  validate_failures(options.failures, "failures", validation);
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    // What a handler inherits is wrong once, in [failures].
    if (options.handlers[i].failures != options.failures)
      validate_failures(options.handlers[i].failures, fmt::format("handler[{}]", i), validation);
  }
  validate_dead_letters(options, validation);

  for (std::size_t i = 0; i < options.audit.checks.size(); ++i)
    validation.query(fmt::format("audit.sql[{}]", i), options.audit.checks[i].text);
  validation.range("audit.timeout", options.audit.timeout, milliseconds{1}, hours{24});
  validate_retention(options.retention, validation);

  validation.range("consumer.workers", options.consumer.workers, 1, kMostWorkers);
  validation.range("consumer.pipeline", options.consumer.pipeline, 1, kLongestPipeline);
  validation.range("consumer.durability_interval", options.consumer.durability_interval,
                   milliseconds{10}, minutes{1});
  if (options.consumer.durability == Durability::kReplayable &&
      !options.postgres.synchronous_commit.empty()) {
    validation.add("consumer.durability", "\"replayable\"",
                   "it sets synchronous_commit, which postgres.synchronous_commit sets to \"" +
                       options.postgres.synchronous_commit + "\"",
                   "leave one of them out");
  }
  validation.range("consumer.shutdown_timeout", options.consumer.shutdown_timeout,
                   milliseconds{100}, hours{1});

  validate_batch(options.batch, validation);

  validation.one_of("log.level", options.log.level, {"trace", "debug", "info", "warn", "error"});
  if (options.log.progress_interval != milliseconds{0}) {
    validation.range("log.progress_interval", options.log.progress_interval, kShortestProgress,
                     hours{24});
  }
  validate_alerts(options.alerts, validation);
}

}  // namespace pawl::config
