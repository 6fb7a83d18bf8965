#include "config/in_force.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/redact.hpp"
#include "config/validation.hpp"
#include "config/values.hpp"
#include "text/secret.hpp"

namespace pawl::config {

namespace {

using texts::kHidden;

bool holds_reference(const Node& node) {
  return node.written.find("${") != std::string::npos ||
         std::any_of(node.items.begin(), node.items.end(), holds_reference) ||
         std::any_of(node.members.begin(), node.members.end(),
                     [](const auto& member) { return holds_reference(member.second); });
}

/// Strings as they stand in the file, before ${...} was replaced.
Node as_written(Node node) {
  if (node.kind == Node::Kind::kString)
    node.value = node.written;
  for (Node& item : node.items)
    item = as_written(std::move(item));
  for (auto& [name, member] : node.members)
    member = as_written(std::move(member));
  return node;
}

/// "${NAME}" and nothing beside it.
bool is_reference(std::string_view text) {
  return text.starts_with("${") && text.find('}') == text.size() - 1;
}

void redact(Node& value, Shown shown) {
  if (shown == Shown::kConnection && value.kind == Node::Kind::kString &&
      !is_reference(value.value)) {
    value.value = redact_url(value.value);
  }
  if (shown == Shown::kSecret && !value.value.empty() && !is_reference(value.value))
    value = text_value(kHidden);
  if (shown == Shown::kProgram) {
    for (std::size_t i = 1; i < value.items.size(); ++i)
      value.items[i] = text_value(kHidden);
  }
}

class Listing {
 public:
  Listing(OptionTable table, const Findings& findings) : table_(table), findings_(findings) {}

  void section_options(Settings& settings) {
    for (const OptionDescriptor& option : table_) {
      if (option.section == "handler")
        continue;
      if (option.free_table) {
        properties(option, settings);
      } else {
        add(option, option.option(), settings);
      }
    }
  }

  void handler_options(std::size_t index, Settings& settings) {
    for (const OptionDescriptor& option : table_) {
      if (option.section == "handler")
        add(option, fmt::format("handler[{}].{}", index, option.name), settings);
    }
    for (const OptionDescriptor& option : table_) {
      if (option.own == nullptr)
        continue;
      option.own->from_handler(settings);
      add(option, fmt::format("handler[{}].{}", index, option.name), settings);
      if (node_of(listed_.back().option) == nullptr) {
        listed_.back().inherited = option.option();
        listed_.back().from = where(node_of(option.option()));
      }
    }
  }

  [[nodiscard]] std::vector<OptionInForce> listed() && { return std::move(listed_); }

 private:
  [[nodiscard]] const Node* node_of(const std::string& option) const {
    const auto found = findings_.nodes.find(option);
    return found == findings_.nodes.end() ? nullptr : found->second;
  }

  static std::string where(const Node* node) { return node == nullptr ? "default" : node->where(); }

  void add(const OptionDescriptor& option, std::string name, Settings& settings) {
    const Node* node = node_of(name);
    const std::string from = where(node);
    if (node == nullptr && option.own != nullptr)
      node = node_of(option.option());
    // http_value() omits the secrets of a handler's table.
    Node value = node != nullptr && holds_reference(*node) && node->kind != Node::Kind::kTable
                     ? as_written(*node)
                     : value_of(option, settings);
    redact(value, option.shown);
    listed_.push_back({std::move(name), std::move(value), from, ""});
  }

  void properties(const OptionDescriptor& option, Settings& settings) {
    for (const auto& [property, value] : value_of(option, settings).members) {
      const std::string name = dotted(option.option(), property);
      const Node* const node = node_of(name);
      Node shown = node != nullptr && holds_reference(*node) ? as_written(*node) : value;
      if (!may_show_property(property) && !is_reference(shown.value))
        shown = text_value(kHidden);
      listed_.push_back({name, std::move(shown), where(node), ""});
    }
  }

  OptionTable table_;
  const Findings& findings_;
  std::vector<OptionInForce> listed_;
};

}  // namespace

std::vector<OptionInForce> options_in_force(const Options& options, OptionTable table,
                                            const Findings& findings) {
  Settings common = common_settings(options);
  Listing listing{table, findings};
  listing.section_options(common);
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    Settings own{common.options, options.handlers[i]};
    listing.handler_options(i, own);
  }
  return std::move(listing).listed();
}

std::string shown_override(const std::string& option, const std::string& value) {
  if (is_reference(value))
    return value;
  for (const OptionDescriptor& known : option_table()) {
    const auto name = known.option();
    if (known.free_table && option.starts_with(name + "."))
      return may_show_property(option.substr(name.size() + 1)) ? value : kHidden;
    if (option != name)
      continue;
    switch (known.shown) {
      case Shown::kAll:
        return value;
      case Shown::kConnection:
        return redact_url(value);
      case Shown::kProgram:
      case Shown::kSecret:
        break;
    }
    return kHidden;
  }
  return kHidden;
}

bool may_show_property(std::string_view name) {
  // Named one by one, as new versions of librdkafka bring new secrets.
  constexpr std::array<std::string_view, 13> kNames{"client.id",
                                                    "client.rack",
                                                    "debug",
                                                    "client.dns.lookup",
                                                    "security.protocol",
                                                    "sasl.mechanism",
                                                    "sasl.mechanisms",
                                                    "ssl.ca.location",
                                                    "ssl.certificate.location",
                                                    "ssl.key.location",
                                                    "ssl.endpoint.identification.algorithm",
                                                    "enable.ssl.certificate.verification",
                                                    "check.crcs"};
  constexpr std::array<std::string_view, 13> kFamilies{
      "fetch.",          "queued.",         "socket.",  "reconnect.", "retry.",
      "metadata.",       "topic.metadata.", "message.", "receive.",   "connections.",
      "broker.address.", "heartbeat.",      "max."};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](std::string_view family) { return name.starts_with(family); });
}

}  // namespace pawl::config
