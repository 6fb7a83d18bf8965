#pragma once

#include <cstdint>
#include <string>

namespace payments {

/// Serves librdkafka's mock cluster on a port of its own, with one topic: prints its bootstrap
/// address on stdout, and returns after SIGTERM or SIGINT. It demonstrates a program if Java is
/// unavailable, and proves nothing about Kafka. Call it before any other thread starts.
void serve_mock_cluster(const std::string& topic, std::int32_t partitions);

}  // namespace payments
