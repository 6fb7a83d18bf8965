#include "pawl/defer.hpp"

#include <stdexcept>

#include "handlers/pqxx_parameters.hpp"
#include "handlers/sql_text.hpp"
#include "postgres/error.hpp"
#include "postgres/frame.hpp"

namespace pawl {

void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters) {
  auto* frame = dynamic_cast<postgres::Frame*>(&tx);
  if (frame == nullptr) {
    throw std::invalid_argument(
        "pawl::defer requires the transaction of the handler, not a subtransaction. Queued "
        "statements run at the end of the message");
  }
  // PostgreSQL's own code for it once it is sent: the program's fault, whatever the message.
  if (handlers::is_copy(sql)) {
    throw postgres::Error("08P01",
                          "COPY cannot be deferred: it does not return like a query. Run it in the "
                          "handler itself, with pqxx::stream_to or tx.exec");
  }
  postgres::Parameters own;
  handlers::add_parameters(own, parameters);
  frame->defer(sql, std::move(own));
}

}  // namespace pawl
