#include "config/validate.hpp"

#include <utility>

#include "config/validation.hpp"

namespace pawl::config {

Settings common_settings(const Options& options) {
  Settings settings{options, {}};
  settings.options.handlers.clear();
  return settings;
}

std::vector<Problem> validate(const Options& options) {
  Validation validation;
  validate_kafka(options.kafka, validation);
  validate_postgres(options.postgres, validation);
  validate_behaviour(options, validation);
  validate_plain(common_settings(options), validation);
  validate_handlers(options, validation);
  return std::move(validation).problems();
}

void require_valid(const Options& options) {
  std::vector<Problem> problems = validate(options);
  if (!problems.empty())
    throw errors_of(problems);
}

}  // namespace pawl::config
