#include "ledger/payload.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "message/message_digest.hpp"

using pawl::Header;
using pawl::Message;
using pawl::ledger::headers_json;
using pawl::ledger::parse_message_headers;

namespace {

std::string stored(const std::vector<Header>& headers, bool unreadable = false) {
  pawl::MessageFields fields;
  fields.headers = headers;
  fields.headers_unreadable = unreadable;
  return headers_json(Message(fields));
}

}  // namespace

TEST_CASE("headers come back as they were, whatever bytes are in their names") {
  const std::vector<Header> headers{{"plain", "value"},
                                    {"null", std::nullopt},
                                    {"empty", ""},
                                    {"caf\xe9", "latin"},
                                    {"caf\xef\xbf\xbd", "replaced"},
                                    {"", "nameless"},
                                    {"\xff\xfe", std::string_view("\x00\xff", 2)},
                                    {"plain", "again"}};
  const auto found = parse_message_headers(stored(headers));
  REQUIRE(found.has_value());
  REQUIRE(found->size() == headers.size());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    CHECK((*found)[i].name == headers[i].name);
    CHECK((*found)[i].value == headers[i].value);
  }
}

TEST_CASE("headers that are unknown are not those of a message without any") {
  CHECK(parse_message_headers(stored({})).has_value());
  CHECK_FALSE(parse_message_headers(stored({}, true)).has_value());
  pawl::MessageFields none;
  auto unknown = none;
  unknown.headers_unreadable = true;
  CHECK(pawl::message::message_digest(Message(none)) !=
        pawl::message::message_digest(Message(unknown)));
}

TEST_CASE("headers that are no array are not what pawl stores") {
  for (const auto* text : {"{}", "1", R"("a")", R"({"a": {"name": "n", "value": null}})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_message_headers(text), std::invalid_argument);
  }
}
