#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "config/listen_address.hpp"
#include "config/validation.hpp"

namespace pawl::config {

namespace {

/// A guess at a time that takes a second each must not find it.
constexpr std::size_t kShortestToken = 16;

bool is_header_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_host_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

void validate_monitoring(const MonitoringOptions& monitoring, Validation& validation) {
  if (!monitoring.listen.empty() && !parse_listen_address(monitoring.listen)) {
    validation.add(
        "monitoring.listen", in_quotes(monitoring.listen), "not a numeric address with a port",
        "Use a numeric address, such as \"127.0.0.1:9464\", or \"[::]:9464\" for all interfaces");
  }
  for (const auto& host : monitoring.hosts) {
    if (!is_host_name(host)) {
      validation.add("monitoring.hosts", in_quotes(host), "not a host name",
                     "Use the full name without http:// and port, such as \"pawl.example.org\"");
    }
  }
  const auto& token = monitoring.actions_token;
  if (!token.empty() && token.size() < kShortestToken) {
    validation.add("monitoring.actions_token", "(not shown)",
                   fmt::format("shorter than {} characters", kShortestToken),
                   "Generate one: openssl rand -hex 16");
  }
  if (!monitoring.trusted_proxy.empty() && !is_numeric_address(monitoring.trusted_proxy)) {
    validation.add("monitoring.trusted_proxy", in_quotes(monitoring.trusted_proxy),
                   "not a numeric address",
                   "Use the address from which the proxy connects, such as \"10.0.0.5\" or "
                   "\"::1\", without a port");
  }
  if (is_numeric_address(monitoring.trusted_proxy) && token.empty()) {
    validation.add(
        "monitoring.trusted_proxy", in_quotes(monitoring.trusted_proxy),
        "requires monitoring.actions_token, which identifies the proxy",
        "Set actions_token, and configure the proxy to send it: Authorization: Bearer TOKEN");
  }
  if (!is_header_name(monitoring.actor_header)) {
    validation.add(
        "monitoring.actor_header", in_quotes(monitoring.actor_header),
        "not the name of an HTTP header",
        "Use the header in which the proxy names the operator, such as \"X-Forwarded-User\"");
  }
}

void validate_dead_letters(const Options& options, Validation& validation) {
  const auto& letters = options.dead_letters;
  const std::string option = "dead_letters.topic";
  if (letters.topic.empty() || !validation.topic(option, letters.topic))
    return;
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const auto& topics = options.handlers[i].topics;
    if (std::find(topics.begin(), topics.end(), letters.topic) == topics.end())
      continue;
    // Letters that fail again would feed themselves.
    validation.add(option, in_quotes(letters.topic),
                   fmt::format("handler[{}] consumes this topic", i),
                   "Use a topic that no handler of this consumer consumes",
                   fmt::format("handler[{}].topics", i));
    return;
  }
}

}  // namespace

void validate_behaviour(const Options& options, Validation& validation) {
  validation.key_template("idempotency.key", options.idempotency.key);
  validation.scope("idempotency.scope", options.idempotency.scope);

  validate_dead_letters(options, validation);
  (void)validation.topic("outbox.state_topic", options.outbox.state_topic);

  for (std::size_t i = 0; i < options.audit.checks.size(); ++i)
    validation.query(fmt::format("audit.sql[{}]", i), options.audit.checks[i].text);
  if (options.consumer.durability == Durability::kReplayable &&
      !options.postgres.synchronous_commit.empty()) {
    validation.add("consumer.durability", "\"replayable\"",
                   fmt::format("conflicts with postgres.synchronous_commit = \"{}\"",
                               options.postgres.synchronous_commit),
                   "Remove one of them");
  }
  validation.program("alerts.command", options.alerts.command);
  validate_monitoring(options.monitoring, validation);
}

}  // namespace pawl::config
