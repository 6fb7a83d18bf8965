#include <string>

#include "config/validation.hpp"

namespace pawl::config {

namespace {

using std::chrono::hours;

constexpr std::uint32_t kMostAttempts = 1000;
constexpr std::uint32_t kMostWorkers = 256;
constexpr milliseconds kShortestProgress{100};

}  // namespace

void validate_behaviour(const Options& options, Validation& validation) {
  validation.key_template("idempotency.key", options.idempotency.key);
  validation.scope("idempotency.scope", options.idempotency.scope);

  validation.range("failures.max_attempts", options.failures.max_attempts, 1, kMostAttempts);
  validation.backoff("failures", options.failures.retry_initial, options.failures.retry_max,
                     hours{24});
  validation.range("failures.program_error_retry", options.failures.program_error_retry,
                   milliseconds{10}, hours{24});

  validation.range("consumer.workers", options.consumer.workers, 1, kMostWorkers);
  validation.range("consumer.shutdown_timeout", options.consumer.shutdown_timeout,
                   milliseconds{100}, hours{1});

  validation.one_of("log.level", options.log.level, {"trace", "debug", "info", "warn", "error"});
  if (options.log.progress_interval != milliseconds{0}) {
    validation.range("log.progress_interval", options.log.progress_interval, kShortestProgress,
                     hours{24});
  }
}

}  // namespace pawl::config
