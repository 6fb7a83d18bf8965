#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/frame_context.hpp"
#include "engine/scope_cache.hpp"
#include "engine/stopwatch.hpp"
#include "engine/subject.hpp"
#include "handlers/batch_handler.hpp"
#include "ledger/batch_keys.hpp"
#include "ledger/offset_register.hpp"
#include "message/json.hpp"
#include "postgres/frame.hpp"

namespace pawl::engine {

/// How a batch's transaction ends: the register's step from the first message's predecessor to the
/// last message. `advance` lacks what only the batch knows.
struct BatchStep {
  const ledger::OffsetRegister& offsets;
  const TopicPartition& partition;
  ledger::SourceId source{};
  ledger::Advance advance;
};

/// Takes messages of one partition and one handler through the frame together: claim of all keys,
/// handler, advance, COMMIT. One per worker; used by its thread only. Whatever is not plain
/// (unmatched, no key, conflicts, failures) is left to MessageProcessor.
class BatchProcessor {
 public:
  BatchProcessor(const FrameContext& context, ScopeCache& scopes)
      : context_(context), scopes_(scopes) {}

  /// An empty batch.
  void clear();

  /// Adds the message behind those that are there. False: it does not go into this batch. What the
  /// message views stays where it is until the batch is processed.
  bool add(const Message& message, std::chrono::steady_clock::time_point taken_at = {});

  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] std::span<const Message> messages() const { return messages_; }

  /// Applies the batch. Throws whatever goes wrong, with nothing stored (or in doubt: InDoubt). If
  /// it returns offsets, these messages are conflicts: nothing is stored, they must run alone.
  /// `subject` says of the batch whose it was and whether its handler had begun, also when this
  /// throws; it has no key.
  std::vector<std::int64_t> process(postgres::Session& session, BatchStep step, Subject& subject);

 private:
  enum class Fate { kUnchecked, kClaimed, kDuplicate };

  struct Entry {
    std::string key;
    std::int64_t payload_hash = 0;
    Fate fate = Fate::kUnchecked;
    Response response;                                    ///< of a duplicate, as stored
    std::chrono::steady_clock::time_point taken_at = {};  ///< out of Kafka's queue
  };

  bool study(const Message& message);
  std::vector<std::int64_t> sort_keys();
  std::string claim(postgres::Frame& frame, const BatchStep& step);
  std::vector<std::int64_t> look_up_duplicates(postgres::Frame& frame);
  void apply(postgres::Session& session, postgres::Frame& frame, Subject& subject);
  [[nodiscard]] handlers::BatchClaim claim_of_applied() const;
  void store(postgres::Frame& frame, const std::vector<Response>& responses);
  void finish(postgres::Frame& frame, const BatchStep& step);
  [[nodiscard]] ledger::BatchCounts count() const;
  void tell(const Stopwatch& watch);
  [[nodiscard]] Event event_of_entry(Step what, std::size_t index) const;
  void emit_step(Step what) const;

  const FrameContext& context_;
  ScopeCache& scopes_;
  message::JsonReader reader_;
  const handlers::Binding* binding_ = nullptr;

  std::vector<Message> messages_;
  std::vector<Entry> entries_;  // by message
  handlers::BatchColumns columns_;
  Entry studied_;  // of the message that study() was about

  // While a batch is processed.
  const ledger::Scope* scope_ = nullptr;
  std::vector<std::uint32_t> by_key_;    // those with a key, each key once, sorted by key
  std::vector<std::uint32_t> repeated_;  // those with the key of an earlier one in the batch
  ledger::KeysToClaim keys_;
  postgres::ArrayElements renewed_;     // of duplicates that are younger than their keys
  std::vector<std::uint32_t> applied_;  // those that the handler gets, in the log's order
  std::vector<Message> applied_messages_;
  postgres::Request request_;  // of the batch, one after the other
  Timing timing_;              // where observers want times
};

}  // namespace pawl::engine
