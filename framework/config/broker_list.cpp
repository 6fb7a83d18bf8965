#include "config/broker_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "config/listen_address.hpp"

namespace pawl::config {
namespace {

constexpr std::uint16_t kDefaultPort = 9092;
constexpr std::string_view kScheme = "://";
constexpr std::array<std::string_view, 4> kProtocols{"plaintext", "ssl", "sasl_plaintext",
                                                     "sasl_ssl"};

std::string_view trimmed(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(start, text.find_last_not_of(' ') + 1 - start);
}

std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    entries.push_back(trimmed(text.substr(0, comma)));
    if (comma == text.size())
      return entries;
    text.remove_prefix(comma + 1);
  }
}

bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

/// Between brackets; a zone may follow the address (RFC 4007).
bool is_ipv6(std::string_view address) {
  const std::size_t digits_end = std::min(address.find('%'), address.size());
  const std::string_view digits = address.substr(0, digits_end);
  return digits.find(':') != std::string_view::npos && is_numeric_address(std::string(digits)) &&
         (digits_end == address.size() || is_host(address.substr(digits_end + 1)));
}

/// "host:port"; nullopt: it is no broker.
std::optional<std::string> normal_broker(std::string_view broker) {
  std::size_t host_end = std::min(broker.find(':'), broker.size());
  if (broker.starts_with('[')) {
    const std::size_t bracket = broker.find(']');
    if (bracket == std::string_view::npos || !is_ipv6(broker.substr(1, bracket - 1)))
      return std::nullopt;
    host_end = bracket + 1;
  } else if (!is_host(broker.substr(0, host_end))) {
    return std::nullopt;
  }
  const std::string_view host = broker.substr(0, host_end);
  if (host_end == broker.size())
    return fmt::format("{}:{}", host, kDefaultPort);
  std::uint16_t port = 0;
  const char* const last = broker.data() + broker.size();
  const auto [end, error] = std::from_chars(host.data() + host.size() + 1, last, port);
  if (broker[host_end] != ':' || error != std::errc{} || end != last || port == 0)
    return std::nullopt;
  return fmt::format("{}:{}", host, port);
}

/// What to write in the place of "scheme://...".
std::string without_scheme(std::string_view scheme) {
  std::string protocol(scheme);
  std::ranges::transform(protocol, protocol.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::ranges::find(kProtocols, protocol) == kProtocols.end())
    return "Use host:port only";
  return fmt::format(
      "Use host:port only, and set \"security.protocol\" = \"{}\" in [kafka.librdkafka]", protocol);
}

}  // namespace

std::optional<BrokerListProblem> broker_list_problem(std::string_view text) {
  std::size_t number = 0;
  for (const std::string_view entry : entries_of(text)) {
    ++number;
    const auto problem = [number](const char* what, std::string fix) {
      return BrokerListProblem{fmt::format("broker {} of the list {}", number, what),
                               std::move(fix)};
    };
    if (entry.empty())
      return problem("is empty", "Remove the comma, or add a broker");
    if (const std::size_t scheme = entry.find(kScheme); scheme != std::string_view::npos)
      return problem("has a scheme (://)", without_scheme(entry.substr(0, scheme)));
    if (!normal_broker(entry))
      return problem("is not host:port", "Use host:port, separated by commas");
  }
  return std::nullopt;
}

std::string normal_broker_list(std::string_view text) {
  std::vector<std::string> brokers;
  for (const std::string_view entry : entries_of(text)) {
    const auto broker = normal_broker(entry);
    if (broker && std::ranges::find(brokers, *broker) == brokers.end())
      brokers.push_back(*broker);
  }
  return fmt::format("{}", fmt::join(brokers, ","));
}

}  // namespace pawl::config
