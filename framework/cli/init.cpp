// `init`: a commented configuration for a topic, derived from the topic in Kafka.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/commands.hpp"
#include "cli/init_text.hpp"
#include "config/load.hpp"
#include "config/values.hpp"
#include "console/bad_call.hpp"
#include "console/connections.hpp"
#include "console/decoded.hpp"
#include "kafka/client.hpp"
#include "kafka/error.hpp"
#include "kafka/fetch_one.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kShown = 1000;

struct Arguments {
  std::string topic;
  std::string bootstrap_servers = "127.0.0.1:9092";
  std::string group;
  std::string url;
  std::string output;
  std::vector<std::string> set;
};

bool is_replaced(std::string_view value) {
  return value.find("${") != std::string_view::npos;
}

/// Without ${...} in options that Kafka does not need: init connects only to Kafka, and these files
/// and variables may exist later.
std::vector<std::string> needed(const std::vector<std::string>& set) {
  std::vector<std::string> left;
  std::ranges::copy_if(set, std::back_inserter(left), [](const std::string& text) {
    return text.starts_with("kafka") || !is_replaced(text);
  });
  return left;
}

/// Lines of the text in options_of(), and the arguments that they come from.
constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
    {"init:2: ", "--bootstrap-servers: "},
    {"init:3: ", "--group: "},
    {"init:5: ", "--url: "},
    {"init:9: ", "--topic: "}};

/// The options of a configuration for this topic.
Options options_of(const InitFacts& facts, const std::vector<std::string>& set) {
  config::LoadRequest request;
  request.path = "init";
  const auto text = [](const std::string& value) {
    return config::toml_text(config::text_value(value));
  };
  request.text = fmt::format(
      "[kafka]\nbootstrap_servers = {}\ngroup = {}\n[postgres]\nurl = {}\n"
      "[idempotency]\nkey = \"{{key}}\"\n[[handler]]\ntopics = [{}]\nsql = \"SELECT 1\"\n",
      text(facts.bootstrap_servers), text(facts.group),
      text(is_replaced(facts.url) ? "postgresql://localhost" : facts.url), text(facts.topic));
  request.overrides = needed(set);
  request.property_problem = kafka::property_problem;
  try {
    return config::load(request);
  } catch (const ConfigErrors& errors) {
    auto problems = errors.problems();
    for (auto& problem : problems) {
      for (const auto& [place, option] : kPlaces) {
        if (problem.starts_with(place))
          problem.replace(0, place.size(), option);
      }
    }
    throw ConfigErrors(std::move(problems));
  }
}

/// The last message of the first partition that has one, which is as the newest producer writes it.
std::optional<kafka::Record> newest(const kafka::Client& client, const std::string& topic,
                                    std::int32_t partitions) {
  std::vector<TopicPartition> all;
  for (std::int32_t partition = 0; partition < partitions; ++partition)
    all.push_back({topic, partition});
  for (const auto& [partition, range] : client.log_ranges(all, kKafkaTimeout)) {
    // The last offsets may be control records.
    for (auto offset = range.end - 1; offset >= range.start && offset >= range.end - 3; --offset) {
      if (auto record = kafka::fetch_one(client, partition, offset, kMessageTimeout))
        return record;
    }
  }
  return std::nullopt;
}

int init(const Arguments& arguments) {
  InitFacts facts;
  facts.bootstrap_servers = arguments.bootstrap_servers;
  facts.topic = arguments.topic;
  facts.group = arguments.group.empty() ? arguments.topic : arguments.group;
  facts.url = arguments.url.empty() ? "postgresql://localhost/" + facts.group : arguments.url;
  facts.settings = settings_of(arguments.set);
  const auto options = options_of(facts, arguments.set);
  const auto client = make_client(options);
  const auto described = client->describe({arguments.topic}, kKafkaTimeout);
  const auto found = described.find(arguments.topic);
  if (found == described.end()) {
    throw BadCall(fmt::format("--topic {}: the topic does not exist in Kafka at {}",
                              arguments.topic, options.kafka.bootstrap_servers));
  }
  facts.partitions = found->second.partitions;
  std::optional<kafka::Record> record;
  std::string unread;
  try {
    record = newest(*client, arguments.topic, facts.partitions);
  } catch (const kafka::KafkaError& error) {
    unread = error.what();
  }
  std::optional<Message> sample;
  if (record) {
    sample = record->view(arguments.topic, "");
    std::cerr << fmt::format("{}[{}]@{}\n{}", sample->topic(), sample->partition(),
                             sample->offset(), parts_text(*sample, kShown));
  } else if (unread.empty()) {
    std::cerr << fmt::format("{} contains no message yet\n", arguments.topic);
  } else {
    std::cerr << fmt::format(
        "No message of {} could be read: {}. The configuration has no statement for your messages. "
        "If Kafka allows only some groups to read, pass one: --group NAME\n",
        arguments.topic, unread);
  }
  const auto text = init_text(facts, sample);
  if (arguments.output.empty()) {
    std::cout << text;
    return kDone;
  }
  // An existing file may contain work of the operator.
  const auto close = [](std::FILE* open) { (void)std::fclose(open); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(arguments.output.c_str(), "wx"),
                                                         close);
  if (!file || std::fputs(text.c_str(), file.get()) < 0 || std::fflush(file.get()) != 0) {
    throw FatalError(
        fmt::format("--output {}: {}", arguments.output, std::generic_category().message(errno)));
  }
  std::cerr << fmt::format("Configuration written to {}. Its first lines list the next steps\n",
                           arguments.output);
  return kDone;
}

}  // namespace

void add_init(Command& parser, Commands& commands) {
  auto* command =
      parser.add_subcommand("init", "Generate a configuration from a sample message of a topic");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-t,--topic", arguments->topic, "Topic to consume")
      ->required()
      ->type_name("NAME");
  command->add_option("--bootstrap-servers", arguments->bootstrap_servers, "Kafka brokers")
      ->type_name("HOST:PORT")
      ->shows_default();
  command
      ->add_option("--group", arguments->group, "Consumer group (default: the name of the topic)")
      ->type_name("NAME");
  command
      ->add_option(
          "--url", arguments->url,
          "Database URL, which is not connected to (default: postgresql://localhost/GROUP)")
      ->type_name("URL");
  command
      ->add_option("--set", arguments->set,
                   "Another option that Kafka requires, such as kafka.librdkafka...; repeatable")
      ->one_value_each()
      ->type_name("KEY=VALUE");
  command->add_option("-o,--output", arguments->output, "New file (default: standard output)")
      ->type_name("FILE");
  commands.set_action(command, [arguments] { return init(*arguments); });
}

}  // namespace pawl::cli
