#pragma once

/// All public headers of pawl, for programs with handlers in C++.
///
///   int main(int argc, char** argv) {
///     pawl::App app{"payments"};
///     app.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
///       tx.exec("INSERT INTO payments (event_id, payload) VALUES ($1, $2)",
///               pqxx::params{message.header("event-id"), message.value()});
///     });
///     return app.main(argc, argv);  // payments run --config payments.toml
///   }
///
/// Stability: before 1.0, a minor version may change these headers, and CHANGELOG.md lists each
/// change. pawl/testing/ has the same status. Headers outside of include/ are internal.
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
