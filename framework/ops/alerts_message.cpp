#include "ops/alerts_message.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "text/bounded.hpp"

namespace pawl::ops {
namespace {

using Json = nlohmann::ordered_json;

std::string utc(std::int64_t ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)));
}

/// Names and values in their order; the JSON and the environment are made of them.
Json fields(const AlertSender& sender, const Alert& alert, std::size_t most_detail) {
  Json json;
  json["kind"] = alert.kind;
  json["time"] = utc(alert.happened_ms);
  json["cluster"] = sender.cluster;
  if (!sender.group.empty())
    json["group"] = sender.group;
  json["instance"] = sender.instance;
  if (!alert.topic.empty())
    json["topic"] = alert.topic;
  if (alert.partition >= 0)
    json["partition"] = alert.partition;
  if (alert.message_offset) {
    json["offset"] = *alert.message_offset;
    json["message_offset"] = *alert.message_offset;
  }
  if (!alert.handler.empty())
    json["handler"] = alert.handler;
  if (!alert.remote.empty())
    json["remote_service"] = alert.remote;
  if (alert.seconds >= 0)
    json["seconds"] = alert.seconds;
  json["suppressed"] = alert.suppressed;
  if (!alert.detail.empty())
    json["detail"] = texts::bounded(alert.detail, most_detail);
  return json;
}

}  // namespace

AlertSender alert_sender(const Options& options) {
  std::array<char, 256> host{"unknown-host"};
  ::gethostname(host.data(), host.size() - 1);
  return {options.kafka.cluster, options.kafka.group,
          fmt::format("{}:{}", host.data(), ::getpid())};
}

std::string alert_json(const AlertSender& sender, const Alert& alert, std::size_t most) {
  auto detail = std::min(alert.detail.size(), texts::kLongestLine);
  while (true) {
    auto text = fields(sender, alert, detail).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() <= most || detail == 0)
      return text;
    // An escape makes up to six bytes of one, so the excess alone would be too much to cut.
    detail -= std::min(detail, std::max<std::size_t>((text.size() - most) / 6, 1));
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
