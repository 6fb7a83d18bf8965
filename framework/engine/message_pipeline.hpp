#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/frame_context.hpp"
#include "engine/scope_cache.hpp"
#include "handlers/statement_plan.hpp"
#include "ledger/offset_register.hpp"
#include "message/json.hpp"
#include "pawl/message.hpp"
#include "postgres/array_elements.hpp"
#include "postgres/flight.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Consecutive messages of one partition that travel to the server together, each in a transaction
/// of its own (claim, the handler's statements, advance, COMMIT), and are answered together. Behind
/// the first statement that fails the server runs nothing (PostgreSQL manual, 34.5.1), so none
/// overtakes another. Only for handlers that say their statements ahead; every other message goes
/// alone, through MessageProcessor. One thread. Memory is reused from pipeline to pipeline.
class MessagePipeline {
 public:
  /// Of the values, keys and parameters in one pipeline; a message with more goes alone.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

  MessagePipeline(const FrameContext& context, const ledger::OffsetRegister& offsets,
                  ScopeCache& scopes);

  void clear();

  /// Takes one more message on board. False: it goes alone, or not with those before it; why is
  /// said when it does. What it views stays where it is until the pipeline has landed.
  /// `session`: on which run() will be called.
  bool add(const postgres::Session& session, const Message& message,
           const TopicPartition& partition, ledger::SourceId source,
           const ledger::Advance& advance);

  [[nodiscard]] std::size_t size() const { return used_; }

  struct Landed {
    std::size_t stored = 0;    ///< so many of the first are committed
    bool complete = false;     ///< false: the one behind them, if any, goes alone; it says why
    bool row_missing = false;  ///< the register has lost its row: behind these nothing is noted
  };

  /// Sends them. Throws postgres::InDoubt when the connection breaks: some, all or none of them are
  /// stored. `sent` is called when all COMMITs are on their way, before an answer is read.
  Landed run(postgres::Session& session, const std::function<void()>& sent);

  /// Of those that are stored: kApplied or kDuplicate.
  [[nodiscard]] ledger::Outcome outcome(std::size_t index) const;
  [[nodiscard]] const Message& message(std::size_t index) const { return entries_[index].message; }
  [[nodiscard]] const std::string& key(std::size_t index) const { return entries_[index].key; }
  [[nodiscard]] const std::string& handler(std::size_t index) const {
    return entries_[index].binding->label;
  }

 private:
  struct Entry {
    explicit Entry(const Message& view) : message(view) {}

    Message message;
    const handlers::Binding* binding = nullptr;
    std::string key;
    std::int64_t payload_hash = 0;
    bool duplicate = false;
    bool renews = false;  // a duplicate that is younger than its key
    postgres::Request claim;
    handlers::StatementPlan plan;
    std::string comment;  ///< behind each statement of the plan
    ledger::Advance advance;
    std::size_t committed_at = 0;  ///< index of its COMMIT among the answers
  };

  bool study(const postgres::Session& session, Entry& entry, ledger::SourceId source);
  [[nodiscard]] bool fits(const Entry& entry, const ledger::Scope& scope) const;
  void find_duplicates(postgres::Session& session);
  void send(postgres::Session& session, postgres::Flight& flight, Entry& entry, bool is_last);
  [[nodiscard]] Landed read(const postgres::Answers& answers) const;

  const FrameContext& context_;
  const ledger::OffsetRegister& offsets_;
  ScopeCache& scopes_;
  message::JsonReader json_;
  std::vector<Entry> entries_;
  std::size_t used_ = 0;
  std::size_t bytes_ = 0;
  const ledger::Scope* scope_ = nullptr;
  const TopicPartition* partition_ = nullptr;
  postgres::ArrayElements keys_;
  postgres::ArrayElements record_keys_;
  postgres::ArrayElements renewed_;
  postgres::Request request_;
};

}  // namespace pawl::engine
