#include <fmt/format.h>

#include <string>

#include "config/option_table.hpp"
#include "config/units.hpp"
#include "config/validation.hpp"
#include "config/values.hpp"
#include "redis/settings.hpp"
#include "redis/transport.hpp"

namespace pawl::config {

namespace {

void validate_unused(const Options& options, Validation& validation) {
  Settings own{options, {}};
  Settings defaults;
  for (const OptionDescriptor& option : option_table()) {
    if (option.section == "redis" &&
        toml_text(value_of(option, own)) != toml_text(value_of(option, defaults))) {
      validation.add(option.option(), "", "set, but calls.lease_store is not \"redis\"",
                     "Remove it, or set calls.lease_store = \"redis\"");
    }
  }
}

void validate_address(const std::string& option, const std::string& address,
                      Validation& validation) {
  if (!redis::parse_address(address)) {
    validation.add(option, in_quotes(address), "not a server address",
                   "Use host:port, such as \"127.0.0.1:6379\"");
  }
}

void validate_place(const RedisOptions& redis, Validation& validation) {
  if (!redis.address.empty())
    validate_address("redis.address", redis.address, validation);
  for (std::size_t i = 0; i < redis.sentinels.size(); ++i)
    validate_address(fmt::format("redis.sentinels[{}]", i), redis.sentinels[i], validation);
  const bool by_sentinel = !redis.sentinels.empty();
  if (redis.address.empty() && !by_sentinel) {
    validation.add(
        "redis.address", "", "not set, but calls.lease_store is \"redis\"",
        "Set it to the server, such as \"127.0.0.1:6379\", or set redis.sentinels and redis.master",
        "calls.lease_store");
  } else if (!redis.address.empty() && by_sentinel) {
    validation.add("redis.address", in_quotes(redis.address), "redis.sentinels is also set",
                   "Keep one, because Sentinel returns the address of the master",
                   "redis.sentinels");
  }
  if (by_sentinel && redis.master.empty()) {
    validation.add("redis.master", "", "not set, but redis.sentinels is set",
                   "Set it to the name of the master in Sentinel, such as \"mymaster\"",
                   "redis.sentinels");
  }
  const auto needs_sentinels = [&](const std::string& option, const std::string& value) {
    if (!by_sentinel && !value.empty())
      validation.add(option, "", "set, but redis.sentinels is not set",
                     "Remove it, or set redis.sentinels");
  };
  needs_sentinels("redis.master", redis.master);
  needs_sentinels("redis.sentinel_user", redis.sentinel_user);
  needs_sentinels("redis.sentinel_password", redis.sentinel_password);
}

void validate_tls(const RedisOptions& redis, Validation& validation) {
  const auto needs_tls = [&](const std::string& option, const std::string& value) {
    if (!redis.tls && !value.empty())
      validation.add(option, "", "set, but redis.tls is false", "Set tls = true, or remove it");
  };
  needs_tls("redis.server_name", redis.server_name);
  needs_tls("redis.ca_file", redis.ca_file);
  needs_tls("redis.certificate", redis.certificate);
  needs_tls("redis.private_key", redis.private_key);
  if (redis.certificate.empty() != redis.private_key.empty()) {
    const bool no_key = redis.private_key.empty();
    validation.add(
        no_key ? "redis.private_key" : "redis.certificate", "",
        fmt::format("not set, but redis.{} is set", no_key ? "certificate" : "private_key"),
        "Set both, or neither");
  }
}

void validate_user(const std::string& section, const std::string& user, const std::string& password,
                   Validation& validation) {
  if (!user.empty() && password.empty()) {
    validation.add(section + "password", "", fmt::format("not set, but {}user is set", section),
                   "Set it to \"${file:PATH}\" or \"${NAME}\"", section + "user");
  }
}

}  // namespace

void validate_redis(const Options& options, Validation& validation) {
  if (options.calls.lease_store != LeaseStore::kRedis)
    return validate_unused(options, validation);
  if (redis::library_version().empty()) {
    validation.add("calls.lease_store", "\"redis\"", "this pawl was built without Redis",
                   "Build it with -DPAWL_REDIS=ON, or use \"postgres\"");
    return;
  }
  const RedisOptions& redis = options.redis;
  validate_place(redis, validation);
  validate_tls(redis, validation);
  validate_user("redis.", redis.user, redis.password, validation);
  validate_user("redis.sentinel_", redis.sentinel_user, redis.sentinel_password, validation);
  if (redis.prefix.find_first_of("{}") != std::string::npos) {
    validation.add(
        "redis.prefix", in_quotes(redis.prefix), "contains a brace",
        "Remove it, because pawl puts the common part of the keys of a lease into braces");
  }
  if (redis.timeout > options.calls.lease_time / 3) {
    validation.add("redis.timeout", in_quotes(format_duration(redis.timeout)),
                   fmt::format("longer than a third of calls.lease_time ({})",
                               format_duration(options.calls.lease_time)),
                   "Use less, so that pawl can retry an extension before the lease expires",
                   "calls.lease_time");
  }
}

}  // namespace pawl::config
