#include "ops/metrics_text.hpp"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::ops {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr auto kMetrics = std::to_array<MetricRow>({
    {"pawl_build_info", "gauge", "version", "Always 1; the label has the version of pawl."},
    {"pawl_ready", "gauge", "", "1: /ready returns 200; 0: it returns 503."},
    {"pawl_heartbeat_age_seconds", "gauge", "",
     "Time since the slower of the consumer's two watching threads completed a round."},
    {"pawl_database_up", "gauge", "", "1: this process can use PostgreSQL; 0: it cannot."},
    {"pawl_wrong_database", "gauge", "",
     "1: postgres.url leads to another database, and nothing is processed."},
    {"pawl_kafka_up", "gauge", "", "1: Kafka responds to this process; 0: it does not."},
    {"pawl_redis_up", "gauge", "", "1: leases can be acquired from Redis; 0: none can."},
    {"pawl_database_connections_lost_total", "counter", "",
     "Connections to PostgreSQL that workers lost."},
    {"pawl_leases_lost_total", "counter", "",
     "Calls whose lease was lost before their outcome was recorded."},
    {"pawl_calls_in_flight", "gauge", "",
     "External calls in flight, or whose outcome is not stored yet."},
    {"pawl_warnings_total", "counter", "code", "Warnings."},
    {"pawl_lag_messages", "gauge", "topic, partition",
     "Messages from the stored offset to the end of Kafka's log."},
    {"pawl_next_offset", "gauge", "topic, partition", "Offset of the next message to process."},
    {"pawl_log_end_offset", "gauge", "topic, partition",
     "End of Kafka's log, as Kafka reported it last."},
    {"pawl_oldest_unprocessed_age_seconds", "gauge", "topic, partition",
     "Age of the next message, by its timestamp; 0: there is none."},
    {"pawl_partition_acquired", "gauge", "topic, partition",
     "1: this process has acquired the partition in PostgreSQL."},
    {"pawl_partition_halted", "gauge", "topic, partition", "1: the partition is halted."},
    {"pawl_partition_paused", "gauge", "topic, partition", "1: an operator paused the partition."},
    {"pawl_partition_on_probation", "gauge", "topic, partition",
     "1: messages that may have crashed a process are processed alone."},
    {"pawl_partition_fetch_crashes", "gauge", "topic, partition",
     "Consecutive processes that crashed while they fetched the partition's next message."},
    {"pawl_remote_service_unreachable", "gauge", "endpoint",
     "1: the endpoint of http handlers is unreachable."},
    {"pawl_remote_service_waiting_messages", "gauge", "endpoint",
     "Messages that wait for an unreachable endpoint."},
    {"pawl_partition_blocked", "gauge", "topic, partition",
     "1: a message of the partition waits for a lock that another session holds."},
    {"pawl_messages_applied_total", "counter", "topic, partition",
     "Messages applied and committed, including unchecked ones."},
    {"pawl_messages_unchecked_total", "counter", "topic, partition",
     "Messages applied without an idempotency key."},
    {"pawl_messages_duplicate_total", "counter", "topic, partition",
     "Messages whose idempotency key existed already."},
    {"pawl_messages_skipped_total", "counter", "topic, partition",
     "Messages skipped, and stored as skipped."},
    {"pawl_messages_dead_lettered_total", "counter", "topic, partition",
     "Messages stored as dead letters, including those without further retries."},
    {"pawl_messages_parked_total", "counter", "topic, partition",
     "Messages parked after a dead letter of their record key."},
    {"pawl_messages_retry_scheduled_total", "counter", "topic, partition",
     "Times that a retry of a message was scheduled."},
    {"pawl_messages_retry_succeeded_total", "counter", "topic, partition",
     "Messages with a scheduled retry that were applied, or had been."},
    {"pawl_messages_conflicting_total", "counter", "topic, partition",
     "Attempts of messages whose idempotency key existed with another payload."},
    {"pawl_commit_outcomes_unknown_total", "counter", "topic, partition",
     "Connections lost during COMMIT."},
    {"pawl_partition_fenced_total", "counter", "topic, partition",
     "Times that another process or an operator had taken over the partition."},
    {"pawl_partition_reacquired_total", "counter", "topic, partition",
     "Times that this process acquired the partition again while it was assigned."},
    {"pawl_partition_halts_total", "counter", "topic, partition",
     "Times that the partition halted."},
    {"pawl_failed_attempts_total", "counter", "topic, partition, reason",
     "Attempts of messages that failed."},
    {"pawl_fetch_to_commit_seconds", "histogram", "topic",
     "Time from taking a message from Kafka's queue to the response to its COMMIT."},
    {"pawl_handler_seconds", "histogram", "handler",
     "Time of handlers that returned, and of external calls."},
    {"pawl_commit_seconds", "histogram", "", "Round trips to PostgreSQL with a COMMIT."},
    {"pawl_pipeline_messages", "histogram", "", "Messages committed in one round trip."},
    {"pawl_batch_messages", "histogram", "", "Messages of one batch."},
    {"pawl_outbox_late", "gauge", "",
     "1: the oldest message of the outbox waits for longer than outbox.alert_age."},
    {"pawl_outbox_oldest_age_seconds", "gauge", "",
     "Age of the oldest message of the outbox; 0: there is none."},
    {"pawl_outbox_shards", "gauge", "", "Shards of the outbox that this process publishes."},
    {"pawl_outbox_unwritable_partitions", "gauge", "",
     "Topic partitions that this process cannot write to. Their messages wait in the outbox."},
    {"pawl_outbox_published_total", "counter", "", "Messages of the outbox that were published."},
    {"pawl_outbox_rejected_total", "counter", "", "Messages of the outbox that Kafka rejected."},
});

const MetricRow& row_of(std::string_view name) {
  const auto found = std::ranges::find(kMetrics, name, &MetricRow::name);
  if (found == kMetrics.end())
    throw std::logic_error(fmt::format("no metric has the name {}", name));
  return *found;
}

struct TallyName {
  Tally tally;
  std::string_view name;
};
constexpr std::array<TallyName, kTallies> kTallyNames{{
    {Tally::kApplied, "pawl_messages_applied_total"},
    {Tally::kUnchecked, "pawl_messages_unchecked_total"},
    {Tally::kDuplicates, "pawl_messages_duplicate_total"},
    {Tally::kSkipped, "pawl_messages_skipped_total"},
    {Tally::kDead, "pawl_messages_dead_lettered_total"},
    {Tally::kParked, "pawl_messages_parked_total"},
    {Tally::kRetryScheduled, "pawl_messages_retry_scheduled_total"},
    {Tally::kRetrySucceeded, "pawl_messages_retry_succeeded_total"},
    {Tally::kConflicts, "pawl_messages_conflicting_total"},
    {Tally::kCommitOutcomeUnknown, "pawl_commit_outcomes_unknown_total"},
    {Tally::kFenced, "pawl_partition_fenced_total"},
    {Tally::kReacquired, "pawl_partition_reacquired_total"},
    {Tally::kHalts, "pawl_partition_halts_total"},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTallyNames.size(); ++i) {
    if (static_cast<std::size_t>(kTallyNames[i].tally) != i)
      return false;
  }
  return true;
}
static_assert(is_in_order());

constexpr double kSecond = 1e9;

MetricType type_of(const MetricRow& row) {
  if (row.type == "counter")
    return MetricType::Counter;
  return row.type == "gauge" ? MetricType::Gauge : MetricType::Histogram;
}

class Families {
 public:
  void counter(std::string_view name, double value) { add(family(name), {}, value); }
  void gauge(std::string_view name, double value, Labels labels = {}) {
    add(family(name), std::move(labels), value);
  }
  void reached(std::string_view name, MetricsObserver::Reached reached) {
    if (reached != MetricsObserver::Reached::kUnknown)
      gauge(name, reached == MetricsObserver::Reached::kYes ? 1 : 0);
  }

  MetricFamily& family(std::string_view name) {
    const auto& row = row_of(name);
    return all_.emplace_back(
        MetricFamily{std::string(row.name), std::string(row.help), type_of(row), {}});
  }
  static void add(MetricFamily& family, Labels labels, double value) {
    auto& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  /// `unit`: so many of the histogram's are one of the metric's.
  static void add(MetricFamily& family, Labels labels, const Histogram& histogram, double unit) {
    auto& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    const auto counts = histogram.read();
    std::uint64_t below = 0;
    const auto bounds = histogram.bounds();
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      below += counts.by_bucket[i];
      metric.histogram.bucket.push_back({below, static_cast<double>(bounds[i]) / unit});
    }
    metric.histogram.sample_count = counts.all;
    metric.histogram.sample_sum = static_cast<double>(counts.sum) / unit;
  }
  void histogram(std::string_view name, const Histogram& histogram, double unit) {
    add(family(name), {}, histogram, unit);
  }
  void histograms(std::string_view name, const Series<Histogram>& series, const char* label,
                  double unit) {
    auto& family = this->family(name);
    series.each([&](const std::string& value, std::int32_t, const Histogram& histogram) {
      add(family, {{label, value}}, histogram, unit);
    });
  }

  /// Without those of which nothing is known.
  [[nodiscard]] std::string text() {
    std::erase_if(all_, [](const MetricFamily& family) { return family.metric.empty(); });
    return prometheus::TextSerializer().Serialize(all_);
  }

 private:
  std::vector<MetricFamily> all_;
};

Labels labels_of(const std::string& topic, std::int32_t partition) {
  return {{"topic", topic}, {"partition", std::to_string(partition)}};
}

void add_process(Families& families, const MetricsObserver& metrics, const ProcessLook& look) {
  families.gauge("pawl_build_info", 1, {{"version", look.version}});
  families.gauge("pawl_ready", look.unready.empty() ? 1 : 0);
  families.gauge("pawl_heartbeat_age_seconds", static_cast<double>(look.silent_for.count()) / 1000);
  families.reached("pawl_database_up", metrics.database());
  families.gauge("pawl_wrong_database", metrics.wrong_database() ? 1 : 0);
  families.reached("pawl_kafka_up", metrics.kafka());
  families.reached("pawl_redis_up", metrics.redis());
  families.counter("pawl_database_connections_lost_total",
                   static_cast<double>(metrics.connections_lost()));
  families.counter("pawl_leases_lost_total", static_cast<double>(metrics.leases_lost()));
  if (look.leases_held) {
    families.gauge("pawl_calls_in_flight", static_cast<double>(*look.leases_held));
  }
  auto& warnings = families.family("pawl_warnings_total");
  metrics.warnings().each(
      [&](const std::string& code, std::int32_t, const MetricsObserver::Counter& count) {
        Families::add(warnings, {{"code", code}}, static_cast<double>(count.load()));
      });
}

void add_outbox(Families& families, const MetricsObserver& metrics) {
  const auto now = std::chrono::steady_clock::now();
  if (const auto late = metrics.outbox_late(now)) {
    families.gauge("pawl_outbox_late", *late ? 1 : 0);
  }
  if (const auto waits = metrics.outbox_waits(now)) {
    families.gauge("pawl_outbox_oldest_age_seconds", static_cast<double>(waits->count()) / 1000);
  }
  if (!metrics.relays())
    return;
  const auto relayed = metrics.relayed();
  families.gauge("pawl_outbox_shards", static_cast<double>(relayed.shards));
  families.gauge("pawl_outbox_unwritable_partitions", static_cast<double>(relayed.unwritable));
  families.counter("pawl_outbox_published_total", static_cast<double>(relayed.published));
  families.counter("pawl_outbox_rejected_total", static_cast<double>(relayed.rejected));
}

/// Where the partitions stand that are this process's now: as `pawl status` would say.
void add_positions(Families& families, const ProcessLook& look) {
  const auto gauges = [&](std::string_view name, const auto& value_of) {
    auto& family = families.family(name);
    for (const auto& partition : look.partitions) {
      if (const std::optional<double> value = value_of(partition))
        Families::add(family, labels_of(partition.partition.topic, partition.partition.partition),
                      *value);
    }
  };
  const auto known = [](const std::optional<std::int64_t>& number) {
    return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
  };
  using Snapshot = PartitionSnapshot;
  gauges("pawl_lag_messages", [&](const Snapshot& partition) { return known(partition.lag()); });
  gauges("pawl_next_offset", [&](const Snapshot& partition) { return known(partition.next); });
  gauges("pawl_log_end_offset",
         [&](const Snapshot& partition) { return known(partition.log_end); });
  gauges("pawl_oldest_unprocessed_age_seconds", [&](const Snapshot& partition) {
    const auto age = oldest_age(partition, look.now);
    return age ? std::optional(static_cast<double>(age->count()) / 1000) : std::nullopt;
  });
  const auto flag = [](bool value) { return std::optional(value ? 1.0 : 0.0); };
  gauges("pawl_partition_acquired",
         [&](const Snapshot& partition) { return flag(partition.acquired); });
  gauges("pawl_partition_halted",
         [&](const Snapshot& partition) { return flag(partition.halted); });
  gauges("pawl_partition_paused",
         [&](const Snapshot& partition) { return flag(partition.paused); });
  gauges("pawl_partition_on_probation",
         [&](const Snapshot& partition) { return flag(partition.on_probation); });
  gauges("pawl_partition_fetch_crashes", [](const Snapshot& partition) {
    return std::optional(static_cast<double>(partition.fetch_crashes));
  });
}

void add_conditions(Families& families, const ProcessLook& look) {
  using Kind = Condition::Kind;
  const auto gauges = [&](std::string_view name, Kind kind, const auto& labels_and_value) {
    auto& family = families.family(name);
    for (const auto& condition : look.conditions) {
      if (condition.kind == kind && condition.lasting)
        labels_and_value(family, condition);
    }
  };
  const auto remote = [](const Condition& condition) {
    return Labels{{"endpoint", condition.subject}};
  };
  gauges("pawl_remote_service_unreachable", Kind::kRemoteServiceUnreachable,
         [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, remote(condition), 1);
         });
  gauges("pawl_remote_service_waiting_messages", Kind::kRemoteServiceUnreachable,
         [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, remote(condition), static_cast<double>(condition.messages));
         });
  gauges("pawl_partition_blocked", Kind::kPartitionBlocked,
         [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, labels_of(condition.topic, condition.partition), 1);
         });
}

void add_tallies(Families& families, const MetricsObserver& metrics) {
  for (const auto& entry : kTallyNames) {
    auto& family = families.family(entry.name);
    metrics.partitions().each([&](const std::string& topic, std::int32_t partition,
                                  const MetricsObserver::Partition& of) {
      Families::add(family, labels_of(topic, partition), static_cast<double>(of.read(entry.tally)));
    });
  }
  auto& failed = families.family("pawl_failed_attempts_total");
  metrics.failed_attempts().each(
      [&](const std::string& name, std::int32_t partition, const MetricsObserver::Counter& count) {
        const auto at = name.find('\0');
        auto labels = labels_of(name.substr(0, at), partition);
        labels.push_back({"reason", name.substr(at + 1)});
        Families::add(failed, std::move(labels), static_cast<double>(count.load()));
      });
}

void add_times(Families& families, const MetricsObserver& metrics) {
  families.histograms("pawl_fetch_to_commit_seconds", metrics.since_fetched(), "topic", kSecond);
  families.histograms("pawl_handler_seconds", metrics.handlers(), "handler", kSecond);
  families.histogram("pawl_commit_seconds", metrics.commits(), kSecond);
  families.histogram("pawl_pipeline_messages", metrics.pipelines(), 1);
  families.histogram("pawl_batch_messages", metrics.batches(), 1);
}

}  // namespace

std::span<const MetricRow> metric_table() {
  return kMetrics;
}

std::string metrics_text(const MetricsObserver& metrics, const ProcessLook& look) {
  Families families;
  add_process(families, metrics, look);
  add_positions(families, look);
  add_conditions(families, look);
  add_tallies(families, metrics);
  add_times(families, metrics);
  add_outbox(families, metrics);
  return families.text();
}

}  // namespace pawl::ops
