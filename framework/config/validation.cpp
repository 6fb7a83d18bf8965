#include "config/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/units.hpp"

namespace pawl::config {

void Validation::add(std::string option, std::string shown, std::string what, std::string fix,
                     std::string also) {
  Problem problem;
  problem.option = std::move(option);
  problem.shown = std::move(shown);
  problem.what = std::move(what);
  problem.fix = std::move(fix);
  problem.also = std::move(also);
  problems_.push_back(std::move(problem));
}

void Validation::range(const std::string& option, std::chrono::milliseconds value,
                       std::chrono::milliseconds least, std::chrono::milliseconds most,
                       const std::string& also) {
  if (value >= least && value <= most)
    return;
  add(option, in_quotes(format_duration(value)), "out of range",
      fmt::format("Use \"{}\" to \"{}\"", format_duration(least), format_duration(most)), also);
}

void Validation::range(const std::string& option, std::uint64_t value, std::uint64_t least,
                       std::uint64_t most) {
  if (value >= least && value <= most)
    return;
  add(option, std::to_string(value), "out of range", fmt::format("Use {} to {}", least, most));
}

void Validation::size_range(const std::string& option, std::size_t value, std::size_t least,
                            std::size_t most) {
  if (value >= least && value <= most)
    return;
  add(option, in_quotes(format_size(value)), "out of range",
      fmt::format("Use \"{}\" to \"{}\"", format_size(least), format_size(most)));
}

void Validation::backoff(const std::string& section, std::chrono::milliseconds initial,
                         std::chrono::milliseconds longest) {
  const std::string first = section + ".retry_initial";
  const std::string last = section + ".retry_max";
  const bool out_of_range = std::any_of(
      problems_.begin(), problems_.end(),
      [&](const Problem& problem) { return problem.option == first || problem.option == last; });
  if (out_of_range || initial <= longest)
    return;
  add(last, in_quotes(format_duration(longest)), fmt::format("less than {}", first),
      "Use retry_initial for the first delay and retry_max for the longest", first);
}

void Validation::failures(const std::string& section, const FailureOptions& options) {
  backoff(section, options.retry_initial, options.retry_max);
  if (options.on_failure != FailurePolicy::kRetryLater || options.retry_later.empty())
    return;
  const auto option = section + ".retry_later";
  const auto first = options.retry_later.front();
  if (options.max_attempts == 0 && options.retry_for > first) {
    add(section + ".retry_for", in_quotes(format_duration(options.retry_for)),
        fmt::format("longer than the first delay of retry_later ({}). The partition waits for "
                    "retry_for, but not for retry_later",
                    format_duration(first)),
        "Use less, such as retry_for = \"1s\", or set max_attempts", option);
  }
}

void Validation::retries_within(const std::string& option, const FailureOptions& options,
                                const std::string& keys_option, std::chrono::milliseconds keys) {
  if (options.on_failure != FailurePolicy::kRetryLater || keys == std::chrono::milliseconds{0})
    return;
  std::chrono::milliseconds all{0};
  for (const auto delay : options.retry_later)
    all += delay;
  // Each handler that says nothing itself has the same.
  const bool reported =
      std::any_of(problems_.begin(), problems_.end(), [&](const Problem& problem) {
        return problem.option == option && problem.also == "retention.keys";
      });
  if (all < keys || reported)
    return;
  const bool blames_keys = option == keys_option;
  add(option, "",
      blames_keys
          ? fmt::format(
                "idempotency keys are removed after {}, but the delays of retry_later add up to {}",
                format_duration(keys), format_duration(all))
          : fmt::format("the delays add up to {}, but idempotency keys are removed after {}",
                        format_duration(all), format_duration(keys)),
      blames_keys ? "Use a longer retention, or shorter delays"
                  : fmt::format("Use shorter delays, or a longer {}", keys_option),
      blames_keys ? "" : keys_option);
}

void Validation::one_of(const std::string& option, const std::string& value,
                        const std::vector<std::string_view>& names, const std::string& also) {
  if (std::find(names.begin(), names.end(), value) != names.end())
    return;
  add(option, in_quotes(value), "invalid value", fmt::format("Use {}", any_of(names)), also);
}

void Validation::label(const std::string& option, const std::string& value, std::size_t most) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (value.size() > most) {
    add(option, in_quotes(value), fmt::format("longer than {} bytes", most), "Use a shorter name");
  } else if (std::any_of(value.begin(), value.end(), control)) {
    add(option, in_quotes(value), "contains control characters", "Use printable characters");
  } else if (value.starts_with(' ') || value.ends_with(' ')) {
    add(option, in_quotes(value), "starts or ends with a space", "Remove the space");
  }
}

void Validation::program(const std::string& option, const std::vector<std::string>& command) {
  if (!command.empty() && !command.front().starts_with('/')) {
    add(option + "[0]", in_quotes(command.front()), "not an absolute path",
        "Use an absolute path, such as \"/usr/local/bin/page\"");
  }
  for (std::size_t i = 0; i < command.size(); ++i) {
    // Arguments are not shown: they may be secret.
    if (command[i].find('\0') != std::string::npos)
      add(fmt::format("{}[{}]", option, i), "", "contains a NUL character", "Remove it");
  }
}

bool Validation::topic(const std::string& option, const std::string& name) {
  constexpr std::size_t kMostBytes = 249;
  constexpr std::string_view kPunctuation = "._-";
  const bool allowed = !name.empty() && name.size() <= kMostBytes && name != "." && name != ".." &&
                       std::all_of(name.begin(), name.end(), [&](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') ||
                                kPunctuation.find(c) != std::string_view::npos;
                       });
  if (!allowed) {
    add(option, in_quotes(name), "not a valid topic name",
        std::string("Use up to 249 letters, digits, '.', '_', and '-'") +
            (option.find(".topics[") == std::string::npos ? "" : ". A pattern starts with ^"));
  }
  return allowed;
}

void Validation::scope(const std::string& option, const std::string& name) {
  constexpr std::size_t kMostBytes = 255;
  if (name.find_first_of("{}") != std::string::npos) {
    add(option, in_quotes(name), "a scope is a name, not a template",
        "Put the placeholder into the key");
  } else if (name.find('/') != std::string::npos) {
    // The default scopes are cluster/group/topic; no name may meet one of them.
    add(option, in_quotes(name), "a scope's name cannot contain /", "Use a name without /");
  }
  label(option, name, kMostBytes);
}

}  // namespace pawl::config
