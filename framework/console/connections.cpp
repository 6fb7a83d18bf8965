#include "console/connections.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "config/redact.hpp"
#include "handlers/topic_entries.hpp"
#include "kafka/choose_topics.hpp"
#include "kafka/fetch_one.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"
#include "postgres/connect_advice.hpp"

namespace pawl::cli {

std::unique_ptr<postgres::Session> connect_bare(const Options& options) {
  auto settings = postgres::settings_of(options.postgres);
  settings.application_name = "pawl command";
  try {
    return std::make_unique<postgres::Session>(settings);
  } catch (const postgres::Error& error) {
    const std::string why = error.what();
    const bool answered = postgres::is_answer(why);
    // Advice about a known cause names the option.
    const auto* const advice = why.find("postgres.") != std::string::npos ? ""
                               : answered ? ". Check postgres.url and pg_hba.conf of the server"
                                          : ". Is the server running? Check postgres.url";
    throw NoConnection(fmt::format("cannot connect to {}: {}{}",
                                   config::redact_url(options.postgres.url), why, advice),
                       answered);
  }
}

std::unique_ptr<postgres::Session> connect_database(const Options& options) {
  auto session = connect_bare(options);
  ledger::require_schema(*session, options.postgres.schema,
                         command_text(options.invocation, "migrate up"));
  return session;
}

std::unique_ptr<kafka::Client> make_client(const Options& options) {
  return std::make_unique<kafka::Client>(options.kafka, kafka::LogFunction{});
}

std::unique_ptr<kafka::Client> make_client_of_one_message(const Options& options) {
  auto kafka = options.kafka;
  // librdkafka looks again whether its queue has room when the command has ended. Not much later:
  // an error in the queue makes it wait as well.
  kafka.librdkafka["fetch.queue.backoff.ms"] = "3000";
  return kafka::client_of_one_message(std::move(kafka));
}

message::TopicEntries::Chosen choose_topics(const Options& options, const kafka::Client& client) {
  return kafka::choose_topics(client, handlers::topic_entries(options), kKafkaTimeout);
}

std::vector<std::string> topics_of(const Options& options,
                                   const std::vector<std::string>& existing) {
  return handlers::topic_entries(options).choose(existing).topics;
}

void require_same_cluster(const Options& options, const std::string& known,
                          const std::string& found) {
  if (known.empty() || known == found)
    return;
  throw FatalError(fmt::format(
      "consumer {}/{} belongs to Kafka cluster {}, but kafka.bootstrap_servers is cluster {}. Fix "
      "bootstrap_servers, or give the other cluster a name of its own: kafka.cluster",
      options.kafka.cluster, options.kafka.group, known, found));
}

}  // namespace pawl::cli
