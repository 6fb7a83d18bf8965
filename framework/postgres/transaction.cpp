#include "postgres/transaction.hpp"

#include <fmt/format.h>

#include "postgres/flight.hpp"
#include "postgres/transaction_statements.hpp"

namespace pawl::postgres {
namespace {

// Without a value: what the server's own is, for a pooler's sessions keep nothing of ours.
constexpr const char* kSettings = R"sql(
  SELECT set_config('lock_timeout', $1, true),
         set_config('synchronous_commit', coalesce($2,
           CASE current_setting('synchronous_commit')
           WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END), true)
)sql";

const Statement kPrepared{"pawl_tx_settings", kSettings};

std::vector<Result> run(Session& session, std::vector<Request> requests,
                        const std::string& commit) {
  try {
    Flight flight(session);
    flight.add(begin_statement(Isolation::kReadCommitted));
    Parameters settings;
    settings.add_text(fmt::format("{}ms", session.settings().lock_timeout.count()));
    settings.add_text_or_null(commit);
    if (session.pooled())
      flight.add({"", kSettings + session.in_each_transaction()}, settings);
    else
      flight.add(kPrepared, settings);
    for (auto& request : requests)
      flight.add(request);
    flight.add(commit_statement());
    auto results = flight.run();
    if (!has_committed(results.back().get())) {
      throw Error("25P02", "the transaction was aborted before COMMIT. Nothing was stored");
    }
    results.pop_back();
    results.erase(results.begin(), results.begin() + 2);
    return results;
  } catch (const Error& error) {
    if (error.failure() == FailureClass::kConnection || !session.alive()) {
      throw InDoubt(fmt::format("connection lost during COMMIT: {}", error.what()),
                    error.sqlstate());
    }
    roll_back(session);
    throw error.as_own();
  }
}

}  // namespace

std::vector<Result> run_transaction(Session& session, std::vector<Request> requests) {
  return run(session, std::move(requests), session.durable_commit());
}

std::vector<Result> run_relaxed_transaction(Session& session, std::vector<Request> requests) {
  return run(session, std::move(requests), "off");
}

void flush_commits(Session& session) {
  // COMMIT waits for the disk only where its transaction wrote something.
  static const Statement write{"", "SELECT pg_logical_emit_message(true, 'pawl', '')"};
  run_transaction(session, {{&write, {}}});
}

}  // namespace pawl::postgres
