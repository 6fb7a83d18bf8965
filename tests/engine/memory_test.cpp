// What a consumer holds in memory of a backlog that it cannot process yet.
#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <pqxx/pqxx>
#include <sstream>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// So many that what each may hold at first is more than the bound.
constexpr int kPartitions = 64;

/// Of proc_pid_status(5), in KiB: "VmRSS", what is resident now, or "VmHWM", the most that it was.
long memory(const pawl::testing::ChildProcess& process, const std::string& name) {
  std::ifstream status(fmt::format("/proc/{}/status", process.pid()));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string field;
    long kibibytes = 0;
    if (words >> field >> kibibytes && field == name + ":")
      return kibibytes;
  }
  throw std::runtime_error("no " + name + " of a process that must run");
}

/// 64 KiB a payment, 1 MiB a partition.
void produce_large(PaymentsWorld& world) {
  const std::string padding(64 * 1024, 'x');
  for (int i = 0; i < 16 * kPartitions; ++i) {
    pawl::testing::Record record;
    record.value = fmt::format(R"({{"account":"acc-1","amount":1,"padding":"{}"}})", padding);
    record.headers = {{"event-id", fmt::format("large-{}", i)}};
    record.partition = i % kPartitions;
    world.produce_record(record);
  }
}

}  // namespace

// Fails when kafka.buffer does not bound: both processes fetch the same, for as long.
TEST_CASE("kafka.buffer bounds what is fetched from all partitions together") {
  PaymentsWorld world(kPartitions);
  produce_large(world);
  pqxx::connection connection(world.url());
  pqxx::work gate(connection);
  gate.exec("SELECT FROM accounts FOR UPDATE");
  const auto start = [&](const std::string& name, const std::string& buffer) {
    return world.start({{"--set", "kafka.group=" + name + "-" + world.group(), "--set",
                         "kafka.known_consumers=[\"bounded-" + world.group() + "\"]", "--set",
                         "kafka.buffer=" + buffer}});
  };
  const auto bounded = start("bounded", "8MiB");
  const ShowOnFailure show_bounded("bounded", *bounded);
  bounded->wait_for_output("EVENT fetch_positioned", 60s);
  const auto free = start("free", "1GiB");
  const ShowOnFailure show_free("free", *free);
  constexpr long kApart = 32 * 1024;
  wait_until([&] { return memory(*free, "VmRSS") > memory(*bounded, "VmHWM") + kApart; }, 120s,
             "the one that is not bounded to hold more");
  CHECK(world.number("SELECT count(*) FROM ledger") == 0);
  bounded->kill(SIGKILL);
  free->kill(SIGKILL);
}
