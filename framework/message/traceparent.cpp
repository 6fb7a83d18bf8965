#include "message/traceparent.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::message {
namespace {

constexpr std::size_t kTraceIdAt = 3;
constexpr std::size_t kTraceIdLength = 32;
constexpr std::size_t kParentIdAt = 36;
constexpr std::size_t kParentIdLength = 16;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kLength = 55;
/// What the specification demands that everybody passes on (section 3.3.1.5).
constexpr std::size_t kLongestState = 512;

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hexadecimal(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool is_tracestate(std::string_view text) {
  return !text.empty() && text.size() <= kLongestState &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

bool is_traceparent(std::string_view text) {
  if (text.size() != kLength)
    return false;
  if (text[kTraceIdAt - 1] != '-' || text[kParentIdAt - 1] != '-' || text[kFlagsAt - 1] != '-')
    return false;
  const auto version = text.substr(0, kTraceIdAt - 1);
  return is_hexadecimal(version) && version != "ff" && is_id(trace_id(text)) &&
         is_id(text.substr(kParentIdAt, kParentIdLength)) && is_hexadecimal(text.substr(kFlagsAt));
}

std::string_view trace_id(std::string_view traceparent) {
  return traceparent.substr(kTraceIdAt, kTraceIdLength);
}

std::string_view span_id(std::string_view traceparent) {
  return traceparent.substr(kParentIdAt, kParentIdLength);
}

std::string_view traceparent_of(const Message& message) {
  const auto text = message.header("traceparent");
  return text && is_traceparent(*text) ? *text : std::string_view{};
}

Trace trace_of(const Message& message) {
  Trace trace{traceparent_of(message), {}};
  if (trace.empty())
    return trace;
  const auto state = message.header("tracestate");
  if (state && is_tracestate(*state))
    trace.state = *state;
  return trace;
}

std::string trace_setting(const Message& message) {
  const auto trace = trace_of(message);
  return trace.state.empty() ? std::string(trace.parent)
                             : fmt::format("{} {}", trace.parent, trace.state);
}

std::string trace_comment(const Message& message) {
  const auto parent = traceparent_of(message);
  return parent.empty() ? std::string{} : fmt::format("/*traceparent='{}'*/", parent);
}

}  // namespace pawl::message
