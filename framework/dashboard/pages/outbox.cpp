#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "dashboard/pages/parts.hpp"

namespace pawl::dashboard {

std::string outbox_html(const Frame& frame, const OutboxPage& page) {
  const auto& status = page.status;
  std::string content = "<div class=\"tiles\">";
  content += tile("Waiting", (status.more() ? "over " : "") + grouped(status.waiting()),
                  status.late() ? "bad" : "");
  content += tile("Oldest", instant_html(status.oldest()), status.late() ? "bad" : "");
  content += tile("Failed", grouped(status.set_apart), status.set_apart > 0 ? "bad" : "");
  content += tile("Relay processes", grouped(static_cast<std::int64_t>(status.relays.size())),
                  status.waiting() > 0 && !status.relayed() ? "bad" : "");
  content += "</div>\n";
  for (const auto& relay : status.relays) {
    if (!relay.problem.empty())
      content += fmt::format("<p class=\"message problem\">{}: {}</p>", escape(relay.owner),
                             escape(relay.problem));
    if (!relay.left_out.empty())
      content += fmt::format("<p class=\"message problem\">{} cannot write to {}.</p>",
                             escape(relay.owner), escape(relay.left_out));
  }
  TableHtml lanes("Shards");
  lanes.column("Shard", "number");
  lanes.column("Waiting", "number");
  lanes.column("Oldest");
  lanes.column("Published", "number");
  lanes.column("Last published");
  lanes.column("Owner");
  for (const auto& lane : status.lanes) {
    lanes.row({std::to_string(lane.lane), (lane.more ? "over " : "") + grouped(lane.waiting),
               instant_html(lane.oldest), grouped(lane.published),
               instant_html(lane.last_published),
               lane.owner.empty()
                   ? "–"
                   : escape(lane.owner) + (lane.owner_late ? " " + badge("warn", "late") : "")});
  }
  content += "<section><h2>Shards</h2>" + lanes.text("The outbox has no shards.") + "</section>\n";
  TableHtml apart("Failed messages");
  apart.column("Message", "number");
  apart.column("Topic");
  apart.column("Record key");
  apart.column("Written");
  apart.column("Failed");
  apart.column("Reason", "wide");
  for (const auto& message : page.set_apart) {
    apart.row({std::to_string(message.id), escape(message.topic),
               message.key ? key_html(frame, *message.key) : "–", instant_html(message.created),
               instant_html(message.failed), escape(message.reason)});
  }
  content += "<section><h2>Failed messages</h2>" + apart.text("No message has failed.");
  if (status.set_apart > static_cast<std::int64_t>(page.set_apart.size()))
    content += fmt::format("<p class=\"meta\">The first {} of {}.</p>", page.set_apart.size(),
                           status.set_apart);
  return in_frame(frame, "Outbox", content + "</section>\n");
}

}  // namespace pawl::dashboard
