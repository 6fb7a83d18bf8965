#include "config/librdkafka_properties.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace pawl::config {

namespace {

struct Rule {
  std::string_view property;
  /// The one value that is harmless; empty: none is.
  std::string_view harmless;
  Refusal refusal;
};

constexpr std::string_view kRemove = "Remove it";
constexpr std::string_view kPositions =
    "only PostgreSQL stores offsets, and an offset that librdkafka stores could skip messages";
constexpr std::string_view kCallback = "it takes code, not text";
constexpr std::string_view kOldProtocol =
    "protocols before Kafka 0.11 have no headers and return messages of aborted transactions";

constexpr std::array kRules{
    // Options of our own, which know the ranges and are used in error texts and identities.
    Rule{"bootstrap.servers", "", {"pawl sets it", "Use kafka.bootstrap_servers"}},
    Rule{"metadata.broker.list", "", {"pawl sets it", "Use kafka.bootstrap_servers"}},
    Rule{"group.id",
         "",
         {"the group is part of the consumer's identity in PostgreSQL", "Use kafka.group"}},
    Rule{"group.instance.id", "", {"pawl sets it", "Use kafka.group_instance_id"}},
    Rule{"group.protocol",
         "",
         {"the handover of partitions depends on it", "Use kafka.group_protocol"}},
    Rule{"group.protocol.type", "consumer", {"Kafka supports only \"consumer\"", kRemove}},
    Rule{"partition.assignment.strategy",
         "",
         {"the handover of partitions depends on it", "Use kafka.assignor"}},
    Rule{"session.timeout.ms", "", {"pawl sets it", "Use kafka.session_timeout"}},
    Rule{"queued.max.messages.kbytes", "", {"pawl limits its buffers itself", "Use kafka.buffer"}},

    // Positions.
    Rule{"enable.auto.commit", "false", {kPositions, "Remove it (pawl sets false)"}},
    Rule{"auto.commit.enable", "false", {kPositions, "Remove it (pawl sets false)"}},
    Rule{"enable.auto.offset.store", "false", {kPositions, "Remove it (pawl sets false)"}},
    Rule{"auto.commit.interval.ms", "", {kPositions, "Use kafka.commit_interval"}},
    Rule{"offset.store.method", "", {kPositions, kRemove}},
    Rule{"offset.store.path", "", {kPositions, kRemove}},
    Rule{"offset.store.sync.interval.ms", "", {kPositions, kRemove}},
    Rule{"auto.offset.reset",
         "error",
         {"if Kafka does not have the stored offset, the partition must halt",
          "Use kafka.start for partitions without a stored offset"}},

    // Which records are seen.
    Rule{"isolation.level",
         "read_committed",
         {"messages of aborted transactions would be applied", "Remove it (read_committed)"}},
    Rule{"enable.partition.eof",
         "true",
         {"pawl must distinguish the end of a log from a gap", "Remove it (pawl sets true)"}},
    Rule{"api.version.request", "true", {kOldProtocol, kRemove}},
    Rule{"api.version.fallback.ms", "", {kOldProtocol, kRemove}},
    Rule{"broker.version.fallback", "", {kOldProtocol, kRemove}},
    Rule{"topic.metadata.refresh.interval.ms",
         "",
         {"new partitions would be found late or never", "Use kafka.topic_check_interval"}},

    // What pawl serves itself.
    Rule{"enabled_events", "", {"pawl handles librdkafka's events itself", kRemove}},
    Rule{"log.queue", "", {"pawl handles librdkafka's logs itself", "Use log.level"}},
    Rule{"internal.termination.signal",
         "",
         {"pawl handles signals itself, for a clean stop", kRemove}},
    Rule{"interceptors",
         "",
         {kCallback, "Use plugin.library.paths for a plugin that contains them"}},
    Rule{"opaque", "", {kCallback, kRemove}},
    Rule{"default_topic_conf", "", {kCallback, "Write topic properties next to the others"}},
    Rule{"ssl_key", "", {kCallback, "Use ssl.key.pem or ssl.key.location"}},
    Rule{"ssl_certificate", "", {kCallback, "Use ssl.certificate.pem or ssl.certificate.location"}},
    Rule{"ssl_ca", "", {kCallback, "Use ssl.ca.pem or ssl.ca.location"}},
    Rule{"ssl_engine_callback_data", "", {kCallback, kRemove}},
    Rule{"msg_order_cmp", "", {kCallback, kRemove}},
};

bool same_value(std::string_view value, std::string_view harmless) {
  return std::equal(value.begin(), value.end(), harmless.begin(), harmless.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

}  // namespace

std::optional<Refusal> refusal(std::string_view property, std::string_view value) {
  if (property.ends_with("_cb"))
    return Refusal{kCallback, kRemove};
  for (const Rule& rule : kRules) {
    if (rule.property != property)
      continue;
    if (!rule.harmless.empty() && same_value(value, rule.harmless))
      return std::nullopt;
    return rule.refusal;
  }
  return std::nullopt;
}

}  // namespace pawl::config
