#include "ledger/halt.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace pawl::ledger {
namespace {

constexpr auto kKinds = std::to_array<std::pair<std::string_view, const char*>>({
    {halt_code::kMessageFailed, halt_kind::kMessage},
    {halt_code::kTransactionEnded, halt_kind::kMessage},
    {halt_code::kUnknownOutcome, halt_kind::kUnknownOutcome},
    {halt_code::kLeaseStoreChanged, halt_kind::kUnknownOutcome},
    {halt_code::kLeaseUnreadable, halt_kind::kUnknownOutcome},
    {halt_code::kProgramError, halt_kind::kProgram},
    {halt_code::kLogEndNotStored, halt_kind::kProgram},
    {halt_code::kCircuitBreakerOpen, halt_kind::kCircuitBreaker},
    {halt_code::kProcessCrashed, halt_kind::kCrash},
    {halt_code::kFetchCrashed, halt_kind::kCrashLoop},
    {halt_code::kLogStartMoved, halt_kind::kPosition},
    {halt_code::kLogTruncated, halt_kind::kPosition},
    {halt_code::kRecordReplaced, halt_kind::kPosition},
    {halt_code::kCompletedRecordReplaced, halt_kind::kPosition},
    {halt_code::kLeaderEpochOlder, halt_kind::kPosition},
    {halt_code::kTopicRecreated, halt_kind::kPosition},
    {halt_code::kBatchUnreadable, halt_kind::kPosition},
    {halt_code::kOffsetRowMissing, halt_kind::kPosition},
    {halt_code::kOtherDatabase, halt_kind::kPosition},
    {halt_code::kConsumerLost, halt_kind::kPosition},
    {halt_code::kStartUndecided, halt_kind::kPosition},
    {halt_code::kTopicOfOtherConsumer, halt_kind::kPosition},
});

/// A text of digits can be an idempotency key or an SQLSTATE, so the name decides.
constexpr auto kNumbers = std::to_array<std::string_view>({
    halt_parameter::kAttempts,
    halt_parameter::kMessages,
    halt_parameter::kCrashes,
    halt_parameter::kOffset,
    halt_parameter::kNextOffset,
    halt_parameter::kLogStart,
    halt_parameter::kLogEnd,
    halt_parameter::kLeaderEpoch,
    halt_parameter::kStoredLeaderEpoch,
    halt_parameter::kUncertainFrom,
    halt_parameter::kUnprocessed,
    halt_parameter::kAppliedFrom,
    halt_parameter::kPartitions,
    halt_parameter::kCommittedPartition,
    halt_parameter::kCommittedOffset,
});

/// PostgreSQL's jsonb has no NUL.
std::string without_nul(std::string text) {
  std::ranges::replace(text, '\0', '?');
  return text;
}

}  // namespace

std::string Halt::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string() : found->second;
}

std::optional<std::int64_t> Halt::number(const std::string& name) const {
  if (std::ranges::find(kNumbers, name) == kNumbers.end())
    return std::nullopt;
  const auto text = parameter(name);
  const auto* const end = text.data() + text.size();
  std::int64_t value = 0;
  const auto [read_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && read_to == end ? std::optional(value) : std::nullopt;
}

Halt make_halt(std::string_view code) {
  const auto* const found =
      std::ranges::find(kKinds, code, [](const auto& row) { return row.first; });
  if (found == kKinds.end())
    throw std::logic_error("no halt code: " + std::string(code));
  return {.kind = found->second, .code = std::string(code)};
}

std::string parameters_json(const Halt& halt) {
  if (halt.parameters.empty())
    return {};
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : halt.parameters) {
    if (const auto number = halt.number(name))
      object[name] = *number;
    else if (name == halt_parameter::kHasDetail)
      object[name] = value == "true";
    else
      object[name] = without_nul(value);
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::map<std::string, std::string> parse_parameters_json(const std::string& text) {
  std::map<std::string, std::string> parameters;
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object())
    return parameters;
  for (const auto& [name, value] : object.items())
    parameters.emplace(name, value.is_string() ? value.get<std::string>() : value.dump());
  return parameters;
}

}  // namespace pawl::ledger
