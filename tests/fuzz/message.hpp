// A message that is made of an input.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "fuzz.hpp"
#include "message/json.hpp"
#include "pawl/message.hpp"

namespace pawl::fuzzing {

/// Headers a, b, and c, then the value, each a line. An empty line is a header that is missing.
class LinesMessage {
 public:
  explicit LinesMessage(std::string_view& input) {
    for (const std::string_view name : {"a", "b", "c"}) {
      const auto value = take_line(input);
      if (!value.empty())
        headers_.push_back({name, value});
    }
    value_ = input;
  }

  [[nodiscard]] Message view() const {
    MessageFields fields;
    fields.topic = "payments";
    fields.topic_id = "KbqG5gAAQACgAAAAAAAAAQ";
    fields.partition = 3;
    fields.offset = 42;
    fields.key = "key";
    fields.value = value_;
    fields.headers = headers_;
    return Message(fields);
  }

 private:
  std::vector<Header> headers_;
  std::string_view value_;
};

}  // namespace pawl::fuzzing
