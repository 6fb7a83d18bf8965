#include "engine/message_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/message_key.hpp"
#include "message/hexadecimal.hpp"
#include "message/idempotency_key.hpp"
#include "message/traceparent.hpp"
#include "postgres/transaction_statements.hpp"
#include "text/count.hpp"

namespace pawl::engine {

using ledger::Outcome;

MessagePipeline::MessagePipeline(const FrameContext& context, const ledger::OffsetRegister& offsets,
                                 ScopeCache& scopes)
    : context_(context), offsets_(offsets), scopes_(scopes) {}

void MessagePipeline::clear() {
  used_ = 0;
  bytes_ = 0;
  partition_ = nullptr;
}

bool MessagePipeline::add(const postgres::Session& session, const Message& message,
                          const TopicPartition& partition, ledger::SourceId source,
                          const ledger::Advance& advance) {
  if (used_ == entries_.size())
    entries_.emplace_back(message);
  auto& entry = entries_[used_];
  entry.message = message;
  entry.advance = advance;
  try {
    if (!study(session, entry, source))
      return false;
  } catch (...) {  // code's may be anything
    return false;
  }
  partition_ = &partition;
  ++used_;
  return true;
}

/// Finds handler and key, and fills all parameters while its JSON is at hand.
bool MessagePipeline::study(const postgres::Session& session, Entry& entry,
                            ledger::SourceId source) {
  message::JsonView json(json_, entry.message);
  entry.binding = context_.router.route(entry.message, json);
  if (entry.binding == nullptr)
    return false;
  const auto* planner = entry.binding->handler->planner();
  const auto* scope = scopes_.known(*entry.binding, entry.message.topic(), source);
  if (planner == nullptr || scope == nullptr)
    return false;
  auto key = derive_key(*entry.binding, entry.message, json);
  auto* const found = std::get_if<Key>(&key);
  if (found == nullptr)
    return false;
  entry.key = std::move(found->text);
  if (!fits(entry, *scope))
    return false;
  entry.payload_hash = message::payload_hash(entry.message);
  entry.duplicate = false;
  entry.renews = false;

  ledger::Claim claim{*scope,
                      entry.key,
                      entry.payload_hash,
                      source,
                      entry.message.partition(),
                      entry.message.offset()};
  if (entry.binding->may_park(entry.message))
    claim.unless_parked = context_.dead_letters.record_key(entry.message);
  claim.trace = message::trace_setting(entry.message);
  context_.keys.claim_or_raise(entry.claim, claim);
  entry.comment = context_.options.postgres.trace_comment ? message::trace_comment(entry.message)
                                                          : std::string{};
  entry.plan.clear(&session);
  if (!planner->plan(entry.plan, entry.message, json))
    return false;
  const auto bytes = entry.message.value().size() + entry.key.size() + entry.plan.bytes();
  if (bytes_ + bytes > kMostBytes)
    return false;
  scope_ = scope;
  bytes_ += bytes;
  return true;
}

/// Whether it can travel with those on board: in transactions of one kind, under another key.
bool MessagePipeline::fits(const Entry& entry, const ledger::Scope& scope) const {
  if (bytes_ + entry.message.value().size() > kMostBytes)
    return false;
  if (used_ == 0)
    return true;
  const auto on_board = std::span(entries_).first(used_);
  return scope.id == scope_->id && entry.binding->frame == on_board.front().binding->frame &&
         std::ranges::none_of(on_board, [&](const Entry& e) { return e.key == entry.key; });
}

/// Asks which keys are there, so that a claim that claims nothing is a rare race, and takes from
/// board the first message that must go alone and those behind it.
void MessagePipeline::find_duplicates(postgres::Session& session) {
  keys_.clear();
  record_keys_.clear();
  bool parks = false;
  for (std::size_t i = 0; i < used_; ++i) {
    keys_.add_text(entries_[i].key);
    if (entries_[i].binding->may_park(entries_[i].message)) {
      parks = true;
      // PostgreSQL's form of bytea.
      record_keys_.add_text("\\x" + message::hexadecimal(entries_[i].message.key().value()));
    } else {
      record_keys_.add_null();
    }
  }
  postgres::Flight flight(session);
  context_.batch_keys.look_up(request_, *scope_, keys_, false);
  flight.add(request_);
  if (parks) {
    context_.dead_letters.ask_first_parked(request_, partition_->topic, record_keys_);
    flight.add(request_);
  }
  const auto answers = flight.run();
  for (const auto& known : ledger::BatchKeys::found(answers[0].get())) {
    auto& entry = entries_[known.place];
    entry.duplicate = true;
    entry.renews = ledger::renews(entry.message.timestamp(), known.created);
    // What has to be told, or refused, goes alone.
    if (entry.binding->conflicts(entry.payload_hash, known.payload_hash) ||
        entry.binding->on_duplicate != nullptr)
      used_ = std::min(used_, known.place);
  }
  if (parks)
    used_ = std::min(used_, ledger::DeadLetters::first_parked(answers[1].get()).value_or(used_));
}

void MessagePipeline::send(postgres::Session& session, postgres::Flight& flight, Entry& entry,
                           bool is_last) {
  if (!entry.duplicate) {
    flight.add(entry.claim);
    for (auto& step : entry.plan.steps())
      flight.add(step.request, entry.comment);
    if (auto release = session.release_of_locks())
      flight.add(*release);
  } else if (entry.renews) {
    renewed_.clear();
    renewed_.add_text(entry.key);
    context_.keys.renew(request_, scope_->id, renewed_);
    flight.add(request_);
  }
  entry.advance.outcome = entry.duplicate ? Outcome::kDuplicate : Outcome::kApplied;
  offsets_.advance_pipelined(request_, *partition_, entry.advance);
  flight.add(request_);
  flight.add(is_last ? postgres::commit_statement() : postgres::commit_and_chain_statement());
}

MessagePipeline::Landed MessagePipeline::run(postgres::Session& session,
                                             const std::function<void()>& sent) {
  const auto collected = used_;
  find_duplicates(session);
  if (used_ == 0)
    return {};
  const auto& frame = entries_.front().binding->frame;
  session.require_statement_timeout(frame.statement_timeout);
  postgres::Answers answers;
  try {
    postgres::Flight flight(session, postgres::Cargo::kHandler);
    flight.add(postgres::begin_statement(frame.isolation));
    for (std::size_t i = 0; i < used_; ++i) {
      send(session, flight, entries_[i], i + 1 == used_);
      entries_[i].committed_at = flight.size() - 1;
    }
    if (sent) {
      flight.push();
      sent();
    }
    answers = flight.run_each();
  } catch (const postgres::Error& error) {
    throw postgres::InDoubt(fmt::format("connection lost while {} in flight: {}",
                                        texts::counted(static_cast<std::int64_t>(used_),
                                                       "transaction was", "transactions were"),
                                        error.what()),
                            error.sqlstate());
  }
  auto landed = read(answers);
  if (landed.complete)
    session.locks_released();
  else
    postgres::roll_back(session);
  landed.complete = landed.complete && used_ == collected;
  if (landed.row_missing)
    throw postgres::Error::row_missing();
  return landed;
}

MessagePipeline::Landed MessagePipeline::read(const postgres::Answers& answers) const {
  Landed landed;
  for (std::size_t i = 0; i < used_; ++i) {
    const auto at = entries_[i].committed_at;
    if (answers.failure && answers.failed_at <= at)
      return landed;
    if (!postgres::has_committed(answers.results[at].get()))
      return landed;
    landed.row_missing = postgres::affected_rows(answers.results[at - 1].get()) == 0;
    if (landed.row_missing)
      return landed;
    ++landed.stored;
  }
  landed.complete = true;
  return landed;
}

ledger::Outcome MessagePipeline::outcome(std::size_t index) const {
  return entries_[index].duplicate ? Outcome::kDuplicate : Outcome::kApplied;
}

}  // namespace pawl::engine
