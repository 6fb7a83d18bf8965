#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dashboard/pages/parts.hpp"

namespace pawl::dashboard {

std::string leases_html(const Frame& frame, const LeasesPage& page) {
  if (!page.elsewhere.empty()) {
    return in_frame(
        frame, "Calls",
        fmt::format("<p class=\"nothing\">calls.lease_store is Redis. This page shows only leases "
                    "in PostgreSQL. To list those in Redis: <code>{}</code></p>",
                    escape(page.elsewhere)));
  }
  std::string content = "<div class=\"tiles\">";
  content += tile("In flight", grouped(page.counts.in_hand));
  content += tile("Done, not yet recorded", grouped(page.counts.done));
  content +=
      tile("Unknown outcome", grouped(page.counts.unknown), page.counts.unknown > 0 ? "bad" : "");
  content += tile("Lost leases", grouped(page.counts.losses), page.counts.losses > 0 ? "bad" : "");
  content += "</div>\n";
  TableHtml leases("Calls without an outcome");
  leases.column("Scope");
  leases.column("Key");
  leases.column("State");
  leases.column("Attempts", "number");
  leases.column("Unknown since");
  leases.column("Lease acquired");
  leases.column("Lease expires");
  leases.column("Message");
  leases.column("Owner");
  for (const auto& lease : page.leases) {
    leases.row({escape(lease.scope), key_html(frame, lease.key),
                lease.state == ledger::LeaseState::kUnknown
                    ? badge("bad", ledger::to_string(lease.state))
                    : std::string(ledger::to_string(lease.state)),
                std::to_string(lease.attempts), instant_html(lease.unknown_since),
                instant_html(lease.begun), instant_html(lease.until),
                place_text({lease.topic, lease.partition}, lease.offset) +
                    (lease.dead_letter
                         ? ", dead letter " + link("/dead-letter",
                                                   {{"id", std::to_string(*lease.dead_letter)}},
                                                   std::to_string(*lease.dead_letter))
                         : ""),
                dash_if_empty(lease.owner)});
  }
  content += "<section><h2>Calls</h2>";
  const bool unknown = std::ranges::any_of(
      page.leases, [](const auto& lease) { return lease.state == ledger::LeaseState::kUnknown; });
  if (unknown) {
    content += fmt::format(
        "<p class=\"why\">Check with the remote service what an unknown call did, and record it. "
        "Then resume its partition, or replay its dead letter.\n<code>{0} --done -- KEY</code>\n"
        "<code>{0} --not-done -- KEY</code></p>\n",
        escape(page.resolve));
  }
  content += leases.text("No call is without an outcome.");
  if (page.leases.size() == page.most)
    content += fmt::format("<p class=\"meta\">The first {}; there may be more.</p>", page.most);
  content += "</section>\n";
  TableHtml losses("Calls with a lost lease");
  losses.column("Loss", "number");
  losses.column("Key");
  losses.column("Attempt", "number");
  losses.column("At");
  losses.column("Message");
  losses.column("Call");
  for (const auto& loss : page.losses) {
    losses.row({std::to_string(loss.id), key_html(frame, loss.key), std::to_string(loss.attempt),
                instant_html(loss.at), place_text({loss.topic, loss.partition}, loss.offset),
                loss.returned ? "returned" : "did not return"});
  }
  content += "<section><h2>Lost leases</h2>" + losses.text("No call has lost its lease.");
  return in_frame(frame, "Calls", content + "</section>\n");
}

}  // namespace pawl::dashboard
