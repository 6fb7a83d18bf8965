#pragma once

#include <string>
#include <string_view>

#include "pawl/message.hpp"

namespace pawl::message {

/// Whether the text is a traceparent as W3C Trace Context has it (section 3.2):
/// version-traceid-parentid-flags, in lower-case hexadecimal digits, with neither id all zero and a
/// version other than "ff". Of later versions only what has the form of version 00: no more is
/// passed on than is understood.
[[nodiscard]] bool is_traceparent(std::string_view text);

/// The trace id of a valid traceparent.
[[nodiscard]] std::string_view trace_id(std::string_view traceparent);
/// The parent id of a valid traceparent: the span that produced the message.
[[nodiscard]] std::string_view span_id(std::string_view traceparent);

/// What a record says of the trace that it belongs to. Views the message.
struct Trace {
  std::string_view parent;  ///< header `traceparent`; empty: none, or not a valid one
  /// Header `tracestate`; empty: none, no parent to go with, or more than 512 printable characters.
  std::string_view state;

  [[nodiscard]] bool empty() const { return parent.empty(); }
};

[[nodiscard]] std::string_view traceparent_of(const Message& message);
[[nodiscard]] Trace trace_of(const Message& message);

/// As pawl.publish is told of it by its transaction: the parent, and behind a blank the state where
/// there is one. Empty: there is none.
[[nodiscard]] std::string trace_setting(const Message& message);

/// A comment for SQL, in sqlcommenter's form: /*traceparent='00-...'*/. Empty without a trace.
[[nodiscard]] std::string trace_comment(const Message& message);

}  // namespace pawl::message
