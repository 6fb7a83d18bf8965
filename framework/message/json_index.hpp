#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "message/json.hpp"

namespace pawl::message {

/// A value of a parsed document. Values stand in the order of the text, each container directly
/// before what it contains. Positions are offsets into the reader's buffer.
struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t key_begin = 0;  ///< of an object's member, without the quotes
  std::uint32_t key_end = 0;
  std::uint32_t next = 0;  ///< the first node that is not within this one
};

/// A document that is not JSON. JsonReader makes a JsonError of it, since it knows where in the
/// buffer the document begins.
struct InvalidJson {
  const char* where = nullptr;  ///< in the buffer; nullptr: unknown
  std::string_view reason;      ///< a literal
};

/// Visits a document once, checks everything that simdjson's On Demand interface leaves to its user
/// (numbers, escapes, literals, what one would skip), and writes down its nodes. `document` was
/// begun over the `length` bytes at `buffer`, where the text is wrapped into "[" and "]": so a lone
/// number or string is handled like any other value, and nothing may stand behind it. Throws
/// InvalidJson.
void index_json(simdjson::ondemand::document& document, const char* buffer, std::size_t length,
                std::vector<JsonNode>& nodes);

}  // namespace pawl::message
