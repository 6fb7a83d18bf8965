#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace pawl::test {

/// Kafka's requests, by their numbers in the protocol.
enum class KafkaRequest : std::int16_t {
  kProduce = 0,
  kAddPartitionsToTxn = 24,
  kAddOffsetsToTxn = 25,
  kEndTxn = 26,
  kTxnOffsetCommit = 28,
};

/// What becomes of a request.
enum class KafkaFault {
  kCutBefore,  ///< the connection breaks, and the broker has not got it
  kCutAfter,   ///< the broker has answered; the connection breaks before the client has the answer
  kSwallowed,  ///< the broker has got it, and nothing more arrives at either side; nobody is told
};

/// A TCP proxy before one listener of a broker that understands as much of Kafka's protocol as it
/// needs to fail at a request: sizes, numbers of requests and correlation ids. The listener must
/// advertise the proxy's port. One thread, from construction to destruction; every method may be
/// called from any other.
class KafkaProxy {
 public:
  /// Listens on a free port of 127.0.0.1, for a listener on this one.
  explicit KafkaProxy(std::uint16_t broker_port);
  ~KafkaProxy();
  KafkaProxy(const KafkaProxy&) = delete;
  KafkaProxy& operator=(const KafkaProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string bootstrap() const;

  /// For the next request of this kind, once. While it is away then, every connection is closed
  /// together with that of the fault, and new ones as soon as they are made.
  void arm(KafkaRequest request, KafkaFault fault, bool away = false);
  /// It has come, and been dealt with so.
  [[nodiscard]] bool happened() const;
  /// Connections stay open again.
  void come_back();

 private:
  class Loop;
  struct Armed {
    KafkaRequest request;
    KafkaFault fault;
    bool away;
  };

  void ring() const;

  const std::uint16_t broker_port_;
  int listener_;
  std::uint16_t port_ = 0;
  int wake_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::optional<Armed> armed_;  ///< guarded by mutex_
  bool happened_ = false;       ///< guarded by mutex_
  bool away_ = false;           ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::test
