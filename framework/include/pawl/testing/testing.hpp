#pragma once

// All fixtures for tests of programs that use pawl, on a real PostgreSQL and a real Kafka. Link
// with pawl::testing, and set PAWL_SCRIPTS to the folder of pawl's scripts. This test runs a
// consumer on one payment.
//
//   #include <chrono>
//   #include <pawl/consumer.hpp>
//   #include <pawl/testing/testing.hpp>
//   #include <pqxx/pqxx>
//
//   int main() {
//     auto& kafka = pawl::testing::KafkaBroker::shared();
//     const std::string url = pawl::testing::PostgresServer::shared().create_database();
//     pqxx::connection connection(url);
//     pqxx::nontransaction sql(connection);
//     sql.exec("CREATE TABLE payments (payment jsonb)");
//
//     pawl::Options options;
//     options.kafka.bootstrap_servers = kafka.bootstrap();
//     options.kafka.group = "payments";
//     options.postgres.url = url;
//     options.idempotency.key = "{key}";
//     options.consumer.drain = true;
//     auto& handler = options.handlers.emplace_back();
//     handler.topics = {kafka.new_topic("payments", 1)};
//     handler.sql = {{.text = "INSERT INTO payments VALUES ({value}::jsonb)"}};
//
//     pawl::testing::KafkaProducer producer(kafka.bootstrap());
//     producer.send(handler.topics[0], {.key = "1", .value = R"({"amount": 100})"});
//     producer.flush();
//     const auto result = pawl::Consumer(options, {}).run();
//     const auto rows = sql.exec("SELECT count(*) FROM payments").one_field().as<int>();
//     return result == pawl::RunResult::kStopped && rows == 1 ? 0 : 1;
//   }

#include <pawl/testing/child_process.hpp>
#include <pawl/testing/kafka_broker.hpp>
#include <pawl/testing/kafka_producer.hpp>
#include <pawl/testing/kafka_reader.hpp>
#include <pawl/testing/occurrences.hpp>
#include <pawl/testing/postgres_proxy.hpp>
#include <pawl/testing/postgres_server.hpp>
#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>
#include <pawl/testing/wait.hpp>
