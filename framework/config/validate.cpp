#include "config/validate.hpp"

#include <utility>

#include "config/validation.hpp"

namespace pawl::config {

Settings common_settings(const Options& options) {
  Settings settings{options, {}};
  settings.options.handlers.clear();
  return settings;
}

bool only_relays(const Options& options) {
  return options.kafka.group.empty() && options.handlers.empty();
}

std::vector<Problem> validate(const Options& options, bool may_only_relay) {
  const bool consumes = !may_only_relay || !only_relays(options);
  Validation validation;
  validate_kafka(options.kafka, consumes, validation);
  validate_postgres(options.postgres, validation);
  validate_redis(options, validation);
  validate_behaviour(options, validation);
  validate_plain(common_settings(options), validation);
  if (consumes)
    validate_handlers(options, validation);
  return std::move(validation).problems();
}

void require_valid(const Options& options) {
  std::vector<Problem> problems = validate(options);
  if (!problems.empty())
    throw errors_of(problems);
}

}  // namespace pawl::config
