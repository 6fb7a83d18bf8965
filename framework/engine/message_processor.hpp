#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/frame_context.hpp"
#include "engine/last_step.hpp"
#include "engine/leased_call.hpp"
#include "engine/message_key.hpp"
#include "engine/scope_cache.hpp"
#include "engine/subject.hpp"
#include "handlers/statement_plan.hpp"
#include "ledger/types.hpp"
#include "message/json.hpp"
#include "postgres/frame.hpp"

namespace pawl::engine {

/// One message and how its transaction ends.
struct MessageStep {
  const Message& message;
  ledger::SourceId source{};
  std::optional<std::int32_t> leader_epoch;
  const LastStep& last;
  /// It has not failed before.
  bool is_first_try = false;
  /// Of a leased handler: its call, which has run. Null: all of it happens in process().
  LeasedCall* call = nullptr;
  /// Of a leased handler: prepare_call() has found that there is nothing to call.
  bool nothing_to_call = false;
  /// When it came out of Kafka's queue; nobody knows: not told.
  std::chrono::steady_clock::time_point taken_at = {};
};

/// The message that is processed right after the one in hand. What it views stays where it is.
struct Upcoming {
  Message message;
  ledger::SourceId source{};
};

/// Takes one message through the frame: key, claim, handler, last step, COMMIT. One per worker;
/// used by its thread only. Throws whatever goes wrong, with nothing stored (or in doubt: InDoubt).
class MessageProcessor {
 public:
  explicit MessageProcessor(const FrameContext& context);

  /// With `next` the claim of that message may travel behind this one's COMMIT; it serves if that
  /// message comes next over this session, and is rolled back if not (postgres::Session::keeps).
  /// `subject` says what it was about, also when this throws.
  ledger::Outcome process(postgres::Session& session, const MessageStep& step, Subject& subject,
                          std::optional<Upcoming> next = std::nullopt);

  /// Takes the lease of a leased handler's message, for a call that is to run without this session
  /// (LeasedCall::run), and then to be given to process(). Null: there is nothing to call;
  /// process() deals with the message. Throws as process() does, and LeasePending.
  std::unique_ptr<LeasedCall> prepare_call(postgres::Session& session, const MessageStep& step,
                                           Subject& subject);

  /// Ends a message that cannot be applied, in one transaction with its last step: as a dead
  /// letter, or left out. Runs nothing of the handler's.
  void set_aside(postgres::Session& session, const MessageStep& step, const Subject& subject,
                 FailurePolicy policy, const ledger::Burial& burial);

  /// Forgets what was read from the database: the connection is a new one.
  void forget() { scopes_.forget(); }

  /// A call was made by process(), and its outcome is not stored yet.
  [[nodiscard]] bool has_call() const { return call_ != nullptr; }
  /// That call; null: there is none.
  [[nodiscard]] const LeasedCall* call() const { return call_.get(); }
  /// Stores for others what is known of it, if that can be: its message is not ours any more.
  void let_go_of_call(postgres::Session& session) noexcept;

  [[nodiscard]] ScopeCache& scopes() { return scopes_; }

 private:
  struct InHand {
    InHand(const Message& view, message::JsonReader& reader) : message(view), json(reader, view) {}

    const MessageStep* step = nullptr;  ///< null until it is in hand
    Message message;
    message::JsonView json;
    bool is_studied = false;
    const handlers::Binding* route = nullptr;  ///< nullptr: no handler's condition matches
    std::variant<NoKey, Key> key;

    [[nodiscard]] const handlers::Binding& binding() const { return *route; }
    /// Nullptr: it has none.
    [[nodiscard]] const std::string* key_text() const {
      const auto* const found = std::get_if<Key>(&key);
      return found == nullptr ? nullptr : &found->text;
    }
  };

  InHand& look_at(std::size_t slot, const Message& message);
  InHand& take_in_hand(const postgres::Session& session, const MessageStep& step);
  void study(InHand& hand) const;
  ledger::Outcome process_without_key(postgres::Session& session, InHand& hand, Subject& subject);
  [[nodiscard]] ledger::Claim claim_of(const ledger::Scope& scope, ledger::SourceId source,
                                       const InHand& hand, bool parks) const;
  void comment(postgres::Frame& frame, const InHand& hand) const;
  void request_claim(postgres::Request& request, const ledger::Scope& scope,
                     ledger::SourceId source, const InHand& hand, bool parks) const;
  std::optional<postgres::NextStart> prepare_next();
  bool begin_with_lock(postgres::Frame& frame, const InHand& hand);
  bool apply_in_one_flight(postgres::Session& session, InHand& hand, Subject& subject);
  ledger::Outcome apply_claimed(postgres::Session& session, InHand& hand, Subject& subject);
  Response run_handler(postgres::Session& session, postgres::Frame& frame, InHand& hand,
                       Subject& subject);
  ledger::Outcome apply_unchecked(postgres::Session& session, InHand& hand, Subject& subject);
  void find_handler(InHand& hand, Subject& subject) const;
  ledger::LeaseAnswer ask_for_lease(postgres::Session& session,
                                    ledger::LeaseRequest& request) const;
  [[nodiscard]] bool was_recorded(postgres::Session& session, const LeasedCall& call);
  void record_alone(postgres::Session& session, LeasedCall& call);
  std::unique_ptr<LeasedCall> acquire_lease(postgres::Session& session, InHand& hand);
  ledger::Outcome process_leased(postgres::Session& session, InHand& hand, Subject& subject);
  ledger::Outcome finish_call(postgres::Session& session, InHand& hand, LeasedCall& call,
                              Subject& subject);
  void give_back(postgres::Session& session, const InHand& hand, LeasedCall& call,
                 ledger::GivenBack how, const Response& response);
  bool give_back_or_leave(postgres::Session& session, const LeasedCall& call, ledger::GivenBack how,
                          const Response& response) const;
  void note_recorded(const LeasedCall& call) const;
  void record_call(postgres::Session& session, InHand& hand, const LeasedCall& call,
                   Subject& subject);
  void record_unplaced(postgres::Session& session, InHand& hand, LeasedCall& call,
                       Subject& subject);
  void tell_loss(postgres::Session& session, const LeasedCall& call, Event event) const;
  [[noreturn]] void lose_lease(postgres::Session& session, const InHand& hand, LeasedCall& call);
  ledger::Outcome pass_duplicate(postgres::Frame& frame, const InHand& hand, ledger::ScopeId scope,
                                 const std::string& key);
  /// Behind a claim that claimed nothing: parks the message if its record key is parked.
  bool park_behind(postgres::Frame& frame, const InHand& hand, const std::string& key);
  ledger::Outcome skip(postgres::Session& session, const InHand& hand, const std::string& reason,
                       bool with_payload);
  struct Buried {
    const ledger::Burial& burial;
    std::int64_t dead_letter = -1;  ///< its ID; -1: unknown, of a parked message
  };
  void bury(postgres::Frame& frame, const InHand& hand, const ledger::Burial& burial,
            const std::string& transaction);
  void finish(postgres::Frame& frame, const InHand& hand, const std::string& transaction,
              ledger::Outcome outcome, const Buried* buried = nullptr);
  /// The message is stored as a dead letter or for a retry, or it is parked.
  void emit_buried(const InHand& hand, const Buried& buried) const;
  void emit(Step what, const InHand& hand, std::string_view detail = {}) const;
  [[nodiscard]] static Event event_of_hand(Step what, const InHand& hand, std::string_view detail);
  void emit_end(Event event, const InHand& hand) const;
  void emit_step(Step what, const InHand& hand) const;

  const FrameContext& context_;
  ScopeCache scopes_;
  handlers::StatementPlan plan_;
  /// Made and run by process(), and not recorded yet: the connection broke.
  std::unique_ptr<LeasedCall> call_;

  // The message in hand, and the one to come whose claim travels behind the COMMIT of the first.
  std::array<message::JsonReader, 2> readers_;
  std::array<std::optional<InHand>, 2> hands_;
  std::size_t current_ = 0;  ///< index of the message in hand
  std::optional<Upcoming> next_;
  postgres::Request request_;  ///< of the message in hand, one after the other
  postgres::Request next_claim_;
  Timing timing_;                          ///< of the message in hand, where observers want times
  std::optional<postgres::Ticket> ahead_;  ///< the claim of hands_[1 - current_]
};

}  // namespace pawl::engine
