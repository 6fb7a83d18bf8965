#include "ops/alerts_message.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "message/rfc3339.hpp"
#include "text/bounded.hpp"

namespace pawl::ops {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kKinds = std::to_array<AlertRow>({
    {alert_kind::kHalt, "A partition is halted."},
    {alert_kind::kDeadLetter, "A handler has a new dead letter."},
    {alert_kind::kCircuitBreaker,
     "Too many consecutive messages of a handler failed the same way, so their partitions halt."},
    {alert_kind::kProbation, "A process crashed while it processed only one message."},
    {alert_kind::kHandlersDiffer,
     "Processes of the group handle a topic with different configurations or programs."},
    {alert_kind::kLeaseLost,
     "The lease of a call was lost before its outcome was recorded. The call may be made twice."},
    {alert_kind::kTopicAccessDenied, "Kafka denies access to a topic."},
    {alert_kind::kOutboxRejected, "Kafka rejected a message of the outbox."},
    {alert_kind::kOutboxLate,
     "The oldest message of the outbox waits for longer than outbox.alert_age."},
    {alert_kind::kOutboxCaughtUp, "The end of outbox-late."},
    {alert_kind::kDatabaseUnreachable,
     "PostgreSQL cannot be used for longer than alerts.unreachable_after."},
    {alert_kind::kDatabaseReachable, "The end of database-unreachable."},
    {alert_kind::kKafkaUnreachable,
     "Kafka does not respond for longer than alerts.unreachable_after."},
    {alert_kind::kKafkaReachable, "The end of kafka-unreachable."},
    {alert_kind::kRedisUnreachable,
     "No lease can be acquired from Redis for longer than alerts.unreachable_after."},
    {alert_kind::kRedisReachable, "The end of redis-unreachable."},
    {alert_kind::kRemoteServiceUnreachable,
     "An endpoint of http handlers is unreachable for longer than alerts.unreachable_after."},
    {alert_kind::kRemoteServiceReachable, "The end of remote-service-unreachable."},
    {alert_kind::kPartitionBlocked, "A message waits for a lock that another session holds."},
    {alert_kind::kPartitionUnblocked, "The end of partition-blocked."},
});

/// Names and values in their order; the JSON and the environment are made of them.
Json fields(const AlertSender& sender, const Alert& alert, std::size_t most_text) {
  Json json;
  json["kind"] = alert.kind;
  json["time"] = message::rfc3339(Timestamp(std::chrono::milliseconds(alert.happened_ms)));
  json["cluster"] = sender.cluster;
  if (!sender.group.empty())
    json["group"] = sender.group;
  json["instance"] = sender.instance;
  if (!alert.topic.empty())
    json["topic"] = alert.topic;
  if (alert.partition >= 0)
    json["partition"] = alert.partition;
  if (alert.message_offset)
    json["offset"] = *alert.message_offset;
  if (!alert.handler.empty())
    json["handler"] = alert.handler;
  if (!alert.endpoint.empty())
    json["endpoint"] = alert.endpoint;
  if (alert.dead_letter_id >= 0)
    json["dead_letter_id"] = alert.dead_letter_id;
  if (!alert.reason.empty())
    json["reason"] = alert.reason;
  if (!alert.sqlstate.empty())
    json["sqlstate"] = alert.sqlstate;
  if (!alert.statement.empty())
    json["statement"] = alert.statement;
  if (alert.seconds >= 0)
    json["duration_s"] = alert.seconds;
  json["suppressed"] = alert.suppressed;
  if (!alert.msg.empty())
    json["msg"] = texts::bounded(alert.msg, most_text);
  return json;
}

}  // namespace

std::span<const AlertRow> alert_table() {
  return kKinds;
}

AlertSender alert_sender(const Options& options) {
  std::array<char, 256> host{"unknown-host"};
  ::gethostname(host.data(), host.size() - 1);
  return {options.kafka.cluster, options.kafka.group,
          fmt::format("{}:{}", host.data(), ::getpid())};
}

std::string alert_json(const AlertSender& sender, const Alert& alert, std::size_t most) {
  auto length = std::min(alert.msg.size(), texts::kLongestLine);
  while (true) {
    auto text = fields(sender, alert, length).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() <= most || length == 0)
      return text;
    // An escape makes up to six bytes of one, so the excess alone would be too much to cut.
    length -= std::min(length, std::max<std::size_t>((text.size() - most) / 6, 1));
  }
}

std::vector<std::pair<std::string, std::string>> alert_environment(const AlertSender& sender,
                                                                   const Alert& alert) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto json = fields(sender, alert, texts::kLongestLine);
  for (const auto& [name, value] : json.items()) {
    std::string variable = "PAWL_ALERT_";
    for (const char c : name)
      variable += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    auto text = value.is_string() ? value.get<std::string>() : value.dump();
    std::replace(text.begin(), text.end(), '\0', ' ');
    variables.emplace_back(std::move(variable), std::move(text));
  }
  return variables;
}

}  // namespace pawl::ops
