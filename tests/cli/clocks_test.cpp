// PostgreSQL's clock jumps: what is removed then, and who owns what.
#include <csignal>
#include <filesystem>

#include "aging_site.hpp"
#include "prelude.hpp"
#include "relay_site.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A sanitizer's own library has to be the first that is loaded.
TEST_CASE("a key that is old by the server's clock alone stays") {
  Aging site;
  site.pay_many(0, "e", 10);
  site.drain();
  // As if the server's clock had gone two hours ahead a moment ago, while the process's had not.
  site.age_keys("2 hours");
  // Its path may have a space, which would end it here.
  const TempDir folder("clock");
  const auto library = folder.path() / "clock.so";
  std::filesystem::copy_file(PAWL_SHIFTED_CLOCK, library);
  const auto prune = [&](const Environment& environment) {
    return site.run({"prune", "--older-than", "1h", "--set", "retention.load=100"}, environment);
  };
  const auto behind = prune({{"LD_PRELOAD", library.string()}, {"PAWL_TEST_CLOCK_SHIFT", "-7200"}});
  INFO(behind.out << behind.err);
  CHECK(behind.code == 0);
  CHECK_THAT(behind.out, ContainsSubstring("removed 0 keys"));
  CHECK(site.keys() == "10");
  // By both clocks.
  CHECK_THAT(prune({}).out, ContainsSubstring("removed 10 keys"));
  CHECK(site.keys() == "0");
}
#endif

TEST_CASE("a lease of retention from before the server's clock went back is nobody's") {
  Aging site;
  site.pay_many(0, "e", 1);
  site.drain();
  const auto hold_until = [&](const std::string& until) {
    site.sql(
        "INSERT INTO pawl.retention_state AS s (consumer_id, holder, lease_until) SELECT "
        "consumer_id, 'dead', clock_timestamp() + interval '" +
        until +
        "' FROM pawl.consumers ON CONFLICT (consumer_id) DO UPDATE SET holder = "
        "excluded.holder, lease_until = excluded.lease_until");
  };
  hold_until("50 seconds");
  CHECK_THAT(site.prune().err,
             ContainsSubstring("another process of this consumer is removing keys"));
  hold_until("1 hour");
  const auto pruned = site.prune();
  INFO(pruned.out << pruned.err);
  CHECK(pruned.code == 0);
}

TEST_CASE("outbox lanes do not stay with the dead when the server's clock goes back") {
  RelaySite site;
  site.sql(
      "UPDATE pawl.outbox_shards SET owner = 'dead', epoch = epoch + 1, lease_until = "
      "clock_timestamp() + interval '1 hour'");
  site.sql(
      "INSERT INTO pawl.outbox_relays (owner, seen_at) VALUES ('dead', clock_timestamp() + "
      "interval '1 hour')");
  site.publish(site.topic, "k", "arrives");
  const auto status = site.run_relay({"outbox", "status"});
  INFO(status.out << status.err);
  CHECK_THAT(status.out,
             ContainsSubstring("dead (late)") && ContainsSubstring("no process publishes"));
  const auto relay = site.start_relay();
  site.wait_for_sql("SELECT count(*) FROM pawl.outbox", "0");
  // All of them: the dead one has no share.
  site.wait_for_sql("SELECT count(*) FROM pawl.outbox_shards WHERE owner = 'dead'", "0");
  relay->kill(SIGTERM);
  CHECK(relay->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(read_topic(site.bootstrap, site.topic).size() == 1);
}
