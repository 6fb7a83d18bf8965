#include "console/config_arguments.hpp"

#include <filesystem>

#include "config/invocation.hpp"
#include "config/load.hpp"
#include "kafka/client.hpp"
#include "pawl/config.hpp"

namespace pawl {
namespace {

/// In this room, since the one of the configuration does not know librdkafka.
config::LoadRequest request_for(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides) {
  config::LoadRequest request;
  request.path = file;
  request.overrides = overrides;
  request.property_problem = kafka::property_problem;
  return request;
}

/// The file may be read from anywhere by those who paste what names it.
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
  auto* config =
      command.add_option("-c,--config", arguments->file, "The configuration, a TOML file");
  config->type_name("FILE");
  if (config_required)
    config->required();
  command.add_option("--set", arguments->overrides, "Override one value of it; may be repeated")
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
