#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "audit/findings.hpp"
#include "audit/records.hpp"
#include "audit/store/checks.hpp"
#include "audit/store/view.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// What an audit looks at.
struct AuditRequest {
  ledger::AuditFilter filter;  ///< topics of the configuration
  /// Records from here on only.
  std::optional<Timestamp> from_timestamp;
  /// At most so many offsets of each partition, the newest.
  std::optional<std::int64_t> newest;
  bool fast = false;  ///< read no records
};

/// What an audit found of one partition.
struct AuditedPartition {
  ledger::BookRow row;
  kafka::LogRange log;        ///< as Kafka had it behind the row
  ledger::OffsetRange range;  ///< of the records that were read; empty when after == upto
  AuditTally tally;
};

/// Re-derives a consumer's books from Kafka and the database, and changes nothing. Beside running
/// consumers: each partition is audited up to the offset that was stored when the audit began. One
/// thread.
class Audit {
 public:
  /// Told now and then while records are read.
  using Progress = std::function<void(const AuditedPartition&, std::int64_t offset)>;

  /// `kafka`: a client that nobody else uses. All outlive the audit.
  Audit(const Options& options, const handlers::Router& router, postgres::Session& session,
        const kafka::Client& kafka, ledger::ConsumerId consumer, AuditFindings& findings);

  /// Throws kafka::KafkaError and postgres::Error when it cannot look.
  std::vector<AuditedPartition> run(const AuditRequest& request, const Progress& progress);

 private:
  [[nodiscard]] std::vector<AuditedPartition> choose(const AuditRequest& request);
  void ask_kafka(std::vector<AuditedPartition>& partitions);
  void limit_ranges(const AuditRequest& request, std::vector<AuditedPartition>& partitions) const;
  void read_records(std::vector<AuditedPartition>& partitions, const Progress& progress);
  /// Whether all of it was readable.
  bool read_log(AuditedPartition& partition, AuditRecords& records, const Progress& progress);
  [[nodiscard]] std::string set_command(const TopicPartition& partition) const;
  void check_position(const AuditedPartition& partition);
  void check_leader_epochs(const std::vector<AuditedPartition>& partitions);
  void check_counters(const AuditedPartition& partition, const ledger::RecordedCounts& recorded);
  void check_records_counted(const AuditedPartition& partition);
  void check_database(const AuditRequest& request, const ledger::AuditChecks& checks,
                      const std::vector<AuditedPartition>& partitions);
  void report(const ledger::Strays& strays, const char* kind, const char* text, const char* remedy);
  void report(const AuditedPartition& partition, const char* kind, std::string text,
              std::string remedy);
  [[nodiscard]] std::vector<ledger::HandlerScope> handler_scopes() const;

  const Options& options_;
  postgres::Session& session_;
  const kafka::Client& kafka_;
  ledger::ConsumerId consumer_;
  AuditFindings& findings_;
  ledger::AuditView view_;
  AuditContext context_;
  std::map<std::string, std::string> topic_ids_;
};

}  // namespace pawl::engine
