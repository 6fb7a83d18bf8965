#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "config/broker_list.hpp"
#include "config/librdkafka_properties.hpp"
#include "config/validation.hpp"
#include "postgres/connection_string.hpp"

namespace pawl::config {

namespace {

constexpr std::size_t kKafkaNameBytes = 249;  // Kafka's longest topic and instance name
constexpr std::size_t kLabelBytes = 255;

void validate_brokers(const std::string& servers, Validation& validation) {
  const std::string option = "kafka.bootstrap_servers";
  if (servers.find_first_not_of(' ') == std::string::npos) {
    validation.add(option, "", "not set", "Set it to a broker, such as \"127.0.0.1:9092\"");
  } else if (auto problem = broker_list_problem(servers)) {
    validation.add(option, in_quotes(servers), std::move(problem->what), std::move(problem->fix));
  }
}

void validate_assignment(const KafkaOptions& kafka, Validation& validation) {
  const bool manual = kafka.assignment == Assignment::kManual;
  if (manual && kafka.manual_partitions.empty()) {
    validation.add("kafka.partitions", "", "not set, but kafka.assignment is \"manual\"",
                   "List the partitions of this process, such as [0, 1]", "kafka.assignment");
  }
  if (!manual && !kafka.manual_partitions.empty()) {
    validation.add("kafka.partitions", "", "set, but kafka.assignment is \"group\"",
                   "Remove it, or set kafka.assignment = \"manual\"", "kafka.assignment");
  }
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < kafka.manual_partitions.size(); ++i) {
    const std::int32_t partition = kafka.manual_partitions[i];
    const std::string option = fmt::format("kafka.partitions[{}]", i);
    if (partition < 0) {
      validation.add(option, std::to_string(partition), "not a partition number", "Use 0 or more");
    } else if (!seen.insert(partition).second) {
      validation.add(option, std::to_string(partition), "listed twice", "Remove one");
    }
  }
}

void validate_properties(const KafkaOptions& kafka, Validation& validation) {
  for (const auto& [property, value] : kafka.librdkafka) {
    // Values are not shown: many are passwords and keys.
    if (const auto refused = refusal(property, value)) {
      validation.add("kafka.librdkafka." + property, "",
                     fmt::format("rejected: {}", refused->reason), std::string{refused->instead});
    }
  }
}

bool is_text(const std::string& value, std::string_view expected) {
  return std::equal(value.begin(), value.end(), expected.begin(), expected.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

void validate_tokens(const KafkaOptions& kafka, Validation& validation) {
  const std::string option = "kafka.oauth_token_command";
  const auto says = [&kafka](const char* property, std::string_view value) {
    const auto found = kafka.librdkafka.find(property);
    return found != kafka.librdkafka.end() && is_text(found->second, value);
  };
  validation.program(option, kafka.oauth_token_command);
  const bool bearer =
      says("sasl.mechanism", "oauthbearer") || says("sasl.mechanisms", "oauthbearer");
  const bool other_way = says("sasl.oauthbearer.method", "oidc") ||
                         says("enable.sasl.oauthbearer.unsecure.jwt", "true");
  const bool command = !kafka.oauth_token_command.empty();
  if (command && !bearer) {
    validation.add(option, "", "set, but sasl.mechanism is not OAUTHBEARER",
                   "Set \"sasl.mechanism\" = \"OAUTHBEARER\" and \"security.protocol\" = "
                   "\"sasl_ssl\" in [kafka.librdkafka], or remove the command");
  } else if (command && other_way) {
    validation.add(option, "",
                   "set, but librdkafka also gets tokens by sasl.oauthbearer.method or "
                   "enable.sasl.oauthbearer.unsecure.jwt",
                   "Remove one of them");
  } else if (bearer && !command && !other_way) {
    validation.add(option, "", "not set, but sasl.mechanism OAUTHBEARER requires tokens",
                   "Set it to a program that prints a token, or set \"sasl.oauthbearer.method\" = "
                   "\"oidc\" in [kafka.librdkafka]",
                   kafka.librdkafka.contains("sasl.mechanism")
                       ? "kafka.librdkafka.sasl.mechanism"
                       : "kafka.librdkafka.sasl.mechanisms");
  }
}

bool is_identifier(std::string_view name) {
  constexpr std::size_t kLongest = 63;  // NAMEDATALEN - 1
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && name.size() <= kLongest && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void validate_url(const std::string& url, Validation& validation) {
  if (auto problem = postgres::problem_of(url))
    validation.add("postgres.url", "", std::move(problem->what), std::move(problem->fix));
}

}  // namespace

void validate_kafka(const KafkaOptions& kafka, bool consumes, Validation& validation) {
  validate_brokers(kafka.bootstrap_servers, validation);
  if (consumes && kafka.group.empty()) {
    validation.add("kafka.group", "", "not set",
                   "Set it to the consumer group, such as \"payments\"");
  }
  if (kafka.cluster.empty()) {
    validation.add("kafka.cluster", in_quotes(""), "empty",
                   "Set it to the name of the cluster, or remove it");
  }
  if (kafka.cluster.find('/') != std::string::npos) {
    // cluster/group/topic names a scope of keys, and must be read in one way only.
    validation.add("kafka.cluster", in_quotes(kafka.cluster), "contains /", "Use a name without /");
  }
  if (kafka.start == Start::kTimestamp && kafka.start_timestamp.time_since_epoch().count() < 0) {
    validation.add("kafka.start", "", "a TIMESTAMP before 1970",
                   "Use a later TIMESTAMP, or \"earliest\"");
  }
  for (const auto& name : kafka.known_consumers) {
    if (name.empty()) {
      validation.add("kafka.known_consumers", "", "an empty name",
                     "Use names such as \"group\" or \"cluster/group\", or an empty list");
    }
    validation.label("kafka.known_consumers", name, kLabelBytes + 1 + kKafkaNameBytes);
  }
  validate_assignment(kafka, validation);
  validate_properties(kafka, validation);
  validate_tokens(kafka, validation);
}

void validate_postgres(const PostgresOptions& postgres, Validation& validation) {
  // What a file holds can be corrected while connecting is tried again, like a wrong password.
  const auto& renewal = postgres.renewal;
  const bool of_files =
      renewal.now && postgres.url == renewal.read && postgres::problem_of(postgres.url);
  validate_url(of_files ? renewal.literal : postgres.url, validation);
  validation.program("postgres.password_command", postgres.password_command);
  if (!postgres.password_command.empty() && postgres::names_password(postgres.url)) {
    validation.add("postgres.password_command", "",
                   "set, but postgres.url also contains a password or a passfile",
                   "Remove one of them", "postgres.url");
  }
  if (!is_identifier(postgres.schema)) {
    validation.add("postgres.schema", in_quotes(postgres.schema), "not a plain identifier",
                   "Use up to 63 characters: a to z, 0 to 9, and _, not starting with a digit");
  } else if (postgres.schema.starts_with("pg_")) {
    validation.add("postgres.schema", in_quotes(postgres.schema),
                   "PostgreSQL reserves names that start with pg_", "Choose another name");
  }
}

}  // namespace pawl::config
