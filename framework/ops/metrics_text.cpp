#include "ops/metrics_text.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::ops {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

struct Name {
  const char* name;
  const char* help;
};

struct TallyName {
  Tally tally;
  Name name;
};
constexpr std::array<TallyName, kTallies> kTallyNames{{
    {Tally::kApplied,
     {"pawl_messages_applied_total", "Messages applied and committed, unchecked ones among them."}},
    {Tally::kUnchecked,
     {"pawl_messages_unchecked_total", "Messages applied without an idempotency key."}},
    {Tally::kDuplicates,
     {"pawl_messages_duplicate_total", "Messages whose key was there already."}},
    {Tally::kSkipped, {"pawl_messages_skipped_total", "Messages left out, and recorded."}},
    {Tally::kDead,
     {"pawl_messages_dead_lettered_total",
      "Messages stored as dead letters, with those whose retries are used up."}},
    {Tally::kParked,
     {"pawl_messages_parked_total", "Messages stored behind a dead letter of their record key."}},
    {Tally::kRetryLater,
     {"pawl_messages_retry_later_total", "Times that a message was put off for a later retry."}},
    {Tally::kRetried,
     {"pawl_messages_retried_total", "Messages put off for later that were applied, or had been."}},
    {Tally::kConflicts,
     {"pawl_messages_conflicting_total",
      "Tries of messages whose key was there already, with another payload."}},
    {Tally::kInDoubt,
     {"pawl_commits_in_doubt_total", "Connections lost while a COMMIT was on its way."}},
    {Tally::kFenced,
     {"pawl_partition_fenced_total", "Times that another owner of the partition was found."}},
    {Tally::kReacquired,
     {"pawl_partition_reacquired_total",
      "Times that the partition was taken from the register anew while it was this process's."}},
    {Tally::kHalts, {"pawl_partition_halts_total", "Times that the partition halted."}},
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

class Families {
 public:
  void counter(const Name& name, double value) {
    add(family(name, MetricType::Counter), {}, value);
  }
  void gauge(const Name& name, double value, Labels labels = {}) {
    add(family(name, MetricType::Gauge), std::move(labels), value);
  }
  void reached(const Name& name, MetricsObserver::Reached reached) {
    if (reached != MetricsObserver::Reached::kUnknown)
      gauge(name, reached == MetricsObserver::Reached::kYes ? 1 : 0);
  }

  MetricFamily& family(const Name& name, MetricType type) {
    return all_.emplace_back(MetricFamily{name.name, name.help, type, {}});
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
  void histogram(const Name& name, const Histogram& histogram, double unit) {
    add(family(name, MetricType::Histogram), {}, histogram, unit);
  }
  void histograms(const Name& name, const Series<Histogram>& series, const char* label,
                  double unit) {
    auto& family = this->family(name, MetricType::Histogram);
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
  families.gauge({"pawl_build_info", "1, with the version of pawl."}, 1,
                 {{"version", look.version}});
  families.gauge({"pawl_ready", "1 where /ready says 200, else 0."}, look.unready.empty() ? 1 : 0);
  families.gauge({"pawl_silence_seconds",
                  "Since when the slower of the consumer's watching threads has made no round."},
                 static_cast<double>(look.silent_for.count()) / 1000);
  families.reached({"pawl_database_up", "1: PostgreSQL answers this process; 0: it does not."},
                   metrics.database());
  families.gauge({"pawl_wrong_database",
                  "1: another database answers at postgres.url, and nothing is processed in it."},
                 metrics.wrong_database() ? 1 : 0);
  families.reached({"pawl_kafka_up", "1: Kafka answers this process; 0: it does not."},
                   metrics.kafka());
  families.reached({"pawl_redis_up", "1: leases are had from Redis again; 0: none can be had."},
                   metrics.redis());
  families.counter(
      {"pawl_database_connections_lost_total", "Connections to PostgreSQL that workers have lost."},
      static_cast<double>(metrics.connections_lost()));
  families.counter({"pawl_leases_lost_total",
                    "Calls whose lease was another's before their outcome could be recorded."},
                   static_cast<double>(metrics.leases_lost()));
  if (look.leases_held) {
    families.gauge({"pawl_leases_held", "Leases of keys under which this process makes calls now."},
                   static_cast<double>(*look.leases_held));
  }
  auto& warnings =
      families.family({"pawl_warnings_total", "Warnings, by their code."}, MetricType::Counter);
  metrics.warnings().each(
      [&](const std::string& code, std::int32_t, const MetricsObserver::Counter& count) {
        Families::add(warnings, {{"class", code}}, static_cast<double>(count.load()));
      });
}

void add_outbox(Families& families, const MetricsObserver& metrics) {
  const auto now = std::chrono::steady_clock::now();
  if (const auto late = metrics.outbox_late(now)) {
    families.gauge({"pawl_outbox_late", "1: its oldest message waits for longer than alert_age."},
                   *late ? 1 : 0);
  }
  if (const auto waits = metrics.outbox_waits(now)) {
    families.gauge({"pawl_outbox_oldest_age_seconds",
                    "For how long the outbox's oldest message waits; 0: none does."},
                   static_cast<double>(waits->count()) / 1000);
  }
  if (!metrics.relays())
    return;
  const auto relayed = metrics.relayed();
  families.gauge({"pawl_outbox_lanes", "Lanes of the outbox that are this process's."},
                 static_cast<double>(relayed.lanes));
  families.gauge({"pawl_outbox_left_out",
                  "Topic partitions whose messages of the outbox wait, as nothing can be written."},
                 static_cast<double>(relayed.left_out));
  families.counter({"pawl_outbox_published_total", "Messages of the outbox that Kafka has."},
                   static_cast<double>(relayed.published));
  families.counter(
      {"pawl_outbox_refused_total", "Messages of the outbox that Kafka refused, set apart."},
      static_cast<double>(relayed.refused));
}

/// Where the partitions stand that are this process's now: as `pawl status` would say.
void add_positions(Families& families, const ProcessLook& look) {
  const auto gauges = [&](const Name& name, const auto& value_of) {
    auto& family = families.family(name, MetricType::Gauge);
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
  gauges({"pawl_lag_messages", "Messages from the stored offset to the end of Kafka's log."},
         [&](const Snapshot& partition) { return known(partition.lag()); });
  gauges({"pawl_next_offset", "Offset of the next message to process."},
         [&](const Snapshot& partition) { return known(partition.next); });
  gauges({"pawl_log_end_offset", "End of Kafka's log, as it was told last."},
         [&](const Snapshot& partition) { return known(partition.log_end); });
  gauges({"pawl_oldest_unprocessed_age_seconds",
          "Age of the message that is processed next, by its record; 0: there is none."},
         [&](const Snapshot& partition) {
           const auto age = oldest_age(partition, look.now);
           return age ? std::optional(static_cast<double>(age->count()) / 1000) : std::nullopt;
         });
  const auto flag = [](bool value) { return std::optional(value ? 1.0 : 0.0); };
  gauges({"pawl_partition_acquired", "1: the register has given the partition to this process."},
         [&](const Snapshot& partition) { return flag(partition.acquired); });
  gauges({"pawl_partition_halted", "1: the partition stands until somebody does something."},
         [&](const Snapshot& partition) { return flag(partition.halted); });
  gauges({"pawl_partition_paused", "1: an operator has paused the partition."},
         [&](const Snapshot& partition) { return flag(partition.paused); });
  gauges({"pawl_partition_on_probation",
          "1: messages that may have ended another process run alone, and others wait meanwhile."},
         [&](const Snapshot& partition) { return flag(partition.on_probation); });
  gauges({"pawl_partition_fetch_crashes",
          "Processes in a row that ended while they fetched the partition's next message."},
         [](const Snapshot& partition) {
           return std::optional(static_cast<double>(partition.fetch_crashes));
         });
}

void add_conditions(Families& families, const ProcessLook& look) {
  using Kind = Condition::Kind;
  const auto gauges = [&](const Name& name, Kind kind, const auto& labels_and_value) {
    auto& family = families.family(name, MetricType::Gauge);
    for (const auto& condition : look.conditions) {
      if (condition.kind == kind && condition.lasting)
        labels_and_value(family, condition);
    }
  };
  const auto remote = [](const Condition& condition) {
    return Labels{{"remote_service", condition.what}};
  };
  gauges({"pawl_remote_service_unreachable", "1: an endpoint of http handlers cannot be used."},
         Kind::kRemoteServiceUnreachable, [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, remote(condition), 1);
         });
  gauges({"pawl_remote_service_waiting_messages", "Messages that wait for such an endpoint."},
         Kind::kRemoteServiceUnreachable, [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, remote(condition), static_cast<double>(condition.messages));
         });
  gauges({"pawl_partition_blocked", "1: a message of the partition waits for a lock for long."},
         Kind::kPartitionBlocked, [&](MetricFamily& family, const Condition& condition) {
           Families::add(family, labels_of(condition.topic, condition.partition), 1);
         });
}

void add_tallies(Families& families, const MetricsObserver& metrics) {
  for (const auto& entry : kTallyNames) {
    auto& family = families.family(entry.name, MetricType::Counter);
    metrics.partitions().each([&](const std::string& topic, std::int32_t partition,
                                  const MetricsObserver::Partition& of) {
      Families::add(family, labels_of(topic, partition), static_cast<double>(of.read(entry.tally)));
    });
  }
  auto& failed = families.family(
      {"pawl_failed_tries_total", "Tries of messages that failed, by whose fault it was."},
      MetricType::Counter);
  metrics.failed_tries().each(
      [&](const std::string& name, std::int32_t partition, const MetricsObserver::Counter& count) {
        const auto at = name.find('\0');
        auto labels = labels_of(name.substr(0, at), partition);
        labels.push_back({"class", name.substr(at + 1)});
        Families::add(failed, std::move(labels), static_cast<double>(count.load()));
      });
}

void add_times(Families& families, const MetricsObserver& metrics) {
  families.histograms({"pawl_fetch_to_commit_seconds",
                       "From a message's coming out of Kafka's queue to the answer to its COMMIT."},
                      metrics.since_fetched(), "topic", kSecond);
  families.histograms(
      {"pawl_handler_seconds", "Runs of handlers that returned, and calls of leased ones."},
      metrics.handlers(), "handler", kSecond);
  families.histogram({"pawl_commit_seconds", "Round trips to PostgreSQL with a COMMIT."},
                     metrics.commits(), kSecond);
  families.histogram({"pawl_pipeline_messages", "Messages committed in one round trip."},
                     metrics.pipelines(), 1);
  families.histogram({"pawl_batch_messages", "Messages of one batch."}, metrics.batches(), 1);
}

}  // namespace

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
