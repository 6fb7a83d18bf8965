#pragma once

// All public headers of pawl. This program stores payments, and publishes each of them to Kafka.
//
//   #include <pawl/pawl.hpp>
//   #include <pqxx/pqxx>
//
//   int main(int argc, char** argv) {
//     pawl::App app("payments");
//     app.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
//       tx.exec("INSERT INTO payments (event_id, payment) VALUES ($1, $2::jsonb)",
//               pqxx::params{message.header("event-id"), message.value()});
//       pawl::publish(tx, {.topic = "payments-booked", .value = message.value()});
//     });
//     return app.main(argc, argv);  // payments run --config payments.toml
//   }
//
// Stability before 1.0
//
// Within a minor version (0.1.x), all names of the namespace pawl in the headers of this folder are
// stable: their signatures, their values, and what their comments state. A program compiles and
// links without a change, and the soname stays the same (libpawl.so.0.1).
//
// A later 0.1.x may add headers, functions, and values of Step, Warning, and Condition::Kind. A
// switch over these values therefore needs a default. Structs get no new fields and classes get no
// new virtual functions, because both would change the binary interface.
//
// A new minor version may change every name, with a line in CHANGELOG.md and a new soname.
//
// Not stable:
// * texts for people, such as what(), Event::detail, Condition::cause, and halt_reason
// * UrlRenewal, InvocationOptions, and Consumer::Impl, which only pawl uses
// * the folder pawl/testing
//
// Types of libpqxx are a part of the interface. Compile with the libpqxx with which pawl was built.

#include "pawl/app.hpp"
#include "pawl/condition.hpp"
#include "pawl/config.hpp"
#include "pawl/consumer.hpp"
#include "pawl/defer.hpp"
#include "pawl/errors.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "pawl/publish.hpp"
#include "pawl/statements.hpp"
