#include "retention/task.hpp"

#include <fmt/format.h>

#include "config/units.hpp"
#include "engine/halt_texts.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {

using std::chrono::milliseconds;

namespace {

std::string failed_pass(const Options& options, const postgres::Error& error,
                        milliseconds interval) {
  return fmt::format("{}. Retrying in {}{}", error.what(), config::format_duration(interval),
                     rights_hint(options.invocation, error));
}

}  // namespace

RetentionTask::RetentionTask(Context& context) : context_(context), thread_([this] { run(); }) {}

RetentionTask::~RetentionTask() {
  bell_.stop(std::chrono::steady_clock::now(), false);
  thread_.join();
}

void RetentionTask::emit(Step step, const std::string& text) const {
  Event event{step};
  event.detail = text;
  context_.observers.emit(event);
}

void RetentionTask::warn_once(Warning warning, const std::string& about, const std::string& text,
                              std::string_view sqlstate) {
  auto& last = warned_[about];
  if (last != text)
    context_.observers.emit(warning_event(warning, text, sqlstate));
  last = text;
}

void RetentionTask::run() {
  const auto interval = context_.options.retention.interval;
  while (true) {
    bell_.wait(interval, interval);
    if (bell_.stopping())
      return;
    try {
      pass();
      warned_.erase("");
    } catch (const postgres::InDoubt&) {
      session_.reset();
    } catch (const postgres::Error& error) {
      // A lost connection is the workers' to tell; all else keeps rows that should go.
      if (error.failure() != postgres::FailureClass::kConnection)
        warn_once(Warning::kRetentionFailed, "", failed_pass(context_.options, error, interval),
                  error.sqlstate());
      session_.reset();
    } catch (const std::exception& error) {
      warn_once(Warning::kRetentionFailed, "", error.what());
      session_.reset();
    }
  }
}

void RetentionTask::pass() {
  const auto& options = context_.options;
  if (!session_ || !session_->alive()) {
    auto settings = pruning_settings(options);
    settings.by_index = true;
    settings.unwanted = bell_.stop_flag();
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
  RetentionPass pruning(options, context_.registration.consumer, context_.kafka, context_.owner,
                        [this](milliseconds time) {
                          bell_.wait(time, time);
                          return !bell_.stopping();
                        });
  tell(pruning.run(*session_, PassMode::kWhenDue));
}

void RetentionTask::tell(const RetentionReport& report) {
  if (report.keys + report.letters + report.skipped + report.discarded + report.losses > 0) {
    emit(Step::kRetentionPruned,
         fmt::format("removed {}{}", removed_text(report),
                     report.interrupted ? ". Retention continues later" : ""));
  }
  if (report.kafka_problem.empty()) {
    warned_.erase("Kafka");
  } else {
    warn_once(
        Warning::kRetentionLimited, "Kafka",
        fmt::format("Kafka does not report the ends of the logs, so every partition counts as "
                    "one with unprocessed messages: {}",
                    report.kafka_problem));
  }
  for (const auto& [scope, cutoff, kept, swept] : report.scopes) {
    if (!cutoff.unusable_time.empty())
      warn_once(Warning::kRetentionLimited, "time of " + cutoff.unusable_time,
                unusable_time_text(cutoff.unusable_time));
    // Held back for a moment is what the rule is for; by a whole retention, the table has doubled.
    const bool late =
        !cutoff.held_by.empty() && (!cutoff.keys || report.at - *cutoff.keys > 2 * kept);
    if (!late) {
      warned_.erase(scope.name);
      continue;
    }
    warn_once(
        Warning::kRetentionBlocked, scope.name,
        fmt::format("keys of scope {} are kept {}because of {}. Process its messages, or see "
                    "docs/retention.md",
                    scope.name,
                    cutoff.keys ? fmt::format("beyond {} ", config::format_duration(kept)) : "",
                    cutoff.held_by));
  }
}

}  // namespace pawl::engine
