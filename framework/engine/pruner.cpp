#include "engine/pruner.hpp"

#include <fmt/format.h>

#include "config/units.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {

using std::chrono::milliseconds;

namespace {

std::string failed_pass(const postgres::Error& error, milliseconds interval) {
  return fmt::format("retention: nothing is removed for now: {} (SQLSTATE {}); {}again in {}",
                     error.what(), error.sqlstate(),
                     error.failure() == postgres::FailureClass::kProgram
                         ? "`check` names missing rights; tried "
                         : "tried ",
                     config::format_duration(interval));
}

}  // namespace

Pruner::Pruner(Context& context) : context_(context), thread_([this] { run(); }) {}

Pruner::~Pruner() {
  stop();
  thread_.join();
}

void Pruner::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
}

bool Pruner::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_.load(); });
}

void Pruner::emit(Step step, const std::string& text) const {
  Event event{step};
  event.detail = text;
  context_.observers.emit(event);
}

void Pruner::warn_once(const std::string& about, const std::string& text) {
  auto& last = warned_[about];
  if (last != text)
    emit(Step::kWarning, text);
  last = text;
}

void Pruner::run() {
  while (pause(context_.options.retention.interval)) {
    try {
      pass();
      warned_.erase("");
    } catch (const postgres::InDoubt&) {
      session_.reset();
    } catch (const postgres::Error& error) {
      // A lost connection is the workers' to tell; all else keeps rows that should go.
      if (error.failure() != postgres::FailureClass::kConnection)
        warn_once("", failed_pass(error, context_.options.retention.interval));
      session_.reset();
    } catch (const std::exception& error) {
      warn_once("", fmt::format("retention: {}", error.what()));
      session_.reset();
    }
  }
}

void Pruner::pass() {
  const auto& options = context_.options;
  if (!session_ || !session_->alive()) {
    auto settings = pruning_settings(options);
    settings.unwanted = &stopping_;
    session_ = std::make_unique<postgres::Session>(settings);
    // It is wanted until it has let go of the lease.
    session_->established();
    if (!ledger::still_registered(*session_, options.postgres.schema, options.kafka.cluster,
                                  options.kafka.group, context_.registration)) {
      // Another database than the one we began with; the workers deal with that.
      session_.reset();
      return;
    }
  }
  Pruning pruning(options, context_.registration.consumer, context_.kafka, context_.owner,
                  [this](milliseconds time) { return pause(time); });
  tell(pruning.run(*session_, PruneMode::kWhenDue));
}

void Pruner::tell(const PruningReport& report) {
  if (report.keys + report.letters + report.skipped > 0) {
    emit(
        Step::kPruned,
        fmt::format("retention removed {} keys, {} resolved dead letters and {} records of skipped "
                    "messages{}",
                    report.keys, report.letters, report.skipped,
                    report.interrupted ? ", and goes on later" : ""));
  }
  const auto& retention = context_.options.retention;
  if (report.kafka_problem.empty()) {
    warned_.erase("Kafka");
  } else {
    warn_once("Kafka", fmt::format("retention: Kafka does not tell the logs' ends, so every "
                                   "partition counts as one with messages left: {}",
                                   report.kafka_problem));
  }
  for (const auto& [scope, cutoff, swept] : report.scopes) {
    if (!cutoff.unusable_time.empty())
      warn_once("time of " + cutoff.unusable_time, unusable_time_text(cutoff.unusable_time));
    // Held back for a moment is what the rule is for; by a whole retention, the table has doubled.
    const bool late =
        !cutoff.held_by.empty() && (!cutoff.keys || report.at - *cutoff.keys > 2 * retention.keys);
    if (!late) {
      warned_.erase(scope.name);
      continue;
    }
    warn_once(
        scope.name,
        fmt::format(
            "retention: keys of scope {} stay {}because of {}; process it, or see "
            "docs/retention.md",
            scope.name,
            cutoff.keys ? fmt::format("beyond {} ", config::format_duration(retention.keys)) : "",
            cutoff.held_by));
  }
}

}  // namespace pawl::engine
