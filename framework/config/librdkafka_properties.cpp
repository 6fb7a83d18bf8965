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

constexpr std::string_view kRemove = "remove it";
constexpr std::string_view kPositions =
    "positions come from PostgreSQL alone; an offset that librdkafka keeps could skip messages";
constexpr std::string_view kCallback = "it takes code, not text";
constexpr std::string_view kOldProtocol =
    "protocols before 0.11 have no headers and show aborted transactions";

constexpr std::array kRules{
    // Options of our own, which know the ranges and are used in error texts and identities.
    Rule{"bootstrap.servers", "", {"pawl sets it", "use kafka.bootstrap_servers"}},
    Rule{"metadata.broker.list", "", {"pawl sets it", "use kafka.bootstrap_servers"}},
    Rule{"group.id",
         "",
         {"the group is part of the consumer's identity in PostgreSQL", "use kafka.group"}},
    Rule{"group.instance.id", "", {"pawl sets it", "use kafka.group_instance_id"}},
    Rule{"group.protocol",
         "",
         {"the way partitions are handed over depends on it", "use kafka.group_protocol"}},
    Rule{"group.protocol.type", "consumer", {"Kafka knows only \"consumer\"", kRemove}},
    Rule{"partition.assignment.strategy",
         "",
         {"the way partitions are handed over depends on it", "use kafka.assignor"}},
    Rule{"session.timeout.ms", "", {"pawl sets it", "use kafka.session_timeout"}},
    Rule{"queued.max.messages.kbytes", "", {"pawl bounds its buffers itself", "use kafka.buffer"}},

    // Positions.
    Rule{"enable.auto.commit", "false", {kPositions, "remove it (pawl sets false)"}},
    Rule{"auto.commit.enable", "false", {kPositions, "remove it (pawl sets false)"}},
    Rule{"enable.auto.offset.store", "false", {kPositions, "remove it (pawl sets false)"}},
    Rule{"auto.commit.interval.ms", "", {kPositions, "use kafka.commit_interval"}},
    Rule{"offset.store.method", "", {kPositions, kRemove}},
    Rule{"offset.store.path", "", {kPositions, kRemove}},
    Rule{"offset.store.sync.interval.ms", "", {kPositions, kRemove}},
    Rule{"auto.offset.reset",
         "error",
         {"a position that Kafka cannot honour must halt, not jump",
          "use kafka.start for partitions that were never processed"}},

    // Which records are seen.
    Rule{"isolation.level",
         "read_committed",
         {"messages of aborted transactions would be applied", "remove it (read_committed)"}},
    Rule{"enable.partition.eof",
         "true",
         {"pawl needs the end of a log to tell it from a gap", "remove it (pawl sets true)"}},
    Rule{"api.version.request", "true", {kOldProtocol, kRemove}},
    Rule{"api.version.fallback.ms", "", {kOldProtocol, kRemove}},
    Rule{"broker.version.fallback", "", {kOldProtocol, kRemove}},
    Rule{"topic.metadata.refresh.interval.ms",
         "",
         {"new partitions would be found late or never", "use kafka.topic_check_interval"}},

    // What pawl serves itself.
    Rule{"enabled_events", "", {"pawl serves librdkafka's events itself", kRemove}},
    Rule{"log.queue", "", {"pawl serves librdkafka's logs itself", "use log.level"}},
    Rule{"internal.termination.signal",
         "",
         {"pawl handles signals itself, for a clean stop", kRemove}},
    Rule{"interceptors", "", {kCallback, "use plugin.library.paths for a plugin that brings them"}},
    Rule{"opaque", "", {kCallback, kRemove}},
    Rule{"default_topic_conf", "", {kCallback, "write topic properties beside the others"}},
    Rule{"ssl_key", "", {kCallback, "use ssl.key.pem or ssl.key.location"}},
    Rule{"ssl_certificate", "", {kCallback, "use ssl.certificate.pem or ssl.certificate.location"}},
    Rule{"ssl_ca", "", {kCallback, "use ssl.ca.pem or ssl.ca.location"}},
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
