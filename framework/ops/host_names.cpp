#include "ops/host_names.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "config/listen_address.hpp"

namespace pawl::ops {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// Of "name:port", "[::1]:port".
std::string without_port(const std::string& host) {
  if (host.starts_with('['))
    return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

}  // namespace

HostNames::HostNames(std::string machine, std::vector<std::string> more)
    : machine_(std::move(machine)), more_(std::move(more)) {}

bool HostNames::knows(const std::string& name) const {
  const auto own = lower(machine_);
  return config::is_numeric_address(name) || name == "localhost" ||
         // No prefix match: anybody can register a name such as "HOST.example".
         (!own.empty() && (name == own || own.starts_with(name + "."))) ||
         std::ranges::any_of(more_, [&](const auto& more) { return name == lower(more); });
}

std::optional<std::string> HostNames::refusal(const std::string& host) const {
  const auto name = without_port(host);
  if (knows(lower(name)))
    return std::nullopt;
  return fmt::format(
      "The host name \"{}\" is not a name of this process, so another site may have sent the "
      "request. Use a numeric address, \"{}\", or localhost. If the name is correct, set "
      "monitoring.hosts = [\"{}\"].",
      name, machine_, name);
}

std::string machine_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace pawl::ops
