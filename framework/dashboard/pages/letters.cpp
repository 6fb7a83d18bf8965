#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "console/decoded.hpp"
#include "dashboard/pages/parts.hpp"
#include "engine/halt_rendering.hpp"
#include "ledger/rows.hpp"
#include "message/hexadecimal.hpp"

namespace pawl::dashboard {
namespace {

std::string letter_status(const ledger::DeadLetter& letter) {
  if (letter.shown_status() == "dead")
    return badge("bad", "dead");
  if (letter.unresolved())
    return badge("warn", letter.shown_status());
  return badge("good", escape(letter.status));
}

/// When it is retried automatically.
std::string due_html(const ledger::DeadLetter& letter) {
  return letter.due_at == "turn" ? "after earlier ones" : time_html(letter.due_at);
}

std::string part_html(const std::string& name, const std::optional<std::string>& bytes) {
  const auto decoded = cli::decode(bytes, kMostShown);
  if (decoded.form == "null")
    return fmt::format("<h3>{}</h3><p class=\"nothing\">null</p>", name);
  return fmt::format("<h3>{} <small>{}, {} {}{}</small></h3><pre tabindex=\"0\">{}</pre>", name,
                     escape(decoded.form), grouped(static_cast<std::int64_t>(decoded.bytes)),
                     decoded.bytes == 1 ? "byte" : "bytes", decoded.cut ? ", truncated" : "",
                     escape(decoded.text));
}

std::string letter_confirm(const Frame& frame, const LetterPage& page) {
  const auto& letter = page.letter;
  auto inputs = hidden("id", std::to_string(letter.id)) + hidden("do", page.action);
  const auto back = fmt::format("/dead-letter?id={}", letter.id);
  if (page.action == "replay") {
    if (page.needs_force) {
      inputs +=
          "<p class=\"message problem\">For the reason above, confirm the replay once "
          "more.</p><label class=\"check\"><input type=\"checkbox\" name=\"force\" value=\"yes\"> "
          "Replay it. I have checked that the event was not applied before.</label>";
    }
    return confirm_html(frame, "/dead-letter", fmt::format("Replay dead letter {}?", letter.id),
                        "This process applies the message exactly once, with the handler in its "
                        "configuration. If the message fails again, it stays a dead letter.",
                        inputs, page.reason, "Replay", back);
  }
  if (page.action == "discard") {
    return confirm_html(frame, "/dead-letter", fmt::format("Discard dead letter {}?", letter.id),
                        "The message is never applied. The dead letter stays in the table until "
                        "its retention expires.",
                        inputs, page.reason, "Discard", back);
  }
  return {};
}

}  // namespace

std::string letters_html(const Frame& frame, const LettersPage& page) {
  const auto value = [&](const std::string& name) { return field(page.filters, name); };
  const auto status = value("status");
  std::string content;
  if (!page.problem.empty())
    content +=
        fmt::format("<p class=\"message problem\" role=\"alert\">{}</p>", escape(page.problem));
  content += fmt::format(
      "<form class=\"filter\" method=\"get\" action=\"/dead-letters\" "
      "role=\"search\">{}{}<label>Status "
      "<select name=\"status\">{}{}{}{}{}{}{}</select></label>{}{}{}{}{}"
      "<button>Search</button> <a class=\"button\" href=\"/dead-letters\">Clear</a></form>\n",
      input_html("Topic", "topic", value("topic"), "data-slash"),
      input_html("Partition", "partition", value("partition"), "inputmode=\"numeric\" size=\"5\""),
      option_html("", "unresolved", status), option_html("scheduled", "scheduled", status),
      option_html("dead", "dead", status), option_html("parked", "parked", status),
      option_html("replayed", "replayed", status), option_html("discarded", "discarded", status),
      option_html("all", "all", status), input_html("Reason", "reason", value("reason")),
      input_html("Handler", "handler", value("handler")),
      input_html("SQLSTATE", "sqlstate", value("sqlstate"),
                 "size=\"6\" maxlength=\"5\" title=\"All five characters, or the first two (the "
                 "class)\""),
      frame.actor
          ? input_html("Record key", "record_key", value("record_key"), "autocomplete=\"off\"")
          : "",
      frame.actor ? input_html("Idempotency key", "idempotency_key", value("idempotency_key"),
                               "autocomplete=\"off\"")
                  : "");
  TableHtml table("Dead letters by topic, partition, and offset");
  table.column("Dead letter", "number");
  table.column("Status");
  table.column("Message");
  table.column("Reason");
  table.column("Handler");
  table.column("SQLSTATE");
  table.column("Record key");
  table.column("Failed");
  table.column("Retry due");
  table.column("Error", "wide");
  for (const auto& letter : page.letters) {
    table.row({link("/dead-letter", {{"id", std::to_string(letter.id)}}, std::to_string(letter.id)),
               letter_status(letter), place_text(letter.partition, letter.offset),
               escape(letter.reason), dash_if_empty(letter.handler), dash_if_empty(letter.sqlstate),
               letter.record_key ? key_html(frame, *letter.record_key) : "–",
               time_html(letter.died_at), due_html(letter), short_text(letter.located_error())});
  }
  content += table.text("No dead letter matches the filter.");
  content += "<p class=\"pages\">";
  if (!page.first)
    content += link("/dead-letters", page.filters, "First page", "button") + " ";
  if (page.next) {
    auto query = page.filters;
    query["after_topic"] = page.next->partition.topic;
    query["after_partition"] = std::to_string(page.next->partition.partition);
    query["after_offset"] = std::to_string(page.next->offset);
    query["after_id"] = std::to_string(page.next->id);
    content += link("/dead-letters", query, "Next page", "button");
  }
  return in_frame(frame, "Dead letters", content + "</p>\n");
}

std::string letter_html(const Frame& frame, const LetterPage& page) {
  const auto& letter = page.letter;
  std::string content;
  const auto confirm =
      frame.actor && letter.unresolved() ? letter_confirm(frame, page) : std::string();
  content += confirm;
  if (confirm.empty() && frame.actor && letter.unresolved()) {
    const auto id = std::to_string(letter.id);
    content += "<p class=\"buttons\">" +
               link("/dead-letter", {{"id", id}, {"do", "replay"}}, "Replay…", "button") + " " +
               link("/dead-letter", {{"id", id}, {"do", "discard"}}, "Discard…", "button") +
               "</p>\n";
  }
  Facts facts;
  facts.add("Status", letter_status(letter));
  facts.add("Message", link("/partition", of_partition(letter.partition),
                            place_text(letter.partition, letter.offset)));
  facts.add("Reason", escape(letter.reason));
  facts.add("Error", "<span class=\"why\">" + escape(letter.error) + "</span>");
  if (letter.unresolved())
    facts.add("What to do", escape(engine::fix_of(letter.reason)));
  facts.add("Handler", dash_if_empty(letter.handler));
  if (!letter.statement.empty())
    facts.add("Statement", escape(letter.statement));
  facts.add("SQLSTATE", dash_if_empty(letter.sqlstate));
  facts.add("Attempts", grouped(letter.attempts));
  // The one that resolved it is counted as well.
  facts.add("Failed replays", grouped(letter.replays - (letter.status == "replayed" ? 1 : 0)));
  facts.add("Failed", time_html(letter.died_at));
  if (!letter.due_at.empty())
    facts.add("Retry due", due_html(letter));
  if (!letter.resolved_at.empty()) {
    facts.add("Resolved",
              time_html(letter.resolved_at) +
                  (frame.actor ? " by role " + escape(letter.resolved_by) : std::string()));
    if (frame.actor)
      facts.add("Resolution", dash_if_empty(letter.resolution));
  }
  facts.add("Stored payload", escape(letter.payload));
  content += facts.text();
  content += "<section><h2>What it carried</h2>\n";
  if (!frame.actor) {
    content += for_actors_html(frame, "Keys, values and headers are shown");
    return in_frame(frame, fmt::format("Dead letter {}", letter.id), content + "</section>\n");
  }
  if (!letter.error_detail.empty())
    content += "<h3>Error detail</h3><pre tabindex=\"0\">" + escape(letter.error_detail) + "</pre>";
  if (letter.idempotency_key)
    content += "<h3>Idempotency key</h3><p>" +
               link("/keys", {{"key", *letter.idempotency_key}}, escape(*letter.idempotency_key)) +
               "</p>";
  content += part_html("Record key", letter.record_key);
  if (letter.payload == "complete" || letter.payload == "truncated") {
    content += part_html("Value", letter.record_value);
    if (letter.headers_unknown) {
      content +=
          "<h3>Headers</h3><p class=\"nothing\">The headers are unknown, because librdkafka cannot "
          "read them. The dead letter cannot be replayed.</p>";
    }
    if (!letter.headers.empty()) {
      TableHtml table("Headers");
      table.column("Name");
      table.column("Value", "wide");
      for (const auto& header : letter.headers)
        table.row({escape(cli::decode(header.name, kMostShown).text),
                   header.value ? escape(cli::decode(*header.value, kMostShown).text) : "null"});
      content += table.text("");
    }
  } else {
    content +=
        "<p class=\"nothing\">The value is not stored. A replay reads it from Kafka, unless it was "
        "erased.</p>";
  }
  return in_frame(frame, fmt::format("Dead letter {}", letter.id), content + "</section>\n");
}

}  // namespace pawl::dashboard
