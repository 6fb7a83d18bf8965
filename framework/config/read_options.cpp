#include "config/read_options.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace pawl::config {

namespace {

/// `settings`: what every handler has that does not say otherwise.
HandlerOptions read_handler(const Node& node, const std::string& name, OptionTable table,
                            Settings settings, Findings& findings) {
  findings.nodes[name] = &node;
  settings.handler.where = node.where();
  const Reader reader{node, name, findings};
  for (const OptionDescriptor& option : table) {
    if (!option.of_handler())
      continue;
    read_option(option, reader, findings, settings);
    if (option.own != nullptr && node.member(std::string{option.name}) != nullptr)
      option.own->to_handler(settings);
  }
  return std::move(settings.handler);
}

}  // namespace

Options read_options(const Node& root, OptionTable table, Findings& findings) {
  Settings settings;
  const Reader top{root, "", findings};
  for (const OptionDescriptor& option : table) {
    if (option.section != "handler")
      read_option(option, top.section(std::string{option.section}), findings, settings);
  }
  std::vector<HandlerOptions> read;
  if (const Node* const handlers = root.member("handler")) {
    findings.nodes["handler"] = handlers;
    for (std::size_t i = 0; i < handlers->items.size(); ++i) {
      read.push_back(read_handler(handlers->items[i], fmt::format("handler[{}]", i), table,
                                  settings, findings));
    }
  }
  settings.options.handlers = std::move(read);
  return std::move(settings.options);
}

}  // namespace pawl::config
