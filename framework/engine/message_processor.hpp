#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "engine/context.hpp"
#include "kafka/record.hpp"
#include "ledger/types.hpp"
#include "message/json.hpp"
#include "postgres/frame.hpp"

namespace pawl::engine {

/// The register's side of one message: who we are and which step we take.
struct MessageStep {
  const TopicPartition& partition;
  ledger::SourceId source{};
  const std::string& topic_id;
  ledger::OwnerEpoch epoch{};
  std::int64_t previous = -1;  ///< offset of the predecessor as fetched
};

/// Takes one message through the frame: key, claim, handler, advance, COMMIT. One per worker; used
/// by its thread only. Throws whatever goes wrong, with nothing stored (or in doubt: InDoubt).
class MessageProcessor {
 public:
  explicit MessageProcessor(Context& context);

  ledger::Outcome process(postgres::Session& session, const MessageStep& step,
                          const kafka::Record& record);

  /// The idempotency key of the message processed last, for error texts; may be empty.
  [[nodiscard]] const std::string& last_key() const { return key_; }

  /// Forgets what was read from the database: the connection is a new one.
  void forget() { scopes_.clear(); }

 private:
  struct InHand {
    const MessageStep& step;
    const kafka::Record& record;
    const Message& message;
    message::JsonView& json;
    const handlers::Binding* binding = nullptr;
  };

  struct Key {
    std::string text;
  };
  struct NoKey {
    std::string why;  ///< what has nothing, for error texts
  };

  std::variant<Key, NoKey> derive_key(const InHand& hand) const;
  ledger::ScopeId scope_of(postgres::Session& session, const InHand& hand);
  ledger::Outcome apply_claimed(postgres::Session& session, const InHand& hand,
                                const std::string& key);
  Response run_handler(postgres::Session& session, postgres::Frame& frame, const InHand& hand);
  ledger::Outcome apply_unchecked(postgres::Session& session, const InHand& hand);
  ledger::Outcome pass_duplicate(postgres::Frame& frame, const InHand& hand, ledger::ScopeId scope,
                                 const std::string& key);
  ledger::Outcome skip(postgres::Session& session, const InHand& hand, const std::string& reason);
  void finish(postgres::Frame& frame, const InHand& hand, const std::string& transaction,
              ledger::Outcome outcome);
  void emit(Step what, const InHand& hand) const;
  void emit_step(Step what, const InHand& hand) const;

  Context& context_;
  message::JsonReader reader_;
  std::map<std::string, ledger::ScopeId> scopes_;
  std::string key_;
};

}  // namespace pawl::engine
