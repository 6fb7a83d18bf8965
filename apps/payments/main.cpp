// The example with handlers in C++: payments from Kafka into a ledger and account balances.
//   payments run --config conf/payments-cpp.toml
#include <atomic>
#include <iostream>
#include <optional>
#include <pawl/pawl.hpp>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <vector>

#include "payment.hpp"

namespace {

/// Once per connection, so that a message costs no parsing and no planning.
void prepare(pqxx::connection& connection) {
  connection.prepare("add",
                     "UPDATE accounts SET balance = balance + $2, entries = entries + 1"
                     " WHERE id = $1 RETURNING balance");
  connection.prepare("enter_all",
                     "INSERT INTO ledger (event_id, account, amount)"
                     " SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])");
  connection.prepare(
      "add_all",
      "WITH sums AS (SELECT account, sum(amount) AS amount, count(*) AS entries"
      "                FROM unnest($1::text[], $2::bigint[]) AS p (account, amount)"
      "               GROUP BY account),"
      "     locked AS MATERIALIZED (SELECT a.id FROM accounts a JOIN sums s ON s.account = a.id"
      "                              ORDER BY a.id FOR NO KEY UPDATE OF a),"
      "     added AS (UPDATE accounts a SET balance = a.balance + s.amount,"
      "                                     entries = a.entries + s.entries"
      "                 FROM sums s JOIN locked l ON l.id = s.account WHERE a.id = s.account"
      "               RETURNING 1)"
      " SELECT (SELECT count(*) FROM sums) - (SELECT count(*) FROM added)");
}

/// The header, or the record's key if the producer sets no header. A message without both halts its
/// partition (idempotency.missing_key).
std::optional<std::string> event_id(const pawl::Message& message) {
  auto id = message.header("event-id");
  if (!id)
    id = message.key();
  if (!id)
    return std::nullopt;
  return std::string(*id);
}

/// Everything here commits together with the key and the offset, or not at all. Returns the
/// balance.
std::string apply(pqxx::dbtransaction& tx, const pawl::Message& message) {
  const auto payment = payments::Payment::parse(message.value());
  // Its result is not needed, so it is sent with the offset and the COMMIT.
  pawl::defer(tx, "INSERT INTO ledger (event_id, account, amount) VALUES ($1, $2, $3)",
              pqxx::params{event_id(message), payment.account, payment.amount});
  const auto added = tx.exec(pqxx::prepped{"add"}, pqxx::params{payment.account, payment.amount});
  if (added.empty()) {
    // An UPDATE of no row must not lose money. The ledger's row is rolled back, too.
    throw pawl::PermanentError("the account of the payment does not exist. Create it and resume");
  }
  return added[0][0].as<std::string>();
}

/// Reads no result, so that a message takes one round trip: all statements are sent with the offset
/// and the COMMIT. The database must then report a missing account, for example by a foreign key.
void apply_unread(pqxx::dbtransaction& tx, const pawl::Message& message) {
  const auto payment = payments::Payment::parse(message.value());
  pawl::defer(tx, "INSERT INTO ledger (event_id, account, amount) VALUES ($1, $2, $3)",
              pqxx::params{event_id(message), payment.account, payment.amount});
  pawl::defer(tx, "UPDATE accounts SET balance = balance + $2, entries = entries + 1 WHERE id = $1",
              pqxx::params{payment.account, payment.amount});
}

/// Returns statements and reads nothing, so that many messages are in flight to PostgreSQL at once.
/// A missing account is an error nevertheless, because the UPDATE must change one row.
void payment_statements(pawl::Statements& statements, const pawl::Message& message) {
  const auto payment = payments::Payment::parse(message.value());
  statements.add("INSERT INTO ledger (event_id, account, amount) VALUES ($1, $2, $3)",
                 pqxx::params{event_id(message), payment.account, payment.amount});
  statements.add("UPDATE accounts SET balance = balance + $2, entries = entries + 1 WHERE id = $1",
                 pqxx::params{payment.account, payment.amount}, 1);
}

/// pawl stores the returned value with the key: the response to a duplicate of this message.
std::string apply_with_receipt(pqxx::dbtransaction& tx, const pawl::Message& message) {
  return R"({"balance":)" + apply(tx, message) + "}";
}

/// Many payments of one partition at once. The accounts are locked in one order first, because
/// batches of other partitions change the same accounts, which could cause deadlocks.
void apply_batch(pqxx::dbtransaction& tx, std::span<const pawl::Message> messages) {
  std::vector<std::string> ids;
  std::vector<std::string> accounts;
  std::vector<std::int64_t> amounts;
  for (const auto& message : messages) {
    auto payment = payments::Payment::parse(message.value());
    ids.push_back(event_id(message).value());
    accounts.push_back(std::move(payment.account));
    amounts.push_back(payment.amount);
  }
  tx.exec(pqxx::prepped{"enter_all"}, pqxx::params{ids, accounts, amounts});
  const auto missing =
      tx.exec(pqxx::prepped{"add_all"}, pqxx::params{accounts, amounts}).one_field().as<int>();
  // pawl processes the messages again one by one, so only the message with the error fails.
  if (missing > 0)
    throw pawl::PermanentError("the account of a payment does not exist. Create it and resume");
}

/// Publishes a payment: the outbox message is written with the payment, and published if and only
/// if the payment is committed (docs/outbox.md). It needs no round trip.
template <typename Transaction>
void tell(Transaction& transaction, const pawl::Message& message) {
  pawl::publish(transaction,
                {.topic = "payments-booked", .key = message.key(), .value = message.value()});
}

/// The handlers above that also publish, by name.
void add_telling_handlers(pawl::App& app) {
  for (const char* name :
       {"payment_told", "payment_unread_told", "payment_statements_told", "payment_batch_told"})
    app.key(name, event_id);
  app.handler("payment_told", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
    apply(tx, message);
    tell(tx, message);
  });
  app.handler("payment_unread_told", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
    apply_unread(tx, message);
    tell(tx, message);
  });
  app.statement_handler("payment_statements_told",
                        [](pawl::Statements& statements, const pawl::Message& message) {
                          payment_statements(statements, message);
                          tell(statements, message);
                        });
  app.batch_handler("payment_batch_told",
                    [](pqxx::dbtransaction& tx, std::span<const pawl::Message> messages) {
                      apply_batch(tx, messages);
                      for (const auto& message : messages)
                        tell(tx, message);
                    });
}

}  // namespace

int main(int argc, char** argv) {
  std::atomic<std::uint64_t> answered_again{0};

  pawl::App app{"payments"};
  app.on_connect(prepare);
  app.key("payment", event_id);
  app.handler("payment", apply_with_receipt);
  // The same without a stored response; scripts/bench measures this one.
  app.key("payment_without_receipt", event_id);
  app.handler("payment_without_receipt",
              [](pqxx::dbtransaction& tx, const pawl::Message& message) { apply(tx, message); });
  app.key("payment_unread", event_id);
  app.handler("payment_unread", apply_unread);
  app.key("payment_statements", event_id);
  app.statement_handler("payment_statements", payment_statements);
  app.key("payment_batch", event_id);
  app.batch_handler("payment_batch", apply_batch);
  add_telling_handlers(app);
  app.on_duplicate("payment", [&](const pawl::Message&, const pawl::Response& receipt) {
    // A service would send the receipt to the client again; this program only counts.
    if (receipt)
      ++answered_again;
  });
  const int code = app.main(argc, argv);
  if (answered_again > 0) {
    std::clog << answered_again << " duplicates received their first receipt\n";
  }
  return code;
}
