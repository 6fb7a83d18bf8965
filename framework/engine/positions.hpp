#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "engine/context.hpp"
#include "engine/position_checks.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// The partition is ours at this position.
struct Positioned {
  ledger::Acquired acquired;
  ledger::SourceId source{};
  std::string topic_id;
};

/// The partition is ours (unless `epoch` is absent), but must not be consumed.
struct Refused {
  std::optional<ledger::OwnerEpoch> epoch;
  ledger::Halt halt;
  ledger::Position stored = {};
  /// When the whole topic was asked about, which serves all of its partitions; nullopt: it was not.
  std::optional<std::chrono::steady_clock::time_point> asked_at = std::nullopt;
};

using PositionAnswer = std::variant<Positioned, Refused>;

/// Decides where a partition starts: acquires it in the register, resolves first contact, and holds
/// the stored position against what Kafka has. One per worker; used by its thread only.
class Positions {
 public:
  explicit Positions(Context& context) : context_(context) {}

  /// Throws postgres::Error, postgres::InDoubt, kafka::KafkaError: try again later.
  /// `hint` is the log's range as asked a moment ago; what it seems to refuse is asked again.
  /// `refusal`: see other_log(). `last_look`: see other_topic().
  PositionAnswer acquire(postgres::Session& session, const TopicPartition& partition,
                         const std::optional<kafka::LogRange>& hint,
                         const std::optional<PositionRefusal>& refusal, const LastLook& last_look);

  /// What was refused is asked again: the session is a new one.
  void forget() { refused_topics_.clear(); }

 private:
  /// Asks Kafka for the log's range, and holds the position against it.
  [[nodiscard]] std::optional<ledger::Halt> unservable(const TopicPartition& partition,
                                                       ledger::Position stored) const;
  /// Of the topic, not of one partition: a refusal holds for all of them until it is due again, and
  /// a thousand partitions ask once.
  std::optional<Refused> first_contact(postgres::Session& session, const TopicPartition& partition);
  std::optional<ledger::Halt> resolve_topic(postgres::Session& session,
                                            const TopicPartition& partition) const;
  /// Throws KafkaError when there is none. `max_age`: as TopicDirectory::find().
  [[nodiscard]] kafka::TopicDescription topic_in_kafka(const std::string& topic,
                                                       std::chrono::milliseconds max_age) const;
  [[nodiscard]] KafkaOptions start_of(const std::string& topic) const;
  [[nodiscard]] std::vector<ledger::Position> resolve_start(
      const KafkaOptions& options, const std::vector<TopicPartition>& partitions) const;
  [[nodiscard]] bool lost_registration(postgres::Session& session) const;
  [[nodiscard]] std::optional<ledger::Halt> refuse_beside(postgres::Session& session,
                                                          const std::string& topic,
                                                          const std::string& topic_id) const;

  Context& context_;
  std::map<std::string, Refused> refused_topics_;  ///< by their names
};

}  // namespace pawl::engine
