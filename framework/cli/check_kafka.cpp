// What `check` reads from Kafka.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>

#include "cli/check.hpp"
#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/partition_view.hpp"
#include "engine/assignment_halts.hpp"
#include "engine/commit_metadata.hpp"
#include "engine/first_positions.hpp"
#include "engine/halt_rendering.hpp"
#include "engine/topic_directory.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/published_topics.hpp"
#include "handlers/topic_entries.hpp"
#include "kafka/producer.hpp"
#include "ledger/offset_register.hpp"
#include "ledger/other_consumers.hpp"
#include "outbox/lane.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

/// Of one line.
constexpr std::size_t kMostNames = 8;

std::string first_names(const auto& names) {
  std::vector<std::string> shown;
  for (const auto& name : names | std::views::take(kMostNames))
    shown.push_back(name);
  const auto all = static_cast<std::size_t>(std::ranges::distance(names));
  return fmt::format(
      "{}{}", fmt::join(shown, ", "),
      all == shown.size() ? std::string() : fmt::format(", {} more", all - shown.size()));
}

/// A topic that handlers publish to, with the first statement that names it.
std::string published_text(const std::pair<const std::string, std::string>& topic) {
  return fmt::format("{} ({})", topic.first, topic.second);
}

}  // namespace

void Check::check_kafka() {
  findings_.section("Kafka");
  try {
    const auto client = make_client(options_);
    client->require_usable(kKafkaTimeout);
    const auto cluster = client->cluster_id(kKafkaTimeout);
    findings_.good(fmt::format("cluster {} at {}", cluster, options_.kafka.bootstrap_servers));
    if (consumer_)
      require_same_cluster(options_, consumer_->kafka_cluster_id, cluster);
    check_group_protocol(*client);
    check_topics(*client);
    check_dead_letter_topic(*client);
    check_outbox_topic(*client);
    check_outbox_transactions(*client);
    check_published_topics(*client);
    check_first_contacts(*client, cluster);
    check_stored_offsets(*client);
  } catch (const FatalError& error) {
    findings_.section("Kafka");
    findings_.wrong(error.what());
  } catch (const postgres::Error& error) {
    findings_.section("PostgreSQL");
    findings_.wrong(
        fmt::format("{} (SQLSTATE {}); fix that and check again", error.what(), error.sqlstate()));
  } catch (const kafka::KafkaError& error) {
    findings_.section("Kafka");
    findings_.wrong(fmt::format("{}: {}. If brokers respond there, check [kafka.librdkafka]",
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
          "kafka.group_protocol = \"consumer\": it is unknown whether these brokers support it, "
          "because they do not report {}. Brokers before Kafka 4.0 do not by default; for them, "
          "set "
          "kafka.group_protocol = \"classic\"",
          kSetting));
    } else if (offered->find("consumer") == std::string::npos) {
      findings_.wrong(fmt::format(
          "kafka.group_protocol = \"consumer\": these brokers do not support it ({} = {}); set "
          "kafka.group_protocol = \"classic\"",
          kSetting, *offered));
    }
  } catch (const kafka::KafkaError& error) {
    findings_.note(fmt::format(
        "kafka.group_protocol = \"consumer\": it is unknown whether these brokers support it: {}",
        error.what()));
  }
}

void Check::check_topics(const kafka::Client& client) {
  const auto entries = handlers::topic_entries(options_);
  const auto [topics, ambiguous] = choose_topics(options_, client);
  for (const auto& pattern : entries.patterns()) {
    const auto means = std::ranges::count_if(
        topics, [&](const auto& topic) { return entries.entry_of(topic) == pattern.text(); });
    findings_.note(fmt::format("{} matches {} now; topics that are created later are followed",
                               pattern.text(), counted(means, "topic", "topics")));
  }
  for (const auto& [topic, patterns] : ambiguous)
    findings_.wrong(message::ambiguous_topic_text(topic, patterns));
  const auto answers = client.describe_each(topics, kKafkaTimeout);
  std::int64_t partitions = 0;
  bool has_ids = true;
  for (const auto& topic : topics) {
    if (const auto refused = answers.refused.find(topic); refused != answers.refused.end()) {
      findings_.wrong(engine::topic_refused_text(topic, refused->second.what()));
      continue;
    }
    const auto found = answers.described.find(topic);
    if (found == answers.described.end()) {
      findings_.wrong(
          fmt::format("topic {} does not exist; create it, or fix the handlers' topics", topic));
      continue;
    }
    topics_[topic] = found->second;
    partitions += found->second.partitions;
    has_ids = has_ids && !found->second.id.empty();
  }
  if (!topics_.empty()) {
    findings_.good(fmt::format("{}, {}: {}", counted(std::ssize(topics_), "topic", "topics"),
                               counted(partitions, "partition", "partitions"),
                               first_names(std::views::keys(topics_))));
  }
  if (!has_ids) {
    findings_.note(
        "the broker has no topic IDs, so pawl detects a recreated topic only by its offsets");
  }
}

void Check::check_dead_letter_topic(const kafka::Client& client) {
  const auto& topic = options_.dead_letters.topic;
  if (topic.empty())
    return;
  findings_.section("Dead letters");
  // Properties may suit a consumer and no producer.
  const kafka::Producer producer(options_.kafka, options_.dead_letters.max_payload, {});
  const auto described = client.describe({topic}, kKafkaTimeout);
  const auto found = described.find(topic);
  if (found == described.end()) {
    findings_.wrong(
        fmt::format("dead_letters.topic {} does not exist; create it. Without it, dead letters are "
                    "only in pawl.dead_letters",
                    topic));
  } else {
    findings_.good(fmt::format("dead_letters.topic {}, {}", topic,
                               counted(found->second.partitions, "partition", "partitions")));
  }
}

void Check::check_outbox_topic(const kafka::Client& client) {
  const auto& topic = options_.outbox.state_topic;
  if (!needs_transactions())
    return;
  findings_.section("Outbox");
  const auto described = client.describe({topic}, kKafkaTimeout);
  if (const auto found = described.find(topic); found != described.end()) {
    findings_.good(fmt::format("outbox.state_topic {}", topic));
    if (found->second.partitions != 1)
      findings_.warn(
          fmt::format("outbox.state_topic {} has {} partitions, as if it were for messages; give "
                      "the outbox a topic of its own with one partition",
                      topic, found->second.partitions));
  } else {
    findings_.note(fmt::format(
        "outbox.state_topic {} will be created by `{}` if the broker permits it. Otherwise create "
        "it:\n  kafka-topics.sh --bootstrap-server {} --create --topic {} --partitions 1",
        topic, relays_only_ ? "relay" : "run", options_.kafka.bootstrap_servers, topic));
  }
}

void Check::check_outbox_transactions(const kafka::Client& client) {
  if (!needs_transactions())
    return;
  findings_.section("Outbox");
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
        fmt::format("it is unknown whether the brokers allow the outbox's transactions of {} ms "
                    "({}): {}",
                    needed, kSetting, error.what()));
  }
}

/// Topics that would reject messages of the outbox, and names that pawl.publish rejects. Only of
/// topics that the configuration names.
void Check::check_published_topics(const kafka::Client& client) {
  findings_.section("Outbox");
  std::map<std::string, std::string> labels;  // by topic, of the first statement that names it
  const auto look = [&](const std::string& label, const std::string& sql,
                        const SourceLocation& where) {
    for (const auto& topic : handlers::published_topics(sql, options_.postgres.schema)) {
      const auto place = fmt::format("{}{}{}", where, where.empty() ? "" : ": ", label);
      if (handlers::is_topic_name(topic)) {
        labels.emplace(topic, place);
      } else {
        findings_.wrong(fmt::format(
            "{}: pawl.publish rejects \"{}\" as the name of a topic, which has 1 to 249 letters, "
            "digits, dots, underscores, and hyphens; fix it",
            place, topic));
      }
    }
  };
  for (std::size_t i = 0; i < options_.handlers.size(); ++i) {
    const auto& handler = options_.handlers[i];
    for (const auto& [name, label, written, responds] :
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
  std::vector<std::string> writable;
  for (const auto& named : labels) {
    const auto& [topic, label] = named;
    const auto found = answers.described.find(topic);
    if (found != answers.described.end() && found->second.may_write) {
      writable.push_back(published_text(named));
      continue;
    }
    const bool missing = found == answers.described.end() && !answers.refused.contains(topic);
    findings_.wrong(
        fmt::format("{} publishes to topic {}, and its messages would fail: {}{}", label, topic,
                    engine::why_not_written(answers, topic),
                    missing ? fmt::format("; create it:\n  kafka-topics.sh --bootstrap-server {} "
                                          "--create --topic {}",
                                          options_.kafka.bootstrap_servers, topic)
                            : ""));
  }
  if (!writable.empty()) {
    findings_.good(fmt::format("{} to publish to: {}",
                               counted(std::ssize(writable), "topic", "topics"),
                               fmt::join(writable, ", ")));
  }
}

void Check::check_first_contacts(const kafka::Client& client, const std::string& cluster_id) {
  if (!rows_)
    return;
  findings_.section("Start");
  for (const auto& [topic, description] : topics_) {
    const bool stored = std::any_of(rows_->begin(), rows_->end(), [name = topic](const auto& row) {
      return row.partition.topic == name;
    });
    std::vector<TopicPartition> partitions;
    for (std::int32_t p = 0; p < description.partitions; ++p)
      partitions.push_back({topic, p});
    const bool well = stored || check_committed(client, topic, partitions);
    if (check_beside(topic, cluster_id, stored) && well && !stored)
      find_first_positions(client, partitions);
  }
  tell_first_positions();
}

/// Partitions that halt for one reason are one line.
void Check::check_stored_offsets(const kafka::Client& client) {
  if (!rows_ || !consumer_)
    return;
  findings_.section("Start");
  std::vector<const ledger::RegisterRow*> rows;
  std::vector<TopicPartition> partitions;
  std::set<TopicPartition> stored;
  for (const auto& row : *rows_) {
    stored.insert(row.partition);
    const auto topic = topics_.find(row.partition.topic);
    if (topic == topics_.end() || row.partition.partition >= topic->second.partitions)
      continue;
    rows.push_back(&row);
    partitions.push_back(row.partition);
  }
  engine::AssignmentHalts halts;
  if (!rows.empty()) {
    halts = engine::halts_at_assignment(
        client, rows, topics_, client.log_ranges(partitions, kKafkaTimeout), kKafkaTimeout);
  }
  const ledger::OffsetRegister offsets(options_.postgres.schema, consumer_->id);
  for (const auto& [topic, description] : topics_) {
    std::vector<std::int32_t> missing;
    for (std::int32_t p = 0; p < description.partitions; ++p) {
      if (!stored.contains({topic, p}))
        missing.push_back(p);
    }
    if (missing.empty())
      continue;
    const auto known = offsets.find_topic(*session_, topic);
    if (!known)
      continue;
    for (const auto p : missing) {
      if (auto halt = engine::halt_of_missing_row(p, known->partitions))
        halts.emplace(TopicPartition{topic, p}, *std::move(halt));
    }
  }
  for (const auto& names : engine::by_cause(halts)) {
    const auto& first = names.front();
    const bool alone = names.size() == 1;
    findings_.wrong(fmt::format(
        "{} will halt, at the latest when a process acquires {}{}: {}", names_of(names),
        alone ? "it" : "them",
        alone ? "" : fmt::format(". For {}, and in the same way for the others", name_of(first)),
        engine::halt_text(halts.at(first), options_, first)));
  }
}

bool Check::check_committed(const kafka::Client& client, const std::string& topic,
                            const std::vector<TopicPartition>& partitions) {
  if (const auto committed = engine::committed_by_pawl(client, partitions, kKafkaTimeout)) {
    findings_.wrong(fmt::format(
        "group {} has processed {} into database {}, but this one ({}) has no offset of it: "
        "fix postgres.url, restore the database, or set offsets with `offsets set`",
        options_.kafka.group, topic, committed->database_id, database_id_));
    return false;
  }
  return true;
}

/// Whether the consumer may start or continue with a topic that others process.
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
    findings_.note(fmt::format("topic {}: another consumer of this database also processes it: {}",
                               topic, engine::describe(other)));
  }
  return true;
}

KafkaOptions Check::start_of(const std::string& topic) const {
  const auto entry = handlers::topic_entries(options_).entry_of(topic);
  return engine::first_start(options_.kafka, ledger::came_later(first_topics_, entry, topic));
}

void Check::find_first_positions(const kafka::Client& client,
                                 const std::vector<TopicPartition>& partitions) {
  if (partitions.empty())
    return;
  const auto& topic = partitions.front().topic;
  if (options_.kafka.start == Start::kHalt) {
    findings_.warn(fmt::format(
        "topic {} is new to this consumer and would halt, because kafka.start = "
        "\"halt\". Set where to start, for example:\n  {} --topic {} --all --to earliest",
        topic, command_text(options_.invocation, "offsets set"), shell_word(topic)));
    return;
  }
  const auto positions =
      engine::first_positions(client, start_of(topic), partitions, kKafkaTimeout);
  starts_.insert(starts_.end(), positions.begin(), positions.end());
}

/// Partitions that start for one reason are one line.
void Check::tell_first_positions() {
  std::map<engine::FirstPositionReason, std::vector<engine::FirstPosition>> by_reason;
  for (const auto& start : starts_)
    by_reason[start.reason].push_back(start);
  for (const auto& [reason, starts] : by_reason) {
    std::vector<TopicPartition> partitions;
    for (const auto& start : starts)
      partitions.push_back(start.partition);
    const auto [least, most] = std::ranges::minmax(starts, {}, &engine::FirstPosition::next);
    findings_.note(fmt::format(
        "{} {} at {}: {}", names_of(partitions), partitions.size() == 1 ? "starts" : "start",
        least.next == most.next ? fmt::format("offset {}", least.next)
                                : fmt::format("offsets {} to {}", least.next, most.next),
        engine::to_string(reason)));
  }
}

}  // namespace pawl::cli
