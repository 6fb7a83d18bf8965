// What `status` asks PostgreSQL and Kafka.
#include <algorithm>
#include <chrono>
#include <set>

#include "cli/status_source.hpp"
#include "config/redact.hpp"
#include "console/connections.hpp"
#include "console/partition_view.hpp"
#include "console/topics_seen.hpp"
#include "engine/assignment_halts.hpp"
#include "engine/owner.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

constexpr std::chrono::seconds kSpared{10};

StatusCounts counts_of(const Status& status) {
  StatusCounts counts;
  for (const auto& partition : status.partitions) {
    counts.add(partition.row ? &*partition.row : nullptr, partition.end_before, partition.blocked);
  }
  for (const auto& count : status.letters) {
    if (count.status == "parked") {
      counts.parked_messages += count.letters;
    } else {
      counts.dead_letters += count.letters - count.retried;
      counts.retry_later += count.retried;
    }
  }
  return counts;
}

std::int64_t own_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::optional<std::int64_t> StatusPartition::lag() const {
  return lag_of(row ? &*row : nullptr, end);
}

StatusTotals totals_of(const Status& status) {
  StatusTotals totals;
  const bool asked = status.postgres_problem.empty();
  if (asked || !status.partitions.empty())
    totals.partitions = status.partitions.size();
  if (asked)
    totals.counts = counts_of(status);
  std::int64_t lag = 0;
  bool lag_known = !status.partitions.empty();
  for (const auto& partition : status.partitions) {
    lag_known = lag_known && partition.lag().has_value();
    lag += partition.lag().value_or(0);
    if (partition.rate)
      totals.rate = totals.rate.value_or(0) + *partition.rate;
  }
  if (lag_known)
    totals.lag = lag;
  totals.eta_seconds = status.eta_seconds;
  return totals;
}

std::vector<std::string> unstored_topics(const Status& status) {
  std::map<std::string, bool> stored;
  for (const auto& partition : status.partitions)
    stored[partition.partition.topic] |= partition.row.has_value();
  std::vector<std::string> topics;
  for (const auto& [topic, any] : stored) {
    if (!any)
      topics.push_back(topic);
  }
  return topics;
}

std::vector<std::string> kafka_waits(const Status& status) {
  std::set<std::string> processes;
  for (const auto& [owner, condition] : status.conditions) {
    if (condition.kind == Condition::Kind::kKafkaUnreachable)
      processes.insert(owner);
  }
  return {processes.begin(), processes.end()};
}

bool needs_somebody(const Status& status) {
  // Patterns may mean nothing yet; who has never run is another matter.
  const bool nothing = status.partitions.empty() && !(status.known && status.awaits_topics);
  return totals_of(status).counts.value_or(StatusCounts{}).halted > 0 || nothing ||
         !status.pending_halts.empty() || !unstored_topics(status).empty() ||
         !status.missing_topics.empty() ||
         std::ranges::any_of(status.conditions,
                             [](const auto& one) { return one.condition.lasting; }) ||
         (status.outbox && status.outbox->late());
}

Status StatusSource::look(AwayKafka away) {
  Status status;
  status.invocation = options_.invocation;
  status.cluster = options_.kafka.cluster;
  status.group = options_.kafka.group;
  status.bootstrap_servers = options_.kafka.bootstrap_servers;
  status.place_kept = engine::place_kept_text(options_.kafka);
  status.database = config::redact_url(options_.postgres.url);
  status.now_ms = own_clock_ms();
  ask_postgres(status);
  find_rates(status);
  const auto now = std::chrono::steady_clock::now();
  if (away == AwayKafka::kSpare && !kafka_problem_.empty() && now < ask_kafka_again_) {
    status.kafka_problem = kafka_problem_;
  } else {
    ask_kafka(status);
    kafka_problem_ = status.kafka_problem;
    ask_kafka_again_ = std::chrono::steady_clock::now() + kSpared;
  }
  if (status.postgres_problem.empty()) {
    const auto blocked = ledger::blocked_partitions(ledger::shared_conditions(status.conditions));
    for (auto& partition : status.partitions) {
      partition.blocked = blocked.contains(partition.partition);
      partition.concern = concern_of(partition.row ? &*partition.row : nullptr,
                                     partition.end_before, partition.blocked);
    }
  }
  find_etas(status);
  return status;
}

void StatusSource::ask_postgres(Status& status) {
  try {
    if (!session_)
      session_ = connect_database(options_);
    const auto& schema = options_.postgres.schema;
    const auto consumer =
        ledger::find_consumer(*session_, schema, options_.kafka.cluster, options_.kafka.group);
    status.known = consumer.has_value();
    status.server = ledger::look_at_server(*session_, schema,
                                           consumer ? std::optional{consumer->id} : std::nullopt,
                                           options_.kafka.group);
    status.now_ms = status.server.now_ms;
    status.outbox = ledger::OutboxView(schema).look(*session_, options_.outbox.alert_age);
    if (!consumer)
      return;
    // In Redis they are not looked at, and what is not known is not none.
    if (options_.calls.lease_store == LeaseStore::kPostgres)
      status.leases = ledger::LeaseView(schema, consumer->id).count(*session_);
    status.letters = ledger::DeadLetterView(schema, consumer->id).counts(*session_, {});
    const auto live = ledger::live_processes(*session_, schema, consumer->id);
    status.differing = ledger::differing_topics(live);
    std::set<std::string> owners;
    for (const auto& process : live)
      owners.insert(process.owner);
    status.processes.assign(owners.begin(), owners.end());
    status.conditions = ledger::live_conditions(*session_, schema, consumer->id);
    for (auto& row : ledger::read_register(*session_, schema, consumer->id, "")) {
      StatusPartition partition;
      partition.partition = row.partition;
      if (row.state == ledger::PartitionState::kHalted)
        status.halts.emplace(row.partition, engine::rendered(row.halt, options_, row.partition));
      partition.row = std::move(row);
      status.partitions.push_back(std::move(partition));
    }
  } catch (const NoConnection& error) {
    status.postgres_problem = error.what();
    status.postgres_answers = error.answered();
  } catch (const FatalError& error) {
    status.postgres_problem = error.what();
  } catch (const postgres::Error& error) {
    status.postgres_problem = error.what();
    status.postgres_answers = error.failure() != postgres::FailureClass::kConnection;
  } catch (const postgres::InDoubt& error) {
    status.postgres_problem = error.what();
    status.postgres_answers = false;
  }
  if (!status.postgres_problem.empty()) {
    session_.reset();
    status.partitions.clear();
    status.halts.clear();
    status.letters.clear();
    status.outbox.reset();
    status.leases.reset();
    status.processes.clear();
    status.differing.clear();
    status.conditions.clear();
  }
}

void StatusSource::ask_kafka(Status& status) {
  std::set<TopicPartition> stored;
  std::vector<const ledger::RegisterRow*> rows;
  for (const auto& partition : status.partitions) {
    stored.insert(partition.partition);
    rows.push_back(&*partition.row);
  }
  auto look = look_at_kafka(options_, client_, {stored.begin(), stored.end()}, true);
  look_back(look, client_.get(), rows);
  status.kafka_problem = look.problem;
  const auto topics = topics_seen(options_, look, stored);
  status.refused_topics = topics.refused;
  status.ambiguous_topics = topics.ambiguous;
  if (!look.problem.empty())
    return;
  status.missing_topics = topics.missing;
  status.gone_topics = topics.gone;
  status.awaits_topics = look.handled.empty() && look.ambiguous.empty();
  find_pending_halts(status, look);
  for (const auto& unstored : topics.unstored) {
    for (const auto p : unstored.partitions)
      status.partitions.emplace_back().partition = {unstored.topic, p};
  }
  std::ranges::sort(status.partitions, {}, &StatusPartition::partition);
  for (auto& partition : status.partitions) {
    partition.end = look.end_of(partition.partition);
    partition.end_before = look.end_before(partition.partition);
  }
}

/// Of topics that have a handler: no process is assigned the partitions of others.
void StatusSource::find_pending_halts(Status& status, const KafkaLook& look) const {
  std::vector<const ledger::RegisterRow*> rows;
  for (const auto& partition : status.partitions) {
    if (partition.row &&
        std::ranges::find(look.handled, partition.partition.topic) != look.handled.end())
      rows.push_back(&*partition.row);
  }
  try {
    for (auto& [partition, halt] :
         engine::halts_at_assignment(*client_, rows, look.topics, look.ranges, kKafkaTimeout)) {
      auto text = engine::rendered(halt, options_, partition);
      status.pending_halts.emplace(partition, PendingHalt{std::move(halt), std::move(text)});
    }
  } catch (const kafka::KafkaError& error) {
    status.kafka_problem = error.what();
  }
}

/// By how much the lag has shrunk since the last look tells when it is gone: what producers add
/// meanwhile counts.
void StatusSource::find_etas(Status& status) {
  const auto elapsed = std::chrono::milliseconds(status.now_ms - placed_at_ms_);
  ops::Places places;
  for (auto& partition : status.partitions) {
    const auto next = partition.row ? std::optional(partition.row->stored.next()) : std::nullopt;
    const auto& place = places[partition.partition] = {next, partition.lag(),
                                                       partition.concern > Concern::kProbation};
    if (const auto before = places_.find(partition.partition); before != places_.end())
      partition.eta_seconds = ops::seconds_to_catch_up(before->second, place, elapsed);
  }
  status.eta_seconds = ops::seconds_to_catch_up(places_, places, elapsed);
  places_ = std::move(places);
  placed_at_ms_ = status.now_ms;
}

void StatusSource::find_oldest(Status& status) const {
  std::map<TopicPartition, std::int64_t> next;
  for (const auto& partition : status.partitions) {
    if (partition.lag().value_or(0) > 0)
      next.emplace(partition.partition, partition.row->stored.next());
  }
  if (!client_ || !status.kafka_problem.empty())
    return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  try {
    status.oldest = cli::find_oldest(std::move(next), [&](const auto& partitions, auto age) {
      return client_->offsets_at(partitions, now - age, kKafkaTimeout);
    });
  } catch (const kafka::KafkaError&) {
    // The next sample reports an outage.
    status.oldest.reset();
  }
}

void StatusSource::find_rates(Status& status) {
  if (!status.postgres_problem.empty())
    return;
  const auto seconds = static_cast<double>(status.now_ms - counted_at_ms_) / 1000;
  std::map<TopicPartition, Counted> counted;
  for (auto& partition : status.partitions) {
    const Counted now{partition.row->processed(), partition.row->base_offset};
    const auto before = counted_.find(partition.partition);
    // A position that was set by hand begins to count anew.
    if (before != counted_.end() && before->second.base_offset == now.base_offset &&
        now.processed >= before->second.processed && seconds > 0) {
      partition.rate = static_cast<double>(now.processed - before->second.processed) / seconds;
    }
    counted[partition.partition] = now;
  }
  counted_ = std::move(counted);
  counted_at_ms_ = status.now_ms;
}

}  // namespace pawl::cli
