#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/option_table.hpp"
#include "config/units.hpp"
#include "config/validation.hpp"
#include "config/values.hpp"

namespace pawl::config {

namespace {

/// Holds the value of one option against its range or its words.
class FieldCheck {
 public:
  FieldCheck(std::string option, std::string also, Settings& settings, Validation& validation)
      : option_(std::move(option)),
        also_(std::move(also)),
        settings_(settings),
        validation_(validation) {}

  void operator()(const TextField& field) const {
    if (field.most_bytes > 0)
      validation_.label(option_, field.of(settings_), field.most_bytes);
  }
  void operator()(const WordField& field) const {
    std::vector<std::string_view> names;
    for (const Word& word : field.words)
      names.push_back(word.name);
    validation_.one_of(option_, field.of(settings_), names, also_);
  }
  void operator()(const DurationField& field) const {
    const milliseconds value = field.of(settings_);
    if (!field.or_zero || value != milliseconds{0})
      validation_.range(option_, value, field.least, field.most, also_);
  }
  void operator()(const DurationsField& field) const {
    const auto& values = field.of(settings_);
    for (std::size_t i = 0; i < values.size(); ++i)
      validation_.range(fmt::format("{}[{}]", option_, i), values[i], field.least, field.most);
    if (values.empty() || values.size() > field.most_values) {
      validation_.add(option_, "", fmt::format("contains {} values", values.size()),
                      fmt::format("Use 1 to {} values", field.most_values), also_);
    }
  }
  void operator()(const SizeField& field) const {
    validation_.size_range(option_, field.of(settings_), field.least, field.most);
  }
  void operator()(const CountField& field) const {
    validation_.range(option_, field.of(settings_), field.least, field.most);
  }
  // Whatever these hold is in order, or validate() has a check of its own.
  void operator()(const PathField&) const {}
  void operator()(const TextsField&) const {}
  void operator()(const FlagField&) const {}
  void operator()(const ChoiceField&) const {}
  void operator()(const OtherField&) const {}

 private:
  std::string option_;
  std::string also_;
  Settings& settings_;
  Validation& validation_;
};

}  // namespace

void validate_plain(const Settings& settings, Validation& validation) {
  Settings own = settings;
  for (const OptionDescriptor& option : option_table()) {
    if (option.section != "handler" && option.section != "handler_defaults")
      std::visit(FieldCheck{option.option(), "", own, validation}, option.field);
  }
  validation.backoff("postgres", own.options.postgres.retry_initial,
                     own.options.postgres.retry_max);
  validation.failures("failures", own.options.failures);
}

void validate_own(const Settings& settings, const HandlerOptions& handler, const std::string& name,
                  Validation& validation) {
  Settings common = settings;
  Settings own{settings.options, handler};
  for (const OptionDescriptor& option : option_table()) {
    if (!option.of_handler())
      continue;
    if (option.own != nullptr) {
      option.own->from_handler(own);
      // What a handler inherits is wrong once, in its section.
      if (toml_text(value_of(option, own)) == toml_text(value_of(option, common)))
        continue;
    }
    const std::string also = option.section == "handler_defaults" ? option.option() : "";
    std::visit(FieldCheck{dotted(name, option.name), also, own, validation}, option.field);
  }
  const FailureOptions& failures = own.options.failures;
  const bool own_failures = failures != common.options.failures;
  if (own_failures)
    validation.failures(name, failures);
  const std::string keys_option =
      handler.retention ? dotted(name, "retention") : std::string("retention.keys");
  const std::string delays_option =
      own_failures ? dotted(name, "retry_later") : std::string("failures.retry_later");
  validation.retries_within(handler.retention && !own_failures ? keys_option : delays_option,
                            failures, keys_option,
                            handler.retention.value_or(common.options.retention.keys));
}

}  // namespace pawl::config
