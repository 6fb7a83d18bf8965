#pragma once

#include <librdkafka/rdkafka.h>

#include <functional>
#include <memory>
#include <string>

#include "kafka/handles.hpp"
#include "pawl/options.hpp"

namespace pawl::kafka {

/// Receives librdkafka's own log lines as explained() returns them, one at a time, on librdkafka's
/// threads. `level` is syslog's, 0..7.
using LogFunction =
    std::function<void(int level, const std::string& facility, const std::string& text)>;

/// Owns one client of librdkafka, its log, and its OAuth tokens.
///
/// Some calls of librdkafka (2.14.2) have no limit. rd_kafka_destroy, rd_kafka_purge, and
/// rd_kafka_abort_transaction wait for the thread of each broker, which is in getaddrinfo() for
/// minutes if a name server does not respond. rd_kafka_send_offsets_to_transaction waits for the
/// coordinator of the group (confluentinc/librdkafka#5456). And rd_kafka_destroy must not run
/// during another call. So such a call runs on a thread of its own. If its time is over, it is left
/// behind with the client, and the client is destroyed on that thread after the call has returned.
///
/// A client that is left behind
/// * runs no code of its owner. Its log lines are dropped, and its events stay in its queues.
/// * has no effect that counts. The next producer of its transactional.id fences it. Messages of a
///   producer without an id may be stored, as after any end of that producer.
/// * ends when its call returns: when getaddrinfo() does, or when brokers respond again. Until then
///   it gets OAuth tokens, because without them it may never end. An owner that retries waits for
///   the limit of each client first, so few of them accumulate.
/// * does not delay the exit of the process, which waits for none of its threads. They still use
///   OpenSSL, for example, so App::main then skips the destructors of static objects.
class ClientHandle {
 public:
  using TokenProblem = std::function<void(const std::string& problem)>;

  /// Does not connect yet. `token_problem` receives why there is no new OAuth token, on a thread of
  /// its own; null: that is a line of the log. Throws KafkaError if librdkafka rejects the
  /// configuration.
  ClientHandle(const KafkaOptions& options, rd_kafka_type_t type, ConfHandle conf, LogFunction log,
               TokenProblem token_problem = nullptr);
  /// Drops messages that are not confirmed, and does not leave a group. Returns within seconds. All
  /// other handles of the client must be destroyed before. Logs at level 3 if the client is left
  /// behind.
  ~ClientHandle();
  ClientHandle(const ClientHandle&) = delete;
  ClientHandle& operator=(const ClientHandle&) = delete;

  [[nodiscard]] rd_kafka_t* get() const;

  /// Drops messages that are not confirmed. Their delivery reports follow, from some brokers late.
  void purge() const;

  using Call = std::function<ErrorHandle(rd_kafka_t*)>;
  /// Runs a call that librdkafka does not limit. If its time is over, the error is
  /// RD_KAFKA_RESP_ERR__TIMED_OUT, and the only thing left to do with this object is to destroy it.
  [[nodiscard]] ErrorHandle call(Call function, const std::function<bool()>& out_of_time) const;

 private:
  /// librdkafka's client, and what its threads use.
  class Instance;

  /// Shared with a call that was left behind.
  std::shared_ptr<Instance> instance_;
};

}  // namespace pawl::kafka
