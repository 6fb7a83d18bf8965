#include "outbox/store/watch.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kLook = R"sql(
  SELECT w.reported, floor(extract(epoch FROM w.oldest) * 1000)::bigint,
         floor(extract(epoch FROM w.seen_at) * 1000)::bigint, w.relayed
    FROM pawl.watch_outbox($1, $2::boolean, $3::bigint) w
)sql";

constexpr const char* kTell = "UPDATE pawl.outbox_watch SET reported = $2 WHERE holder = $1";

constexpr std::array<std::pair<LateTold, std::string_view>, 3> kWords{
    {{LateTold::kNothing, "nothing"},
     {LateTold::kLogged, "logged"},
     {LateTold::kAlerted, "alerted"}}};

LateTold parse(std::string_view word) {
  for (const auto& [told, name] : kWords) {
    if (name == word)
      return told;
  }
  return LateTold::kNothing;
}

std::string_view word_of(LateTold told) {
  for (const auto& [value, name] : kWords) {
    if (value == told)
      return name;
  }
  return kWords.front().second;
}

}  // namespace

bool outbox_is_late(const std::optional<Instant>& oldest, Instant now,
                    std::chrono::milliseconds alert_age) {
  return alert_age.count() > 0 && oldest && now - *oldest > alert_age;
}

OutboxWatch::OutboxWatch(const std::string& schema)
    : look_{"pawl_outbox_watch", in_schema(kLook, schema)},
      tell_{"pawl_outbox_told", in_schema(kTell, schema)} {}

std::optional<OutboxLook> OutboxWatch::look(postgres::Session& session, const std::string& holder,
                                            bool alerts, std::chrono::milliseconds lease) const {
  postgres::Parameters parameters;
  parameters.add_text(holder);
  parameters.add_text(alerts ? "true" : "false");
  parameters.add_integer(lease.count());
  const auto answers =
      postgres::run_relaxed_transaction(session, {{&look_, std::move(parameters)}});
  const auto* rows = answers.front().get();
  if (PQntuples(rows) == 0)
    return std::nullopt;
  return OutboxLook{parse(text(rows, 0, 0)), optional_instant(rows, 0, 1), instant(rows, 0, 2),
                    boolean(rows, 0, 3)};
}

void OutboxWatch::tell(postgres::Session& session, const std::string& holder, LateTold told) const {
  postgres::Parameters parameters;
  parameters.add_text(holder);
  parameters.add_text(std::string(word_of(told)));
  postgres::run_transaction(session, {{&tell_, std::move(parameters)}});
}

}  // namespace pawl::ledger
