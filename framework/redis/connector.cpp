#include "redis/connector.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "redis/authentication.hpp"

namespace pawl::redis {

std::unique_ptr<Connection> Connector::connect(const std::function<bool()>& stop) {
  if (settings_.address)
    return std::make_unique<Connection>(settings_, *settings_.address);
  const auto count = settings_.sentinels.size();
  if (count == 0)
    throw std::logic_error("neither an address nor Sentinels");
  const auto first = first_.load();
  std::string reasons;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && stop && stop())
      break;
    const auto index = (first + i) % count;
    const auto& sentinel = settings_.sentinels[index];
    try {
      auto connection = std::make_unique<Connection>(settings_, ask(sentinel));
      first_ = index;
      return connection;
    } catch (const Error& error) {
      reasons += fmt::format("{}Sentinel {}: {}", reasons.empty() ? "" : "; ", sentinel.text(),
                             error.what());
    }
  }
  throw Error(
      Error::Kind::kConnection,
      fmt::format("no Sentinel returned a reachable master {}: {}", settings_.master, reasons));
}

Address Connector::ask(const Address& sentinel) const {
  Transport transport(sentinel, settings_.tls, settings_.timeout, "Sentinel " + sentinel.text());
  std::vector<Command> commands;
  add_authentication(settings_.sentinel_credentials, commands);
  commands.push_back({"SENTINEL", "get-master-addr-by-name", settings_.master});
  const auto replies = transport.exchange(commands);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].is_error())
      throw Error::refused(transport.server(), commands[i].front(), replies[i].text);
  }
  if (replies.back().type == Reply::Type::kNil) {
    throw Error(Error::Kind::kUnfit, fmt::format("{} has no master {}. Check redis.master",
                                                 transport.server(), settings_.master));
  }
  const ItemReader items(replies.back(), transport.server(), "SENTINEL");
  const auto& host = items.text(0);
  const auto text = host.find(':') == std::string::npos
                        ? fmt::format("{}:{}", host, items.text(1))
                        : fmt::format("[{}]:{}", host, items.text(1));
  const auto address = parse_address(text);
  if (!address)
    throw Error::malformed(transport.server(), "SENTINEL", fmt::format("the address {}", text));
  return *address;
}

}  // namespace pawl::redis
