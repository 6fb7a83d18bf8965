#include "engine/make_leases.hpp"

#include "engine/context.hpp"
#include "leases/store/postgres_leases.hpp"

namespace pawl::engine {

std::shared_ptr<const ledger::KeyLeases> make_leases(const Options& options) {
  return std::make_shared<ledger::PostgresLeases>(options.postgres.schema,
                                                  session_settings(options), options.leases.time);
}

}  // namespace pawl::engine
