#include "testing/postgres_address.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <map>
#include <memory>
#include <stdexcept>

namespace pawl::testing {

namespace {

std::map<std::string, std::string> parse(const std::string& url) {
  char* raw_reason = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options{
      PQconninfoParse(url.c_str(), &raw_reason), &PQconninfoFree};
  const std::unique_ptr<char, decltype(&PQfreemem)> reason{raw_reason, &PQfreemem};
  if (!options) {
    throw std::invalid_argument{fmt::format("{}Fix the URL of the PostgreSQL server",
                                            reason ? reason.get() : "out of memory. ")};
  }
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) {
      values[option->keyword] = option->val;
    }
  }
  return values;
}

std::string take(std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.extract(name);
  return found ? found.mapped() : std::string{};
}

std::string percent_encoded(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || c == '-' || c == '_' || c == '.' || c == '~';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return result;
}

}  // namespace

PostgresAddress address_of(const std::string& url) {
  auto values = parse(url);
  const std::string hostaddr = take(values, "hostaddr");
  PostgresAddress address{hostaddr.empty() ? take(values, "host") : hostaddr, take(values, "port")};
  if (address.host.empty() || address.host.front() == '/' || address.host.front() == '@' ||
      address.host.find(',') != std::string::npos) {
    throw std::invalid_argument{
        "the proxy requires the URL of one server with a TCP host. Add the host"};
  }
  if (address.port.empty()) {
    address.port = "5432";
  }
  return address;
}

std::string with_address(const std::string& url, const PostgresAddress& address) {
  auto values = parse(url);
  take(values, "host");
  take(values, "hostaddr");
  take(values, "port");
  const std::string user = take(values, "user");
  const std::string password = take(values, "password");
  std::string result = "postgresql://" + percent_encoded(user);
  if (!password.empty()) {
    result += ":" + percent_encoded(password);
  }
  result += fmt::format("{}{}:{}/{}", user.empty() && password.empty() ? "" : "@", address.host,
                        address.port, percent_encoded(take(values, "dbname")));
  char separator = '?';
  for (const auto& [name, value] : values) {
    result += separator + name + "=" + percent_encoded(value);
    separator = '&';
  }
  return result;
}

}  // namespace pawl::testing
