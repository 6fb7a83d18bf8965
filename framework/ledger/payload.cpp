#include "ledger/payload.hpp"

#include <simdjson.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "message/base64.hpp"

namespace pawl::ledger {

std::vector<Header> views_of(const std::vector<StoredHeader>& headers) {
  std::vector<Header> views;
  views.reserve(headers.size());
  for (const auto& header : headers)
    views.push_back({header.name, header.value});
  return views;
}

std::string headers_json(std::span<const Header> headers) {
  auto array = nlohmann::json::array();
  for (const auto& header : headers) {
    array.push_back({{"name", std::string(header.name)},
                     {"value", header.value ? nlohmann::json(message::base64(*header.value))
                                            : nlohmann::json(nullptr)}});
    if (!simdjson::validate_utf8(header.name.data(), header.name.size()))
      array.back()["name_base64"] = message::base64(header.name);
  }
  return array.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string headers_json(const Message& message) {
  return message.headers_unreadable() ? std::string(kUnknownHeaders)
                                      : headers_json(message.headers());
}

std::vector<StoredHeader> parse_headers_json(std::string_view text) {
  std::vector<StoredHeader> headers;
  try {
    const auto entries = nlohmann::json::parse(text);
    if (!entries.is_array())
      throw std::invalid_argument("headers are not what pawl stores: not an array");
    for (const auto& entry : entries) {
      auto& header = headers.emplace_back();
      const auto bytes = entry.find("name_base64");
      header.name = bytes == entry.end() ? entry.at("name").get<std::string>()
                                         : message::from_base64(bytes->get<std::string>());
      if (!entry.at("value").is_null())
        header.value = message::from_base64(entry.at("value").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("headers are not what pawl stores: ") + error.what());
  }
  return headers;
}

std::optional<std::vector<StoredHeader>> parse_message_headers(std::string_view text) {
  if (text == kUnknownHeaders)
    return std::nullopt;
  return parse_headers_json(text);
}

}  // namespace pawl::ledger
