#include "ledger/payload.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "message/base64.hpp"

namespace pawl::ledger {

std::string headers_json(std::span<const Header> headers) {
  auto array = nlohmann::json::array();
  for (const auto& header : headers) {
    array.push_back({{"name", std::string(header.name)},
                     {"value", header.value ? nlohmann::json(message::base64(*header.value))
                                            : nlohmann::json(nullptr)}});
  }
  return array.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::vector<StoredHeader> parse_headers_json(std::string_view text) {
  std::vector<StoredHeader> headers;
  try {
    for (const auto& entry : nlohmann::json::parse(text)) {
      auto& header = headers.emplace_back();
      header.name = entry.at("name").get<std::string>();
      if (!entry.at("value").is_null())
        header.value = message::from_base64(entry.at("value").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(std::string("headers are not what pawl stores: ") + error.what());
  }
  return headers;
}

}  // namespace pawl::ledger
