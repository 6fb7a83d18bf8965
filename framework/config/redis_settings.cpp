#include "config/redis_settings.hpp"

namespace pawl::config {

redis::Settings redis_settings(const RedisOptions& options) {
  redis::Settings settings;
  settings.address = redis::parse_address(options.address);
  for (const auto& sentinel : options.sentinels)
    settings.sentinels.push_back(redis::parse_address(sentinel).value());
  settings.master = options.master;
  settings.credentials = {options.user, options.password};
  settings.sentinel_credentials = {options.sentinel_user, options.sentinel_password};
  settings.database = options.database;
  if (options.tls) {
    settings.tls = redis::TlsSettings{options.ca_file, options.certificate, options.private_key,
                                      options.server_name};
  }
  settings.timeout = options.timeout;
  return settings;
}

}  // namespace pawl::config
