#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "dashboard/pages/parts.hpp"
#include "ledger/rows.hpp"

namespace pawl::dashboard {

std::string keys_html(const Frame& frame, const std::optional<KeysPage>& page) {
  if (!frame.actor)
    return in_frame(frame, "Keys", for_actors_html(frame, "Keys are shown"));
  std::string content = fmt::format(
      "<form class=\"filter\" method=\"get\" action=\"/keys\" role=\"search\">{}"
      "<button>Search</button></form>\n",
      input_html("Idempotency key", "key", page ? page->key : "",
                 "required size=\"40\" autocomplete=\"off\" data-slash"));
  if (!page)
    return in_frame(frame, "Keys", content);
  const auto rows = [&](const std::vector<ledger::KeyRow>& keys, const std::string& caption,
                        const std::string& nothing) {
    TableHtml table(caption);
    table.column("Scope");
    table.column("Consumer");
    table.column("Message");
    table.column("Claimed");
    table.column("Response", "wide");
    for (const auto& key : keys) {
      std::string response = "–";
      if (key.response_bytes > 0 || key.response) {
        response = key.response ? escape(cli::decode(*key.response, kMostShown).text)
                                : cli::counted(static_cast<std::int64_t>(key.response_bytes),
                                               "byte", "bytes");
      }
      table.row({escape(key.scope), dash_if_empty(key.consumer),
                 key.topic.empty() ? "–" : place_text({key.topic, key.partition}, key.offset),
                 time_html(key.created_at), response});
    }
    return table.text(nothing);
  };
  content += rows(page->keys, "Claims of the key",
                  "The key is not in the scopes of this consumer. No message with it was applied, "
                  "or its retention has expired.");
  if (!page->halts.empty()) {
    content += "<h2>Halted at a message with this key</h2><ul>";
    for (const auto& halt : page->halts)
      content += fmt::format("<li>{}</li>", link("/partition", of_partition(halt.partition),
                                                 place_text(halt.partition, halt.offset)));
    content += "</ul>";
  }
  if (!page->elsewhere.empty())
    content += rows(page->elsewhere, "Claims in other scopes of the database", "");
  if (!page->letters.empty()) {
    content += "<h2>Dead letters with this key</h2><p>";
    for (const auto id : page->letters)
      content += link("/dead-letter", {{"id", std::to_string(id)}}, std::to_string(id)) + " ";
    content += "</p>";
  }
  if (!page->leases.empty()) {
    content += "<h2>Calls with this key</h2><ul>";
    for (const auto& lease : page->leases)
      content +=
          fmt::format("<li>{}: {}, {}</li>", escape(lease.scope), ledger::to_string(lease.state),
                      cli::counted(lease.attempts, "attempt", "attempts"));
    content += "</ul>";
  }
  content += "<section><h2>Scopes of this consumer</h2><ul>";
  for (const auto& scope : page->scopes)
    content += fmt::format(
        "<li>{}{}</li>", escape(scope.name),
        scope.pruned_to.empty() ? "" : ", keys removed up to " + time_html(scope.pruned_to));
  return in_frame(frame, "Keys", content + "</ul></section>\n");
}

}  // namespace pawl::dashboard
