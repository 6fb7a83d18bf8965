#include "dashboard/actions.hpp"

#include <fmt/format.h>

#include "console/operator_change.hpp"
#include "console/partition_changes.hpp"
#include "console/partition_view.hpp"
#include "dashboard/queries.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/changes.hpp"
#include "ledger/rows.hpp"

namespace pawl::dashboard {

std::string history_reason(const std::string& actor, const std::string& reason) {
  return fmt::format("by {} (dashboard): {}", actor, reason);
}

Outcome act_on_partition(postgres::Session& session, const Options& options, const Fields& form,
                         const std::string& reason) {
  using ledger::PartitionState;
  cli::PartitionArguments arguments;
  arguments.topic = field(form, "topic");
  arguments.partition = partition_field(form, "partition");
  if (!arguments.partition || arguments.topic.empty())
    return {false, "The form does not name a partition. Nothing was changed."};
  const auto consumer = cli::require_consumer(session, options);
  const auto row = cli::choose_rows(session, options, consumer, arguments).front();
  const auto name = cli::name_of(row.partition);
  const auto action = field(form, "do");
  if (field(form, "seen") != fmt::format("{}@{}", ledger::to_string(row.state), row.state_since)) {
    return {false,
            fmt::format("{} has changed: it is {} since {}, and was {} when the page was opened. "
                        "Nothing was changed.",
                        name, ledger::to_string(row.state), row.state_since, field(form, "seen"))};
  }
  if (action == "resume" || action == "pause") {
    const auto state = action == "pause" ? PartitionState::kPaused : PartitionState::kRunning;
    switch (cli::set_partition_state(session, options, consumer, row, state, reason)) {
      case cli::StateChange::kDone:
        return {true, cli::stored_state_text(row, state) + "."};
      case cli::StateChange::kWasSo:
        return {false, fmt::format("{} is already {}. Nothing was changed.", name,
                                   ledger::to_string(state))};
      case cli::StateChange::kChangedMeanwhile:
        return {false, fmt::format("{} is no longer {} as it was when the page was opened. Nothing "
                                   "was changed.",
                                   name, ledger::to_string(row.state))};
    }
  }
  if (action == "skip") {
    const auto offset = number_field(form, "offset");
    if (!offset || row.halt.message_offset != offset) {
      return {false, fmt::format("{} is no longer halted at the message that the page showed. "
                                 "Nothing was changed.",
                                 name)};
    }
    const auto kept = cli::skip_message(session, options, consumer, row, *offset, reason);
    return {true,
            fmt::format("{}@{} is skipped. {} in pawl.skipped_messages.", name, *offset, kept)};
  }
  return {false, "The form does not name an action on a partition. Nothing was changed."};
}

Outcome act_on_letter(postgres::Session& session, const Options& options, Replays& replays,
                      const Fields& form, const std::string& reason) {
  const auto id = number_field(form, "id").value_or(-1);
  const auto page = read_letter(session, options, id, false);
  if (!page)
    return {false, fmt::format("Dead letter {} does not exist. It may have been removed.", id)};
  const auto& letter = page->letter;
  if (!letter.unresolved()) {
    return {false, fmt::format("Dead letter {} is already {} (since {}). Nothing was changed.", id,
                               letter.status, letter.resolved_at)};
  }
  const auto action = field(form, "do");
  if (action == "discard") {
    const auto consumer = cli::require_consumer(session, options);
    const ledger::DeadLetterChanges changes(options.postgres.schema, consumer.id);
    if (!changes.discard(session, id, reason, true))
      return {false, fmt::format("Another operator has resolved dead letter {}. Nothing was "
                                 "changed.",
                                 id)};
    const auto left =
        ledger::DeadLetterView(options.postgres.schema, consumer.id).left_parked(session, id);
    return {true,
            fmt::format("Dead letter {} is discarded.{}", id,
                        left == 0 ? ""
                                  : ' ' + cli::left_parked_text(options.invocation,
                                                                letter.partition.topic, left))};
  }
  if (action == "replay") {
    if (!replays.begin(id, reason, field(form, "force") == "yes")) {
      return {false,
              "Another replay is in progress in this process. Repeat yours when it has finished."};
    }
    const auto replayed = replays.wait(id);
    if (!replayed) {
      const auto news = replays.news();
      return {true, fmt::format("The replay of dead letter {} continues in the background. This "
                                "page will show its result.{}{}",
                                id, news.empty() ? "" : " ", news)};
    }
    return *replayed;
  }
  return {false, "The form does not name an action on a dead letter. Nothing was changed."};
}

}  // namespace pawl::dashboard
