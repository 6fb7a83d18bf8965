#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "kafka/error.hpp"

namespace pawl::kafka {

/// What bootstrap servers have said against a client that has reached none of them yet. One thread.
class Refusals {
 public:
  enum class Verdict {
    kOpen,      ///< one may answer yet
    kUnlikely,  ///< each has failed once; one of them may have another address
    kFinal,     ///< each refuses the client, not only the connection
  };

  /// `servers`: kafka.bootstrap_servers.
  explicit Refusals(std::string_view servers);

  /// An error event of librdkafka's: "[PROTOCOL://]HOST:PORT/bootstrap: why".
  void note(rd_kafka_resp_err_t code, const std::string& text);
  [[nodiscard]] Verdict verdict() const;

 private:
  std::size_t servers_;
  std::set<std::string> failed_;
  std::set<std::string> refused_;  ///< of those, by authentication or TLS
};

}  // namespace pawl::kafka
