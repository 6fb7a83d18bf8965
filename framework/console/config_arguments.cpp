#include "console/config_arguments.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "config/invocation.hpp"
#include "config/load.hpp"
#include "kafka/client.hpp"
#include "pawl/config.hpp"

namespace pawl {
namespace {

constexpr const char* kVariable = "PAWL_CONFIG";

/// Whether PAWL_CONFIG names this absolute path.
bool in_environment(const std::string& file) {
  const char* const named = std::getenv(kVariable);
  return named != nullptr && *named != '\0' &&
         std::filesystem::absolute(named).lexically_normal() == file;
}

/// In this module, because the one of the configuration does not include librdkafka.
config::LoadRequest request_for(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides) {
  config::LoadRequest request;
  request.path = file;
  request.overrides = overrides;
  request.property_problem = kafka::property_problem;
  return request;
}

/// Commands that name the file may be pasted in any folder.
Options loaded(const config::LoadRequest& request) {
  auto options = config::load(request);
  if (!request.path.empty()) {
    options.invocation.config_file =
        std::filesystem::absolute(request.path).lexically_normal().string();
  }
  options.invocation.overrides = overrides_to_paste(request.overrides);
  return options;
}

}  // namespace

Options load_config(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return loaded(request_for(file, overrides));
}

namespace cli {

Options ConfigArguments::load(config::Files* files) const {
  return load(files, false);
}

Options ConfigArguments::load_to_relay(config::Files* files) const {
  return load(files, true);
}

Options ConfigArguments::load(config::Files* files, bool may_only_relay) const {
  auto request = request_for(file, overrides);
  request.defaults = defaults;
  request.files = files;
  request.may_only_relay = may_only_relay;
  auto options = loaded(request);
  options.invocation.program = program;
  options.invocation.config_in_environment =
      !read_elsewhere && in_environment(options.invocation.config_file);
  return options;
}

std::vector<config::OptionInForce> ConfigArguments::in_force() const {
  auto request = request_for(file, overrides);
  request.complete = !file.empty();
  request.may_only_relay = true;
  return config::load_in_force(request);
}

namespace {

std::shared_ptr<ConfigArguments> add_arguments(Command& command, bool config_required) {
  auto arguments = std::make_shared<ConfigArguments>();
  arguments->program = command.program();
  auto* config = command.add_option("-c,--config", arguments->file,
                                    fmt::format("Configuration file (default: ${})", kVariable));
  config->type_name("FILE")->from_environment(kVariable);
  if (config_required)
    config->required();
  command.add_option("--set", arguments->overrides, "Override one option; repeatable")
      ->one_value_each()
      ->type_name("KEY=VALUE");
  return arguments;
}

}  // namespace

std::shared_ptr<ConfigArguments> add_optional_config_arguments(Command& command) {
  return add_arguments(command, false);
}

std::shared_ptr<ConfigArguments> add_config_arguments(Command& command) {
  return add_arguments(command, true);
}

}  // namespace cli
}  // namespace pawl
