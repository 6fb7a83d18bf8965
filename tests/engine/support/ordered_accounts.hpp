#pragma once

#include <fmt/format.h>

#include <string>

#include "payments_world.hpp"

namespace pawl::test {

// Accounts whose messages fail while they are closed, and what shows in which order they took
// effect.

/// Keeps the order in which messages took effect; fails while their account is closed.
inline constexpr const char* kInOrder = R"toml(sql = [
  { text = "INSERT INTO ordered (account, number) SELECT {/account}, {/number}::bigint WHERE NOT EXISTS (SELECT FROM closed WHERE account = {/account})", expect_rows = 1 },
])toml";

inline void prepare_accounts(PaymentsWorld& world) {
  world.use_handler(kInOrder);
  world.execute("CREATE TABLE ordered (position bigserial, account text, number bigint)");
  world.execute("CREATE TABLE closed (account text PRIMARY KEY)");
}

/// Messages first..last of an account, which is also their record key.
inline void produce(PaymentsWorld& world, const std::string& account, int first, int last,
                    int partition = 0) {
  for (int number = first; number <= last; ++number) {
    testing::Record record;
    record.key = account;
    record.value = fmt::format(R"({{"account":"{}","number":{}}})", account, number);
    record.headers = {{"event-id", fmt::format("{}-{}", account, number)}};
    record.partition = partition;
    world.produce_record(record);
  }
}

/// The numbers of an account in the order in which they took effect: "1,2,3".
inline std::string order_of(const PaymentsWorld& world, const std::string& account) {
  return world.value(fmt::format(
      "SELECT string_agg(number::text, ',' ORDER BY position) FROM ordered WHERE account = '{}'",
      account));
}

inline std::string statuses(const PaymentsWorld& world) {
  return world.value(
      "SELECT string_agg(idempotency_key || ' ' || status, ', ' ORDER BY partition, kafka_offset) "
      "FROM pawl.dead_letters");
}

/// As `dlq discard` and `dlq replay` leave a letter.
inline void resolve(const PaymentsWorld& world, const std::string& key, const std::string& status) {
  world.execute(
      fmt::format("SELECT pawl.resolve_dead_letter(dead_letter_id, NULL, '{}', 'test') "
                  "FROM pawl.dead_letters WHERE idempotency_key = '{}'",
                  status, key));
}

}  // namespace pawl::test
