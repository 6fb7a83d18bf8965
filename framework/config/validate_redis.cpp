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
                     "remove it, or set calls.lease_store = \"redis\"");
    }
  }
}

void validate_address(const std::string& option, const std::string& address,
                      Validation& validation) {
  if (!redis::parse_address(address)) {
    validation.add(option, in_quotes(address), "not the address of a server",
                   "write host:port, such as \"127.0.0.1:6379\"");
  }
}

void validate_place(const RedisOptions& redis, Validation& validation) {
  if (!redis.address.empty())
    validate_address("redis.address", redis.address, validation);
  for (std::size_t i = 0; i < redis.sentinels.size(); ++i)
    validate_address(fmt::format("redis.sentinels[{}]", i), redis.sentinels[i], validation);
  const bool by_sentinel = !redis.sentinels.empty();
  if (redis.address.empty() && !by_sentinel) {
    validation.add("redis.address", "", "not set, but calls.lease_store is \"redis\"",
                   "name the server, such as \"127.0.0.1:6379\", or redis.sentinels and "
                   "redis.master",
                   "calls.lease_store");
  } else if (!redis.address.empty() && by_sentinel) {
    validation.add("redis.address", in_quotes(redis.address), "redis.sentinels are set too",
                   "keep one: Sentinel says where the master is", "redis.sentinels");
  }
  if (by_sentinel && redis.master.empty()) {
    validation.add("redis.master", "", "not set, but redis.sentinels are",
                   "write what Sentinel calls the master, such as \"mymaster\"", "redis.sentinels");
  }
  const auto needs_sentinels = [&](const std::string& option, const std::string& value) {
    if (!by_sentinel && !value.empty())
      validation.add(option, "", "set, but redis.sentinels are not", "remove it, or name them");
  };
  needs_sentinels("redis.master", redis.master);
  needs_sentinels("redis.sentinel_user", redis.sentinel_user);
  needs_sentinels("redis.sentinel_password", redis.sentinel_password);
}

void validate_tls(const RedisOptions& redis, Validation& validation) {
  const auto needs_tls = [&](const std::string& option, const std::string& value) {
    if (!redis.tls && !value.empty())
      validation.add(option, "", "set, but redis.tls is not", "set tls = true, or remove it");
  };
  needs_tls("redis.server_name", redis.server_name);
  needs_tls("redis.ca_file", redis.ca_file);
  needs_tls("redis.certificate", redis.certificate);
  needs_tls("redis.private_key", redis.private_key);
  if (redis.certificate.empty() != redis.private_key.empty()) {
    const bool no_key = redis.private_key.empty();
    validation.add(no_key ? "redis.private_key" : "redis.certificate", "",
                   fmt::format("not set, but redis.{} is", no_key ? "certificate" : "private_key"),
                   "give both, or none");
  }
}

void validate_user(const std::string& section, const std::string& user, const std::string& password,
                   Validation& validation) {
  if (!user.empty() && password.empty()) {
    validation.add(section + "password", "", fmt::format("not set, but {}user is", section),
                   "write it as \"${file:PATH}\" or \"${NAME}\"", section + "user");
  }
}

}  // namespace

void validate_redis(const Options& options, Validation& validation) {
  if (options.calls.lease_store != LeaseStore::kRedis)
    return validate_unused(options, validation);
  if (redis::library_version().empty()) {
    validation.add("calls.lease_store", "\"redis\"", "this pawl was built without Redis",
                   "build it with -DPAWL_REDIS=ON, or write \"postgres\"");
    return;
  }
  const RedisOptions& redis = options.redis;
  validate_place(redis, validation);
  validate_tls(redis, validation);
  validate_user("redis.", redis.user, redis.password, validation);
  validate_user("redis.sentinel_", redis.sentinel_user, redis.sentinel_password, validation);
  if (redis.prefix.find_first_of("{}") != std::string::npos) {
    validation.add("redis.prefix", in_quotes(redis.prefix), "holds a brace",
                   "take it out: braces mark what both keys of a lease have in common");
  }
  if (redis.timeout > options.calls.lease_time / 3) {
    validation.add("redis.timeout", in_quotes(format_duration(redis.timeout)),
                   fmt::format("longer than a third of calls.lease_time ({})",
                               format_duration(options.calls.lease_time)),
                   "give less, so that an extension that fails is tried again in time",
                   "calls.lease_time");
  }
}

}  // namespace pawl::config
