// An example of a program with its own main(): it has its own command line, signals, and output,
// and contains a pawl::Consumer. (pawl::App in apps/payments provides all of that.)
//   payments-service conf/payments-cpp.toml [KEY=VALUE...]
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <pawl/pawl.hpp>
#include <pqxx/pqxx>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kFailed = 1;
constexpr int kBadCall = 2;

/// Prints important events, because a pawl::Consumer has no log of its own.
class Reporter final : public pawl::Observer {
 public:
  void on_event(const pawl::Event& event) noexcept override {
    switch (event.step) {
      case pawl::Step::kPartitionHalted:
      case pawl::Step::kMessageDeadLettered:
      case pawl::Step::kCircuitBreakerOpened:
      case pawl::Step::kDatabaseUnreachable:
      case pawl::Step::kDatabaseReachable:
      case pawl::Step::kKafkaUnreachable:
      case pawl::Step::kKafkaReachable:
      case pawl::Step::kTopicAccessDenied:
      case pawl::Step::kWarning:
        print(event);
        return;
      default:
        return;
    }
  }

 private:
  static void print(const pawl::Event& event) noexcept {
    const auto step = pawl::to_string(event.step);
    std::fprintf(stderr, "%.*s %.*s[%d]: %.*s\n", static_cast<int>(step.size()), step.data(),
                 static_cast<int>(event.topic.size()), event.topic.data(), event.partition,
                 static_cast<int>(event.detail.size()), event.detail.data());
  }
};

/// Waits for SIGTERM and SIGINT in a separate thread, because stop() takes a lock, which a signal
/// handler must not do.
class StopOnSignal {
 public:
  /// Call it before any other thread starts: threads inherit that the signals are blocked.
  static void block() {
    const sigset_t set = signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }

  explicit StopOnSignal(pawl::Consumer& consumer)
      : thread_([this, &consumer] {
          const sigset_t set = signals();
          int signal = 0;
          sigwait(&set, &signal);
          if (!done_)
            consumer.stop();
        }) {}

  ~StopOnSignal() {
    done_ = true;
    // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): it is blocked there, sigwait() takes it
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  static sigset_t signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// One statement for the ledger, one for the account, which must exist.
void payment(pawl::Statements& statements, const pawl::Message& message) {
  const pqxx::params values{message.header("event-id"), message.value()};
  statements.add(
      "INSERT INTO ledger (event_id, account, amount)"
      " SELECT $1, v->>'account', (v->>'amount')::bigint FROM (SELECT $2::jsonb) AS j (v)",
      values, 1);
  statements.add(
      "UPDATE accounts a SET balance = balance + (v->>'amount')::bigint, entries = entries + 1"
      "  FROM (SELECT $1::jsonb) AS j (v) WHERE a.id = v->>'account'",
      pqxx::params{message.value()}, 1);
}

}  // namespace

int main(int argc, char** argv) {
  StopOnSignal::block();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: payments-service FILE [KEY=VALUE...]\n");
    return kBadCall;
  }
  try {
    const auto options =
        pawl::load_config(arguments.front(), {arguments.begin() + 1, arguments.end()});
    pawl::Registry registry;
    registry.statement_handler("payment", payment);
    registry.key("payment", [](const pawl::Message& message) -> std::optional<std::string> {
      const auto id = message.header("event-id");
      return id ? std::optional(std::string(*id)) : std::nullopt;
    });

    pawl::Consumer consumer(options, registry, {std::make_shared<Reporter>()});
    const StopOnSignal signals(consumer);
    // The values of RunResult are the exit codes of `pawl run`: 0 after stop().
    return static_cast<int>(consumer.run());
  } catch (const pawl::ConfigErrors& errors) {
    // All problems with file and line: of the configuration, or of handlers that this program does
    // not register.
    for (const auto& problem : errors.problems())
      std::fprintf(stderr, "%s\n", problem.c_str());
    return kBadCall;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kFailed;
  }
}
