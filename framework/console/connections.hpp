#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "ledger/types.hpp"
#include "message/topic_entries.hpp"
#include "pawl/errors.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// How long an operator waits for one answer of Kafka.
inline constexpr std::chrono::milliseconds kKafkaTimeout{5000};

/// And how long for one message.
inline constexpr std::chrono::milliseconds kMessageTimeout{15000};

/// The database refused to be connected to, or did not answer.
class NoConnection : public FatalError {
 public:
  NoConnection(const std::string& what, bool answered) : FatalError(what), answered_(answered) {}
  [[nodiscard]] bool answered() const { return answered_; }

 private:
  bool answered_;
};

/// Connects an operator's command to the database and looks that the schema can be served. Throws
/// FatalError with the place (redacted) and what to do; NoConnection where there is no session.
std::unique_ptr<postgres::Session> connect_database(const Options& options);

/// The same without looking at the schema.
std::unique_ptr<postgres::Session> connect_bare(const Options& options);

/// A client that asks Kafka and never joins the group; its own log lines are dropped, its errors
/// come with the answers. Throws kafka::KafkaError.
std::unique_ptr<kafka::Client> make_client(const Options& options);

/// The same for one message: it fetches its batch, and not the batches after it.
std::unique_ptr<kafka::Client> make_client_of_one_message(const Options& options);

/// The configured handlers' topics, each once: those that are named, in their order, and those that
/// there are for patterns. Asks Kafka only where there are some; throws kafka::KafkaError.
message::TopicEntries::Chosen choose_topics(const Options& options, const kafka::Client& client);
/// The same of patterns among `existing`.
std::vector<std::string> topics_of(const Options& options,
                                   const std::vector<std::string>& existing);

/// Throws FatalError when the register's rows belong to another Kafka cluster than `found`.
void require_same_cluster(const Options& options, const std::string& known,
                          const std::string& found);

}  // namespace pawl::cli
