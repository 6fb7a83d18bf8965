#include "kafka/refusals.hpp"

#include <algorithm>

namespace pawl::kafka {

Refusals::Refusals(std::string_view servers)
    : servers_(1 + static_cast<std::size_t>(std::count(servers.begin(), servers.end(), ','))) {}

void Refusals::note(rd_kafka_resp_err_t code, const std::string& text) {
  const auto end = text.find(": ");
  if (end == std::string::npos)
    return;
  switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      refused_.insert(text.substr(0, end));
      [[fallthrough]];
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
      failed_.insert(text.substr(0, end));
      break;
    default:
      break;
  }
}

Refusals::Verdict Refusals::verdict() const {
  if (refused_.size() >= servers_)
    return Verdict::kFinal;
  return failed_.size() >= servers_ ? Verdict::kUnlikely : Verdict::kOpen;
}

}  // namespace pawl::kafka
