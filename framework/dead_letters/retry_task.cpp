#include "dead_letters/retry_task.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/backoff.hpp"
#include "kafka/fetch_one.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{1000};
constexpr milliseconds kRetryInitial{1000};
constexpr milliseconds kRetryMax{30000};
/// How soon a stop is noticed.
constexpr milliseconds kLook{50};
/// Of one partition, before the others are asked for again.
constexpr std::int64_t kLettersAtOnce = 100;

}  // namespace

RetryTask::RetryTask(Context& context)
    : context_(context),
      frame_(quiet_frame()),
      policies_{context.options.failures, {}},
      letters_(context.options.postgres.schema, context.registration.consumer),
      view_(context.options.postgres.schema, context.registration.consumer),
      source_([this]() -> kafka::Client& {
        if (!reader_)
          reader_ = kafka::client_of_one_message(context_.options.kafka);
        return *reader_;
      }) {
  for (const auto& binding : context.router.bindings())
    policies_.by_handler[binding->label] = &binding->failures;
  thread_ = std::thread([this] { run(); });
}

RetryTask::~RetryTask() {
  if (!bell_.stopping())
    stop(Clock::now(), false);
  thread_.join();
}

FrameContext RetryTask::quiet_frame() const {
  const auto& frame = context_.frame;
  return {frame.options,        frame.router,         nobody_,          frame.keys,
          frame.skips,          frame.dead_letters,   frame.batch_keys, frame.letter_stored,
          frame.outbox_written, frame.owner,          frame.leases,     frame.lease_keeper,
          frame.schema,         frame.remote_services};
}

void RetryTask::run() {
  look_for_letters();
  end_retriers();
  if (bell_.stopping() && bell_.finish())
    (void)try_retrying(context_.observers, [this] { return tell_waiting(); });
  session_.reset();
}

/// Until the end, or until it is idle.
void RetryTask::look_for_letters() {
  Backoff backoff(kRetryInitial, kRetryMax);
  auto wait = milliseconds{0};
  while (true) {
    bell_.wait(wait, wait);
    if (bell_.stopping())
      return;
    if (try_retrying(context_.observers, [this] { return pass(); })) {
      backoff.reset();
      wait = kInterval;
      if (idle_)
        return;
    } else {
      session_.reset();
      wait = backoff.next();
    }
  }
}

bool RetryTask::pass() {
  if (!connect())
    return false;
  while (!bell_.stopping()) {
    const auto due = letters_.due(*session_, kLettersAtOnce);
    if (due.empty()) {
      end_reader();
      idle_ = queue_.size() == 0 && !policies_.any() && !letters_.any(*session_);
      return true;
    }
    // All of them are being retried, or wait for one of their key.
    if (queue_.offer(due) == 0)
      return true;
    while (retriers_.size() <
           std::min<std::size_t>(context_.options.consumer.concurrency, queue_.size()))
      add_retrier();
    while (!queue_.wait_until_taken(kLook) && !bell_.stopping()) {
    }
  }
  return true;
}

void RetryTask::end_reader() {
  const std::scoped_lock lock(source_mutex_);
  reader_.reset();
}

void RetryTask::add_retrier() {
  retriers_.emplace_back([this] {
    Retrier(
        context_, frame_, policies_,
        [this](const ledger::DeadLetter& letter) {
          const std::scoped_lock lock(source_mutex_);
          return source_(letter);
        },
        queue_)
        .run();
  });
}

void RetryTask::end_retriers() {
  queue_.end();
  for (auto& retrier : retriers_)
    retrier.join();
  retriers_.clear();
}

/// A drain does not wait for them.
bool RetryTask::tell_waiting() {
  if (!connect())
    return false;
  std::int64_t letters = 0;
  for (const auto& count : view_.counts(*session_, {}))
    letters += count.retried;
  if (letters > 0) {
    warn_of_retries(context_.observers,
                    fmt::format("{} scheduled retries are left for the next `run`", letters));
  }
  return true;
}

bool RetryTask::connect() {
  if (!session_ || !session_->alive())
    session_ = connect_for_retries(context_);
  return session_ != nullptr;
}

}  // namespace pawl::engine
