// What `check` asks Kafka.
#include <fmt/format.h>

#include <algorithm>

#include "cli/check.hpp"
#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "console/connections.hpp"
#include "engine/commit_metadata.hpp"
#include "engine/first_positions.hpp"
#include "engine/halt_rendering.hpp"
#include "engine/topic_directory.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/published_topics.hpp"
#include "handlers/topic_entries.hpp"
#include "kafka/producer.hpp"
#include "ledger/other_consumers.hpp"
#include "outbox/lane.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

/// Of one topic; the rest is counted.
constexpr std::size_t kMostPositions = 64;

}  // namespace

void Check::check_kafka() {
  try {
    const auto client = make_client(options_);
    client->require_usable(kKafkaTimeout);
    const auto cluster = client->cluster_id(kKafkaTimeout);
    findings_.good(
        fmt::format("Kafka cluster {} at {}", cluster, options_.kafka.bootstrap_servers));
    if (consumer_)
      require_same_cluster(options_, consumer_->kafka_cluster_id, cluster);
    check_group_protocol(*client);
    check_topics(*client);
    check_dead_letter_topic(*client);
    check_outbox_topic(*client);
    check_outbox_transactions(*client);
    check_published_topics(*client);
    check_first_contacts(*client, cluster);
  } catch (const FatalError& error) {
    findings_.wrong(error.what());
  } catch (const postgres::Error& error) {
    findings_.wrong(fmt::format("PostgreSQL: {} (SQLSTATE {}); correct that and check again",
                                error.what(), error.sqlstate()));
  } catch (const kafka::KafkaError& error) {
    findings_.wrong(
        fmt::format("Kafka at {}: {}; if brokers do answer there, look at [kafka.librdkafka]",
                    options_.kafka.bootstrap_servers, error.what()));
  }
}

/// The default of a broker before 4.0 is without it (KIP-848), and it would assign nothing.
void Check::check_group_protocol(const kafka::Client& client) {
  if (options_.kafka.group_protocol != GroupProtocol::kConsumer)
    return;
  constexpr const char* kSetting = "group.coordinator.rebalance.protocols";
  try {
    const auto offered = client.broker_setting(kSetting, kKafkaTimeout);
    if (!offered) {
      findings_.note(fmt::format(
          "kafka.group_protocol = \"consumer\": whether these brokers share out partitions "
          "themselves could not be seen: they do not tell {}. Brokers before Kafka 4.0 do not by "
          "default; for them write kafka.group_protocol = \"classic\"",
          kSetting));
    } else if (offered->find("consumer") == std::string::npos) {
      findings_.wrong(fmt::format(
          "kafka.group_protocol = \"consumer\": these brokers do not share out partitions "
          "themselves ({} = {}); write kafka.group_protocol = \"classic\"",
          kSetting, *offered));
    }
  } catch (const kafka::KafkaError& error) {
    findings_.note(fmt::format(
        "whether the brokers share out partitions themselves, as kafka.group_protocol = "
        "\"consumer\" wants it, could not be seen: {}",
        error.what()));
  }
}

void Check::check_topics(const kafka::Client& client) {
  const auto entries = handlers::topic_entries(options_);
  const auto [topics, ambiguous] = choose_topics(options_, client);
  for (const auto& pattern : entries.patterns()) {
    const auto means = std::ranges::count_if(
        topics, [&](const auto& topic) { return entries.entry_of(topic) == pattern.text(); });
    findings_.note(fmt::format("{} means {} now; what is created later is followed", pattern.text(),
                               means == 1 ? "1 topic" : fmt::format("{} topics", means)));
  }
  for (const auto& [topic, patterns] : ambiguous)
    findings_.wrong(message::ambiguous_topic_text(topic, patterns));
  const auto answers = client.describe_each(topics, kKafkaTimeout);
  for (const auto& topic : topics) {
    if (const auto refused = answers.refused.find(topic); refused != answers.refused.end()) {
      findings_.wrong(engine::topic_refused_text(topic, refused->second.what()));
      continue;
    }
    const auto found = answers.described.find(topic);
    if (found == answers.described.end()) {
      findings_.wrong(
          fmt::format("topic {} does not exist in Kafka; create it, or correct the "
                      "handlers' topics",
                      topic));
      continue;
    }
    topics_[topic] = found->second;
    findings_.good(fmt::format(
        "topic {}, {} {}{}", topic, found->second.partitions,
        found->second.partitions == 1 ? "partition" : "partitions",
        found->second.id.empty() ? "; the broker has no topic ids, so a topic that is deleted and "
                                   "created again is noticed only by its offsets"
                                 : ""));
  }
}

void Check::check_dead_letter_topic(const kafka::Client& client) {
  const auto& topic = options_.dead_letters.topic;
  if (topic.empty())
    return;
  // Properties may suit a consumer and no producer.
  const kafka::Producer producer(options_.kafka, options_.dead_letters.max_payload, {});
  const auto described = client.describe({topic}, kKafkaTimeout);
  const auto found = described.find(topic);
  if (found == described.end()) {
    findings_.wrong(
        fmt::format("dead_letters.topic {} does not exist in Kafka; create it, without it the "
                    "letters stay in pawl.dead_letters alone",
                    topic));
  } else {
    findings_.good(
        fmt::format("dead_letters.topic {}, {} partitions", topic, found->second.partitions));
  }
}

void Check::check_outbox_topic(const kafka::Client& client) {
  const auto& topic = options_.outbox.state_topic;
  if (!needs_transactions())
    return;
  const auto described = client.describe({topic}, kKafkaTimeout);
  if (const auto found = described.find(topic); found != described.end()) {
    findings_.good(fmt::format("outbox.state_topic {}", topic));
    if (found->second.partitions != 1)
      findings_.note(
          fmt::format("outbox.state_topic {} has {} partitions, as if it were for messages; give "
                      "the outbox one of its own, with one partition",
                      topic, found->second.partitions));
  } else {
    findings_.note(fmt::format(
        "outbox.state_topic {} does not exist in Kafka: `{}` creates it where it may, "
        "else create it: kafka-topics.sh --bootstrap-server {} --create --topic {} "
        "--partitions 1",
        topic, relays_only_ ? "relay" : "run", options_.kafka.bootstrap_servers, topic));
  }
}

void Check::check_outbox_transactions(const kafka::Client& client) {
  if (!needs_transactions())
    return;
  constexpr const char* kSetting = "transaction.max.timeout.ms";
  const auto needed = engine::kTransactionTimeout.count();
  try {
    const auto allowed = client.broker_setting(kSetting, kKafkaTimeout);
    if (!allowed || std::stoll(*allowed) >= needed)
      return;
    findings_.wrong(
        fmt::format("the brokers allow transactions of {0} ms ({1}), and the outbox needs {2} ms: "
                    "set {1}={2} or more on the brokers, or outbox.transactions = false (at least "
                    "once)",
                    *allowed, kSetting, needed));
  } catch (const kafka::KafkaError& error) {
    findings_.note(
        fmt::format("whether the brokers allow the outbox's transactions of {} ms ({}) could not "
                    "be read: {}",
                    needed, kSetting, error.what()));
  }
}

/// What would be set apart, and what no transaction may publish. Only of topics that the
/// configuration writes out.
void Check::check_published_topics(const kafka::Client& client) {
  std::map<std::string, std::string> labels;  // by topic, of the first statement that names it
  const auto look = [&](const std::string& label, const std::string& sql,
                        const SourceLocation& where) {
    for (const auto& topic : handlers::published_topics(sql, options_.postgres.schema)) {
      const auto place = fmt::format("{}{}{}", where, where.empty() ? "" : ": ", label);
      if (handlers::is_topic_name(topic)) {
        labels.emplace(topic, place);
      } else {
        findings_.wrong(fmt::format(
            "{}: pawl.publish refuses \"{}\" as the name of a topic, which has 1 to 249 letters, "
            "digits, dots, underscores and hyphens; correct it",
            place, topic));
      }
    }
  };
  for (std::size_t i = 0; i < options_.handlers.size(); ++i) {
    const auto& handler = options_.handlers[i];
    for (const auto& [label, written, responds] :
         handlers::written_statements({i, handler.name}, handler))
      look(label, written.text, written.where);
  }
  if (labels.empty())
    return;
  std::vector<std::string> topics;
  for (const auto& [topic, label] : labels)
    topics.push_back(topic);
  const bool writes = options_.outbox.relay != RelayOutbox::kOff;
  const auto answers = client.describe_each(topics, kKafkaTimeout, writes);
  for (const auto& [topic, label] : labels) {
    const auto found = answers.described.find(topic);
    if (found != answers.described.end() && found->second.may_write) {
      findings_.good(fmt::format("topic {}, to which {} publishes", topic, label));
      continue;
    }
    const bool missing = found == answers.described.end() && !answers.refused.contains(topic);
    findings_.wrong(fmt::format(
        "{} publishes to topic {}, and its messages would be set apart: {}{}", label, topic,
        engine::why_not_written(answers, topic),
        missing ? fmt::format("; create it: kafka-topics.sh --bootstrap-server {} --create "
                              "--topic {}",
                              options_.kafka.bootstrap_servers, topic)
                : ""));
  }
}

void Check::check_first_contacts(const kafka::Client& client, const std::string& cluster_id) {
  if (!rows_)
    return;
  for (const auto& [topic, description] : topics_) {
    const bool stored = std::any_of(rows_->begin(), rows_->end(), [name = topic](const auto& row) {
      return row.partition.topic == name;
    });
    std::vector<TopicPartition> partitions;
    for (std::int32_t p = 0; p < description.partitions; ++p)
      partitions.push_back({topic, p});
    const bool well = stored || check_committed(client, topic, partitions);
    if (check_beside(topic, cluster_id, stored) && well && !stored)
      tell_first_positions(client, partitions);
  }
}

bool Check::check_committed(const kafka::Client& client, const std::string& topic,
                            const std::vector<TopicPartition>& partitions) {
  if (const auto committed = engine::committed_by_pawl(client, partitions, kKafkaTimeout)) {
    findings_.wrong(fmt::format(
        "group {} has processed {} into database {}, but this one ({}) has no offset of it: "
        "correct postgres.url, restore the database, or state positions with `offsets set`",
        options_.kafka.group, topic, committed->database_id, database_id_));
    return false;
  }
  return true;
}

/// Whether the consumer may begin, or go on with, a topic that others process.
bool Check::check_beside(const std::string& topic, const std::string& cluster_id, bool stored) {
  const auto others = ledger::other_consumers(
      *session_, options_.postgres.schema,
      {options_.kafka.cluster, options_.kafka.group, cluster_id, topic, topics_.at(topic).id});
  if (!stored) {
    if (const auto halt = engine::refuse_beside(start_of(topic), others)) {
      findings_.wrong(
          fmt::format("topic {}: {}", topic, engine::halt_text(*halt, options_, {topic, 0})));
      return false;
    }
  }
  for (const auto& other : others) {
    findings_.note(fmt::format("topic {}: another consumer of this database processes it too: {}",
                               topic, engine::describe(other)));
  }
  return true;
}

KafkaOptions Check::start_of(const std::string& topic) const {
  const auto entry = handlers::topic_entries(options_).entry_of(topic);
  return engine::first_start(options_.kafka, ledger::came_later(first_topics_, entry, topic));
}

void Check::tell_first_positions(const kafka::Client& client,
                                 const std::vector<TopicPartition>& partitions) {
  if (partitions.empty())
    return;
  if (options_.kafka.start == Start::kHalt) {
    findings_.note(
        fmt::format("topic {} is new to this consumer and would halt, by kafka.start = \"halt\": "
                    "state where to begin, for example: {} --topic {} --all --to earliest",
                    partitions.front().topic, command_text(options_.invocation, "offsets set"),
                    shell_word(partitions.front().topic)));
    return;
  }
  const auto positions = engine::first_positions(client, start_of(partitions.front().topic),
                                                 partitions, kKafkaTimeout);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto& [partition, next, reason] = positions[i];
    if (i == kMostPositions) {
      findings_.note(
          fmt::format("... and {} more partitions of {}", positions.size() - i, partition.topic));
      break;
    }
    findings_.note(fmt::format("{} [{}] would begin at {}: {}", partition.topic,
                               partition.partition, next, engine::to_string(reason)));
  }
}

}  // namespace pawl::cli
