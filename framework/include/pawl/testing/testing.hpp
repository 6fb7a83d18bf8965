#pragma once

/// Fixtures for tests of programs that use pawl, on a real PostgreSQL and a real Kafka.
/// Link against pawl::testing.

#include <pawl/testing/child_process.hpp>
#include <pawl/testing/kafka_broker.hpp>
#include <pawl/testing/kafka_producer.hpp>
#include <pawl/testing/kafka_reader.hpp>
#include <pawl/testing/occurrences.hpp>
#include <pawl/testing/postgres_proxy.hpp>
#include <pawl/testing/postgres_server.hpp>
#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>
#include <pawl/testing/wait.hpp>
