#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/validate.hpp"
#include "console/terminal.hpp"
#include "engine/first_positions.hpp"
#include "handlers/handler.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "ledger/consumers.hpp"
#include "ledger/register_view.hpp"
#include "ledger/topic_patterns.hpp"
#include "outbox/task.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// One result of `check`.
struct Finding {
  enum class Mark { kOk, kInfo, kWarn, kFail };
  Mark mark;
  std::string section;  ///< "PostgreSQL"
  std::string text;
};
/// "PostgreSQL      FAIL  relation "ledger" does not exist", with its line feed.
[[nodiscard]] std::string finding_text(const Finding& finding, const Terminal& terminal);
/// What `check` ends with: the failures again, or `ready`.
[[nodiscard]] std::string ending_text(const std::vector<Finding>& findings, const char* ready,
                                      const Terminal& terminal);
/// `check --json`.
[[nodiscard]] std::string check_json(const std::vector<Finding>& findings);

/// Collects findings, and passes each on as it is found.
class Findings {
 public:
  using Sink = std::function<void(const Finding&)>;
  explicit Findings(Sink sink) : sink_(std::move(sink)) {}

  /// Of the findings that follow.
  void section(std::string name) { section_ = std::move(name); }
  void good(std::string text) { add(Finding::Mark::kOk, std::move(text)); }
  void note(std::string text) { add(Finding::Mark::kInfo, std::move(text)); }
  void warn(std::string text) { add(Finding::Mark::kWarn, std::move(text)); }
  void wrong(std::string text) { add(Finding::Mark::kFail, std::move(text)); }

  [[nodiscard]] const std::vector<Finding>& all() const { return all_; }
  /// Failures.
  [[nodiscard]] std::int64_t count() const;

 private:
  void add(Finding::Mark mark, std::string text) {
    all_.push_back({mark, section_, std::move(text)});
    sink_(all_.back());
  }

  Sink sink_;
  std::string section_;
  std::vector<Finding> all_;
};

/// What `pawl check` does: finds all that is missing or wrong, and changes nothing.
class Check {
 public:
  /// `sink`: gets each finding as it is found.
  Check(const Options& options, const Registry& registry, bool probe, Findings::Sink sink)
      : options_(options),
        registry_(registry),
        relays_only_(config::only_relays(options)),
        probe_(probe),
        findings_(std::move(sink)) {}

  /// The exit code.
  int run();
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_.all(); }
  /// The last line if nothing failed.
  [[nodiscard]] const char* ready_text() const {
    return relays_only_ ? "Ready to relay.\n" : "Ready to run.\n";
  }

 private:
  /// It is certain, without a message, that these options publish the outbox.
  [[nodiscard]] bool relays_at_once() const {
    return relays_only_ || engine::relays_outbox(options_) == engine::RelayBegins::kAtOnce;
  }
  /// The same of Kafka's transactions.
  [[nodiscard]] bool needs_transactions() const {
    return relays_at_once() && options_.outbox.transactions;
  }
  void check_programs();
  void check_redis();
  void make_router();
  void check_remotes();
  void check_database();
  void check_server(postgres::Session& session);
  bool check_schema(postgres::Session& session);
  void check_connections(postgres::Session& session);
  void check_log_size(postgres::Session& session);
  void check_scopes(postgres::Session& session);
  void check_statement_timeout(postgres::Session& session);
  [[nodiscard]] std::size_t outbox_shards(postgres::Session& session) const;
  void check_dead_letters(postgres::Session& session);
  void check_statements(postgres::Session& session);
  void check_sequences(postgres::Session& session);
  /// Whether PostgreSQL has prepared it; otherwise there is a finding.
  bool check_statement(postgres::Session& session, const handlers::DescribedStatement& statement);
  void tell_prepared(const std::vector<std::string>& labels);
  void check_kafka();
  void check_group_protocol(const kafka::Client& client);
  void check_topics(const kafka::Client& client);
  void check_dead_letter_topic(const kafka::Client& client);
  void check_outbox_topic(const kafka::Client& client);
  void check_outbox_transactions(const kafka::Client& client);
  void check_published_topics(const kafka::Client& client);
  void check_first_contacts(const kafka::Client& client, const std::string& cluster_id);
  void check_stored_offsets(const kafka::Client& client);
  bool check_committed(const kafka::Client& client, const std::string& topic,
                       const std::vector<TopicPartition>& partitions);
  bool check_beside(const std::string& topic, const std::string& cluster_id, bool stored);
  [[nodiscard]] KafkaOptions start_of(const std::string& topic) const;
  void find_first_positions(const kafka::Client& client,
                            const std::vector<TopicPartition>& partitions);
  void tell_first_positions();

  const Options& options_;
  const Registry& registry_;
  const bool relays_only_;  ///< they are for `relay`
  const bool probe_;        ///< connect to the services that handlers call
  Findings findings_;
  bool bad_config_ = false;  ///< `run` would reject one of them as a bad configuration
  std::unique_ptr<handlers::Router> router_;
  std::unique_ptr<postgres::Session> session_;
  std::optional<ledger::KnownConsumer> consumer_;
  std::optional<std::vector<ledger::RegisterRow>> rows_;  ///< nullopt: could not be read
  ledger::FirstTopics first_topics_;
  std::string database_id_;
  std::map<std::string, kafka::TopicDescription> topics_;  ///< those that exist
  std::vector<engine::FirstPosition> starts_;              ///< of partitions without an offset
};

}  // namespace pawl::cli
