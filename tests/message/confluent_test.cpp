#include "message/confluent.hpp"

#include "prelude.hpp"

using pawl::message::confluent_schema;

TEST_CASE("a value in Confluent's wire format is known by its first five bytes") {
  const auto [value, schema] = GENERATE(table<std::string, std::optional<std::string>>({
      {"\0\0\0\0\7\2a"s, "Confluent schema id 7; pawl reads JSON only"},
      {"\0\1\2\3\4\xff"s, "Confluent schema id 16909060; pawl reads JSON only"},
      {"\0\x7f\xff\xff\xff\2"s, "Confluent schema id 2147483647; pawl reads JSON only"},
      // A record without fields has no bytes in Avro; JSON behind the prefix is not JSON.
      {"\0\0\0\0\7"s, "Confluent schema id 7; pawl reads JSON only"},
      {"\0\0\0\0\7{\"a\":1}"s, "Confluent schema id 7; pawl reads JSON only"},
      {"", std::nullopt},
      {"\0"s, std::nullopt},
      {"\0\0\0\7"s, std::nullopt},
      {"\0\0\0\0\0\2a"s, std::nullopt},
      {"\0\x80\0\0\0\2a"s, std::nullopt},
      {"\1\0\0\0\7\2a"s, std::nullopt},
      {"{\"a\":1}", std::nullopt},
  }));
  CAPTURE(value);
  CHECK(confluent_schema(value) == schema);
}
