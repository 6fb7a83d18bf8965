// A consumer program for tests: pawl::Consumer with handlers that behave and misbehave, and an
// observer that can kill or stop its own process at an exact step.
//
//   pawl_test_consumer --config FILE [--set K=V]... [--drain]
//                      [--kill STEP:N] [--freeze STEP:N]   at the N-th such step, counted from 1
//                      [--prepare]                         for handler prepared_star
//                      [--prepare-insert]                  for handler prepared_insert
//                      [--schema-interval MS]              postgres::SchemaVersion's
//                      [--events]                          print every step as it happens
//                      [--around]                          two of them around each call
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <functional>
#include <pqxx/pqxx>
#include <span>
#include <thread>

#include "charge_handlers.hpp"
#include "pawl/pawl.hpp"
#include "postgres/schema_version.hpp"

namespace {

using pawl::Event;
using pawl::Message;
using pawl::Step;

/// Sends itself a signal at the n-th occurrence of a step.
struct Trap {
  std::string step;
  int at = 0;
  int signal = 0;
  std::atomic<int> seen{0};

  void parse(const std::string& text, int with) {
    const auto colon = text.find(':');
    step = text.substr(0, colon);
    at = std::stoi(text.substr(colon + 1));
    signal = with;
  }
};

class TestObserver final : public pawl::Observer {
 public:
  Trap kill;
  Trap freeze;
  bool print_all = false;

  void on_event(const Event& event) noexcept override {
    const auto name = to_string(event.step);
    if (print_all || is_rare(event.step)) {
      const auto code =
          event.warning ? std::string(to_string(*event.warning)) + ": " : std::string();
      std::printf("EVENT %.*s %.*s %d %lld %s%.*s\n", static_cast<int>(name.size()), name.data(),
                  static_cast<int>(event.topic.size()), event.topic.data(), event.partition,
                  static_cast<long long>(event.offset), code.c_str(),
                  static_cast<int>(event.detail.size()), event.detail.data());
      std::fflush(stdout);
    }
    spring(kill, name);
    spring(freeze, name);
  }
  [[nodiscard]] bool watches_every_step() const noexcept override {
    return print_all || !kill.step.empty() || !freeze.step.empty();
  }

 private:
  static bool is_rare(Step step) {
    switch (step) {
      case Step::kMessageFetched:
      case Step::kLeaseAcquired:
      case Step::kCallFinished:
      case Step::kKeyClaimed:
      case Step::kHandlerReturned:
      case Step::kOffsetAdvancing:
      case Step::kCommitSent:
      case Step::kMessageCommitted:
      case Step::kMessageDeduplicated:
        return false;
      default:
        return true;
    }
  }
  static void spring(Trap& trap, std::string_view step) {
    if (trap.step != step || ++trap.seen != trap.at)
      return;
    // To this thread, not to the process: it must not take another step before the signal acts.
    ::raise(trap.signal);
  }
};

bool is_poison(const Message& message) {
  return message.header("event-id").value_or("").starts_with("poison");
}

/// Sanitizers turn the signal into an exit code.
void segfault() {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

[[noreturn]] void hang() {
  for (;;)
    ::pause();
}

using Pay = std::function<void(pqxx::dbtransaction&, const Message&)>;

/// Each says how many messages it got. `pay` applies one.
void add_batch_handlers(pawl::Registry& registry, const Pay& pay) {
  const auto batch = [&](const std::string& name, std::function<void(const Message&)> on_poison) {
    registry.batch_handler(
        name, [pay, on_poison](pqxx::dbtransaction& tx, std::span<const Message> messages) {
          std::printf("BATCH %zu of %d at %lld\n", messages.size(), messages.front().partition(),
                      static_cast<long long>(messages.front().offset()));
          std::fflush(stdout);
          for (const auto& message : messages) {
            pay(tx, message);
            if (is_poison(message))
              on_poison(message);
          }
        });
  };
  batch("batch", [](const Message&) {});
  batch("batch_throws_on_poison", [](const Message&) { throw std::runtime_error("poisoned"); });
  batch("batch_permanent_on_poison",
        [](const Message&) { throw pawl::PermanentError("no retry can help"); });
  batch("batch_segfaults_on_poison", [](const Message&) { segfault(); });
  registry.on_duplicate("batch", [](const Message& message, const pawl::Response& response) {
    std::printf("RESPONSE %s at %lld\n", response ? response->c_str() : "none",
                static_cast<long long>(message.offset()));
    std::fflush(stdout);
  });
  // An answer for each but those that want none, of whatever length the id has.
  registry.batch_handler(
      "batch_respond", [pay](pqxx::dbtransaction& tx, std::span<const Message> messages) {
        std::vector<pawl::Response> responses;
        for (const auto& message : messages) {
          pay(tx, message);
          const auto id = std::string(message.header("event-id").value());
          responses.push_back(id.starts_with("none") ? pawl::Response{} : "response to " + id);
          if (id == "one too many")
            responses.emplace_back("another");
        }
        return responses;
      });
  registry.batch_handler("batch_stream",
                         [](pqxx::dbtransaction& tx, std::span<const Message> messages) {
                           auto stream = pqxx::stream_to::table(tx, {"incoming"}, {"id", "value"});
                           for (const auto& message : messages)
                             stream.write_values(*message.header("event-id"), message.value());
                           stream.complete();
                         });
  registry.batch_handler("batch_unchecked",
                         [](pqxx::dbtransaction& tx, std::span<const Message> messages) {
                           tx.exec("UPDATE accounts SET entries = entries + $1 WHERE id = 'acc-1'",
                                   pqxx::params{messages.size()});
                         });
  registry.batch_handler("batch_commits",
                         [pay](pqxx::dbtransaction& tx, std::span<const Message> messages) {
                           for (const auto& message : messages)
                             pay(tx, message);
                           tx.exec("COMMIT");
                         });
}

/// Handlers that are fine, with a key function and an on_duplicate that are not.
void add_odd_functions(pawl::Registry& registry, const Pay& pay) {
  registry.handler("odd", pay);
  registry.batch_handler("batch_odd",
                         [pay](pqxx::dbtransaction& tx, std::span<const Message> messages) {
                           for (const auto& message : messages)
                             pay(tx, message);
                         });
  for (const auto* name : {"odd", "batch_odd"}) {
    registry.key(name, [](const Message& message) -> std::optional<std::string> {
      const auto id = message.header("event-id").value();
      if (id == "poison that hangs")
        hang();
      if (is_poison(message))
        throw 42;
      return std::string(id);
    });
    registry.on_duplicate(name, [](const Message&, const pawl::Response&) { throw 42; });
  }
}

/// Enters the message, and does what its value says.
void add_by_value(pawl::Statements& statements, const Message& message) {
  const auto id = message.header("event-id").value();
  statements.add("INSERT INTO ordered (event_id) VALUES ($1);", pqxx::params{id}, 1);
  const auto value = message.value();
  if (value == "throws")
    throw std::runtime_error("thrown by code");
  if (value == "throws a number")
    throw 42;
  if (value == "commits")
    statements.add("/* here */ COMMIT");
  if (value == "two at once")
    statements.add("SELECT 1; SELECT 2");
  if (value == "no row")
    statements.add("UPDATE ordered SET position = 0 WHERE event_id = 'nobody'", {}, 1);
  if (value == "a WITH that counts")
    statements.add("WITH a AS (SELECT 1) SELECT * FROM a", {}, 1);
  if (value == "too few parameters")
    statements.add("SELECT $1::text, $2::text", pqxx::params{1});
  if (value == "too many parameters") {
    pqxx::params many;
    for (int i = 0; i < 65536; ++i)
      many.append(i);
    statements.add("SELECT 1", many);
  }
  if (value == "a NUL that is caught") {
    try {
      statements.add("SELECT $1::text", pqxx::params{std::string_view("a\0b", 3)});
    } catch (const std::invalid_argument&) {
      statements.add("SELECT $1::text", pqxx::params{"a b"});
    }
  }
  if (value == "another text each time") {
    for (int i = 0; i < 150; ++i)
      statements.add("SELECT '{" + std::string(id) + "'::text, " + std::to_string(i), {}, 1);
  }
}

/// Says what it sees, and throws where the event id asks it to.
void add_around(pawl::Registry& registry, const std::string& name) {
  registry.around([name](const pawl::HandlerCall& call) -> pawl::CallEnd {
    const auto id = std::string(call.messages.front().header("event-id").value());
    const auto what = name + " of " + std::string(call.handler) + ", " +
                      std::to_string(call.messages.size()) + " from " + id;
    std::printf("BEGUN %s\n", what.c_str());
    if (id == name + " throws before")
      throw std::runtime_error(id);
    if (id == "nobody looks")
      return nullptr;
    return [what, id, name](const std::exception_ptr& failure) {
      std::string end = "returned";
      try {
        if (failure)
          std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        end = std::string("threw ") + error.what();
      }
      std::printf("ENDED %s: %s\n", what.c_str(), end.c_str());
      std::fflush(stdout);
      if (id == name + " throws after" || id == "poison and throws after")
        throw std::runtime_error(id);
    };
  });
}

/// Into table t, what header v says.
void add_inserts(pawl::Registry& registry, bool prepare) {
  constexpr const char* kInsert = "INSERT INTO t VALUES ($1, $2)";
  const auto values = [](const Message& message) {
    return pqxx::params{message.header("event-id").value(), message.header("v").value()};
  };
  if (prepare) {
    registry.on_connect(
        [](pqxx::connection& connection) { connection.prepare("insert", kInsert); });
  }
  registry.handler("prepared_insert", [values](pqxx::dbtransaction& tx, const Message& message) {
    tx.exec(pqxx::prepped{"insert"}, values(message));
  });
  registry.statement_handler("statement_insert",
                             [values](pawl::Statements& statements, const Message& message) {
                               statements.add(kInsert, values(message));
                             });
}

struct Prepare {
  bool account = false;
  bool insert = false;
};

pawl::Registry handlers(Prepare prepare, bool around) {
  pawl::Registry registry;
  if (around) {
    add_around(registry, "outer");
    add_around(registry, "inner");
  }
  const auto pay = [](pqxx::dbtransaction& tx, const Message& message) {
    tx.exec(
        "INSERT INTO ledger SELECT $1, v->>'account', (v->>'amount')::bigint FROM (SELECT "
        "$2::jsonb) j (v)",
        pqxx::params{message.header("event-id").value(), message.value()});
    tx.exec(
        "UPDATE accounts a SET balance = balance + (v->>'amount')::bigint, entries = entries + 1"
        "  FROM (SELECT $1::jsonb) j (v) WHERE a.id = v->>'account'",
        pqxx::params{message.value()});
  };
  registry.handler("payment", pay);
  registry.handler("respond", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    return std::string("response to ") + std::string(message.header("event-id").value());
  });
  registry.on_duplicate("respond", [](const Message& message, const pawl::Response& response) {
    std::printf("RESPONSE %s at %d\n", response ? response->c_str() : "none", message.partition());
    std::fflush(stdout);
  });
  registry.handler("swallows_error", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    try {
      tx.exec("INSERT INTO ledger VALUES (NULL, NULL, NULL)");
    } catch (const pqxx::sql_error&) {  // NOLINT(bugprone-empty-catch): what such handlers do
    }
  });
  registry.handler("raw_rollback", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    tx.exec("ROLLBACK");
  });
  registry.handler("raw_rollback_begin", [pay](pqxx::dbtransaction& tx, const Message& message) {
    tx.exec("ROLLBACK");
    tx.exec("BEGIN");
    pay(tx, message);
  });
  registry.handler("raw_commit", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    tx.exec("COMMIT");
  });
  registry.handler("calls_commit", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    tx.commit();
  });
  registry.handler("calls_abort", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    tx.abort();
  });
  registry.handler("subtransaction", [pay](pqxx::dbtransaction& tx, const Message& message) {
    try {
      pqxx::subtransaction inner(tx);
      inner.exec("INSERT INTO ledger VALUES (NULL, NULL, NULL)");
      inner.commit();
    } catch (const pqxx::not_null_violation&) {  // NOLINT(bugprone-empty-catch): expected
    }
    pay(tx, message);
  });
  // Right only when what is deferred runs in its order and after what is executed.
  registry.handler("deferred", [](pqxx::dbtransaction& tx, const Message& message) {
    const auto id = message.header("event-id").value();
    pawl::defer(tx, "UPDATE ledger SET amount = ($2::jsonb->>'amount')::bigint WHERE event_id = $1",
                pqxx::params{id, message.value()});
    pawl::defer(tx,
                "UPDATE accounts SET balance = balance + l.amount, entries = entries + 1"
                "  FROM ledger l WHERE l.event_id = $1 AND accounts.id = l.account",
                pqxx::params{id});
    tx.exec("INSERT INTO ledger VALUES ($1, $2::jsonb->>'account', 0)",
            pqxx::params{id, message.value()});
  });
  // Values in the text: each is a statement of its own.
  registry.handler("deferred_texts", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    pawl::defer(tx, "SELECT " + std::to_string(message.offset()), {});
    pawl::defer(tx, "SELECT -" + std::to_string(message.offset()), {});
  });
  // What it publishes names the topic in its value: "to TOPIC".
  registry.handler("publishes", [](pqxx::dbtransaction& tx, const Message& message) {
    const auto id = message.header("event-id").value();
    const auto topic = message.value().substr(3);
    pawl::publish(tx, {topic, message.key(), id, {{"none", {}}, {"bytes", "\xff"}}, id});
    pqxx::subtransaction inner(tx);
    pawl::publish(inner, {.topic = topic, .event_id = "of a subtransaction"});
    inner.commit();
  });
  registry.statement_handler(
      "publishes_by_statements", [](pawl::Statements& statements, const Message& message) {
        const auto id = message.header("event-id").value();
        pawl::publish(statements, {message.value().substr(3), id, id, {}, id});
      });
  registry.handler("defers_failing", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    pawl::defer(tx, "INSERT INTO ledger VALUES ($1, $2, $3)",
                pqxx::params{nullptr, pqxx::binary_cast(std::string("x")), 1});
  });
  registry.handler("defers_rollback", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    pawl::defer(tx, "ROLLBACK", {});
  });
  registry.handler("defers_copy", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    const auto id = message.header("event-id").value();
    if (id.starts_with("copy in"))
      pawl::defer(tx, "/* quick */ COPY ledger FROM STDIN", {});
    if (id.starts_with("copy out"))
      pawl::defer(tx, "copy ledger to stdout", {});
    pawl::defer(tx, "WITH copy AS (SELECT 1) TABLE copy", {});
  });
  registry.handler("defers_in_subtransaction",
                   [pay](pqxx::dbtransaction& tx, const Message& message) {
                     pay(tx, message);
                     pqxx::subtransaction inner(tx);
                     pawl::defer(inner, "SELECT 1", {});
                     inner.commit();
                   });
  const auto pay_by_statements = [](pawl::Statements& statements, const Message& message) {
    const pqxx::params values{message.value()};
    statements.add(
        "INSERT INTO ledger SELECT $1, v->>'account', (v->>'amount')::bigint FROM (SELECT "
        "$2::jsonb) j (v)",
        pqxx::params{message.header("event-id").value(), message.value()}, 1);
    statements.add(
        "UPDATE accounts a SET balance = balance + (v->>'amount')::bigint, entries = entries + 1"
        "  FROM (SELECT $1::jsonb) j (v) WHERE a.id = v->>'account'",
        values, 1);
  };
  registry.statement_handler("statements", pay_by_statements);
  registry.statement_handler("statements_by_value", add_by_value);
  registry.handler("throws_on_poison", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    if (is_poison(message))
      throw std::runtime_error("poisoned");
  });
  if (prepare.account) {
    registry.on_connect([](pqxx::connection& connection) {
      connection.prepare("account", "SELECT * FROM accounts WHERE id = $1");
    });
  }
  registry.handler("prepared_star", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    tx.exec(pqxx::prepped{"account"}, pqxx::params{"acc-1"});
  });
  registry.handler("permanent_on_poison", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    if (is_poison(message))
      throw pawl::PermanentError("no retry can help");
  });
  pawl::test::add_charge_handlers(registry);
  add_batch_handlers(registry, pay);
  add_odd_functions(registry, pay);
  add_inserts(registry, prepare.insert);
  registry.handler("segfaults_on_poison", [pay](pqxx::dbtransaction& tx, const Message& message) {
    pay(tx, message);
    if (is_poison(message))
      segfault();
  });
  registry.statement_handler(
      "statements_segfault_on_poison",
      [pay_by_statements](pawl::Statements& statements, const Message& message) {
        pay_by_statements(statements, message);
        if (is_poison(message))
          segfault();
      });
  return registry;
}

}  // namespace

int main(int argc, char** argv) {
  // First of all: a test may ask it to stop before it has read its arguments. Before main() it
  // would die of that.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::printf("STARTED\n");
  std::fflush(stdout);
  auto observer = std::make_shared<TestObserver>();
  std::string config;
  std::vector<std::string> overrides;
  std::string kill;
  std::string freeze;
  bool drain = false;
  Prepare prepare;
  auto schema_interval = pawl::postgres::SchemaVersion::kInterval.count();
  bool around = false;
  CLI::App app;
  app.add_option("--config", config)->required();
  app.add_option("--set", overrides);
  app.add_flag("--drain", drain);
  app.add_flag("--prepare", prepare.account);
  app.add_flag("--prepare-insert", prepare.insert);
  app.add_option("--schema-interval", schema_interval);
  app.add_flag("--around", around);
  app.add_option("--kill", kill);
  app.add_option("--freeze", freeze);
  app.add_flag("--events", observer->print_all);
  CLI11_PARSE(app, argc, argv);
  if (!kill.empty())
    observer->kill.parse(kill, SIGKILL);
  if (!freeze.empty())
    observer->freeze.parse(freeze, SIGSTOP);

  pawl::postgres::SchemaVersion::set_default_interval(std::chrono::milliseconds(schema_interval));

  try {
    auto options = pawl::load_config(config, overrides);
    options.consumer.drain = drain;
    pawl::Consumer consumer(std::move(options), handlers(prepare, around), {observer});
    std::thread([&consumer, signals] {
      int signal = 0;
      ::sigwait(&signals, &signal);
      consumer.stop();
      std::printf("STOPPING\n");
      std::fflush(stdout);
    }).detach();
    const auto result = consumer.run();
    std::printf("ENDED %d\n", static_cast<int>(result));
    std::fflush(stdout);
    ::_exit(static_cast<int>(result));
  } catch (const std::exception& error) {
    std::printf("FATAL %s\n", error.what());
    std::fflush(stdout);
    ::_exit(1);
  }
}
