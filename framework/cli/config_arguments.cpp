#include "cli/config_arguments.hpp"

#include "config/load.hpp"
#include "kafka/client.hpp"

namespace pawl::cli {

Options ConfigArguments::load() const {
  config::LoadRequest request;
  request.path = file;
  request.overrides = overrides;
  request.property_problem = kafka::property_problem;
  return config::load(request);
}

std::shared_ptr<ConfigArguments> add_config_arguments(CLI::App& command) {
  auto arguments = std::make_shared<ConfigArguments>();
  command.add_option("-c,--config", arguments->file, "The configuration, a TOML file")
      ->required()
      ->type_name("FILE");
  command.add_option("--set", arguments->overrides, "Override one value of it; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  return arguments;
}

}  // namespace pawl::cli
