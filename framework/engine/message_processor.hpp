#pragma once

#include <array>
#include <cstddef>
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
  bool halted = false;         ///< the register has the partition as halted at this message
};

/// The message that is processed right after the one in hand. Its record is not moved until then.
struct Upcoming {
  MessageStep step;
  const kafka::Record& record;
};

/// Takes one message through the frame: key, claim, handler, advance, COMMIT. One per worker; used
/// by its thread only. Throws whatever goes wrong, with nothing stored (or in doubt: InDoubt).
class MessageProcessor {
 public:
  explicit MessageProcessor(Context& context);

  /// With `next` the claim of that message may travel behind this one's COMMIT; the caller
  /// processes it next on this session, or calls settle().
  ledger::Outcome process(postgres::Session& session, const MessageStep& step,
                          const kafka::Record& record, std::optional<Upcoming> next = std::nullopt);

  /// Gives up what was begun for the next message, if anything: the session is free for other use.
  void settle() noexcept;

  /// The idempotency key of the message processed last, for error texts; may be empty.
  [[nodiscard]] const std::string& last_key() const { return key_; }

  /// Forgets what was read from the database: the connection is a new one.
  void forget() { scopes_.clear(); }

 private:
  struct Key {
    std::string text;
  };
  struct NoKey {
    std::string why;  ///< what has nothing, for error texts
  };

  struct InHand {
    InHand(const MessageStep& its_step, const kafka::Record& its_record, const Message& view,
           message::JsonReader& reader)
        : step(&its_step), record(&its_record), message(view), json(reader, view) {}

    const MessageStep* step;
    const kafka::Record* record;
    Message message;
    message::JsonView json;
    const handlers::Binding* binding = nullptr;
    std::variant<NoKey, Key> key;
    bool studied = false;  ///< binding and key are found
  };

  InHand& look_at(std::size_t slot, const MessageStep& step, const kafka::Record& record);
  InHand& take_in_hand(const MessageStep& step, const kafka::Record& record);
  void study(InHand& hand) const;
  std::variant<NoKey, Key> derive_key(InHand& hand) const;
  void fill_claim(postgres::Parameters& parameters, ledger::ScopeId scope,
                  const InHand& hand) const;
  const std::string& scope_name(const InHand& hand);
  std::optional<postgres::NextStart> prepare_next();
  ledger::ScopeId scope_of(postgres::Session& session, const InHand& hand);
  ledger::Outcome apply_claimed(postgres::Session& session, InHand& hand, const std::string& key);
  Response run_handler(postgres::Session& session, postgres::Frame& frame, InHand& hand);
  ledger::Outcome apply_unchecked(postgres::Session& session, InHand& hand);
  ledger::Outcome pass_duplicate(postgres::Frame& frame, const InHand& hand, ledger::ScopeId scope,
                                 const std::string& key);
  ledger::Outcome skip(postgres::Session& session, const InHand& hand, const std::string& reason);
  void finish(postgres::Frame& frame, const InHand& hand, const std::string& transaction,
              ledger::Outcome outcome);
  void emit(Step what, const InHand& hand) const;
  void emit_step(Step what, const InHand& hand) const;

  Context& context_;
  std::map<std::string, ledger::ScopeId> scopes_;
  std::string scope_name_;
  std::string key_;

  // The message in hand, and the one to come whose claim travels behind the COMMIT of the first.
  std::array<message::JsonReader, 2> readers_;
  std::array<std::optional<InHand>, 2> hands_;
  std::size_t current_ = 0;  ///< index of the message in hand
  std::optional<Upcoming> next_;
  postgres::Parameters next_claim_;
  std::optional<postgres::StartedTransaction> started_;  ///< for hands_[1 - current_]
};

}  // namespace pawl::engine
