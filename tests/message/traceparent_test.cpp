#include "message/traceparent.hpp"

#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00-" + kTrace + "-00f067aa0ba902b7-01";

}  // namespace

TEST_CASE("a traceparent is one by its form") {
  const auto text = GENERATE("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
                             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"s,
                             "00-00000000000000000000000000000001-0000000000000001-ff"s,
                             "fe-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s);
  CAPTURE(text);
  CHECK(is_traceparent(text));
}

TEST_CASE("what has not the form of a traceparent is none") {
  const auto text =
      GENERATE(""s, "00"s, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"s,
               "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01"s,
               "00-00000000000000000000000000000000-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"s,
               "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
               "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g"s,
               "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01"s,
               " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 "s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-later"s,
               "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0'"s,
               "00-4bf92f3577b34da6a3ce929d0e0e47*/-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e473\n-00f067aa0ba902b7-01"s,
               "00-4bf92f3577b34da6a3ce929d0e0e473\0-00f067aa0ba902b7-01"s);
  CAPTURE(text);
  CHECK_FALSE(is_traceparent(text));
}

TEST_CASE("the trace of a record is what its headers say") {
  const MessageBuilder none;
  CHECK(trace_of(none.message()).empty());
  CHECK(trace_setting(none.message()).empty());
  CHECK(trace_comment(none.message()).empty());

  MessageBuilder traced;
  traced.header("traceparent", "00-x").header("traceparent", kParent).header("tracestate", "a=1");
  const auto message = traced.message();
  CHECK(traceparent_of(message) == kParent);
  CHECK(trace_id(traceparent_of(message)) == kTrace);
  CHECK(trace_of(message).state == "a=1");
  CHECK(trace_setting(message) == kParent + " a=1");
  CHECK(trace_comment(message) == "/*traceparent='" + kParent + "'*/");
}

TEST_CASE("of headers that are no trace nothing is passed on") {
  MessageBuilder last_counts;
  last_counts.header("traceparent", kParent).header("traceparent", "'; DROP TABLE accounts --");
  CHECK(trace_of(last_counts.message()).empty());

  MessageBuilder null_value;
  null_value.header("traceparent", std::nullopt);
  CHECK(trace_of(null_value.message()).empty());

  MessageBuilder state_alone;
  state_alone.header("tracestate", "a=1");
  CHECK(trace_setting(state_alone.message()).empty());

  const auto state = GENERATE(""s, "a=1\r\nX-Evil: 1"s, "a=\xff"s, std::string(513, 'a'));
  MessageBuilder bad_state;
  bad_state.header("traceparent", kParent).header("tracestate", state);
  CHECK(trace_setting(bad_state.message()) == kParent);
}
