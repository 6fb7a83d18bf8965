#include "engine/message_flight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/message_key.hpp"
#include "message/hexadecimal.hpp"
#include "message/idempotency_key.hpp"
#include "postgres/transaction_statements.hpp"

namespace pawl::engine {

using ledger::Outcome;

MessageFlight::MessageFlight(const FrameContext& context, const ledger::OffsetRegister& offsets,
                             ScopeCache& scopes)
    : context_(context), offsets_(offsets), scopes_(scopes) {}

void MessageFlight::clear() {
  used_ = 0;
  bytes_ = 0;
  partition_ = nullptr;
}

bool MessageFlight::add(const Message& message, const TopicPartition& partition,
                        ledger::SourceId source, const ledger::Advance& advance) {
  if (used_ == entries_.size())
    entries_.emplace_back(message);
  auto& entry = entries_[used_];
  entry.message = message;
  entry.advance = advance;
  try {
    if (!study(entry, source))
      return false;
  } catch (...) {  // code's may be anything
    return false;
  }
  partition_ = &partition;
  ++used_;
  return true;
}

/// Finds handler and key, and fills all parameters while its JSON is at hand.
bool MessageFlight::study(Entry& entry, ledger::SourceId source) {
  message::JsonView json(json_, entry.message);
  entry.binding = context_.router.route(entry.message, json);
  if (entry.binding == nullptr)
    return false;
  const auto* planner = entry.binding->handler->planner();
  const auto scope = scopes_.known(*entry.binding, entry.message.topic(), source);
  if (planner == nullptr || !scope)
    return false;
  auto key = derive_key(*entry.binding, entry.message, json);
  auto* found = std::get_if<Key>(&key);
  if (found == nullptr)
    return false;
  entry.key = std::move(found->text);
  if (!fits(entry, *scope))
    return false;
  entry.payload_hash = message::payload_hash(entry.message);
  entry.duplicate = false;
  entry.renews = false;

  entry.claim.clear();
  context_.keys.fill(entry.claim, {*scope, entry.key, entry.payload_hash, source,
                                   entry.message.partition(), entry.message.offset()});
  if (entry.binding->may_park(entry.message))
    context_.dead_letters.fill_record_key(entry.claim, entry.message);
  entry.plan.clear();
  if (!planner->plan(entry.plan, entry.message, json))
    return false;
  const auto bytes = entry.message.value().size() + entry.key.size() + entry.plan.bytes();
  if (bytes_ + bytes > kMostBytes)
    return false;
  scope_ = *scope;
  bytes_ += bytes;
  return true;
}

/// Whether it can travel with those on board: in transactions of one kind, under another key.
bool MessageFlight::fits(const Entry& entry, ledger::ScopeId scope) const {
  if (bytes_ + entry.message.value().size() > kMostBytes)
    return false;
  if (used_ == 0)
    return true;
  const auto on_board = std::span(entries_).first(used_);
  return scope == scope_ && entry.binding->frame == on_board.front().binding->frame &&
         std::ranges::none_of(on_board, [&](const Entry& e) { return e.key == entry.key; });
}

/// Asks which keys are there, so that a claim that claims nothing is a rare race, and takes from
/// board the first message that must go alone and those behind it.
void MessageFlight::find_duplicates(postgres::Session& session) {
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
  parameters_.clear();
  context_.batch_keys.fill_lookup(parameters_, scope_, keys_, false);
  flight.add(context_.batch_keys.lookup_statement(), parameters_);
  if (parks) {
    parameters_.clear();
    context_.dead_letters.fill_first_parked(parameters_, partition_->topic, record_keys_);
    flight.add(context_.dead_letters.first_parked_statement(), parameters_);
  }
  const auto answers = flight.run();
  for (const auto& known : ledger::BatchKeys::found(answers[0].get())) {
    auto& entry = entries_[known.place];
    entry.duplicate = true;
    entry.renews = ledger::renews(entry.message.timestamp_ms(), known.created_ms);
    // What has to be told, or refused, goes alone.
    if (entry.binding->conflicts(entry.payload_hash, known.payload_hash) ||
        entry.binding->on_duplicate != nullptr)
      used_ = std::min(used_, known.place);
  }
  if (parks)
    used_ = std::min(used_, ledger::DeadLetters::first_parked(answers[1].get()).value_or(used_));
}

void MessageFlight::send(postgres::Flight& flight, Entry& entry, bool is_last) {
  if (!entry.duplicate) {
    flight.add(context_.keys.claim_or_raise_statement(entry.binding->may_park(entry.message)),
               entry.claim);
    for (auto& step : entry.plan.steps())
      flight.add(*step.statement, step.parameters);
  } else if (entry.renews) {
    renewed_.clear();
    renewed_.add_text(entry.key);
    parameters_.clear();
    context_.keys.fill_renewal(parameters_, scope_, renewed_);
    flight.add(context_.keys.renew_statement(), parameters_);
  }
  parameters_.clear();
  offsets_.fill(parameters_, *partition_, entry.advance);
  flight.add(offsets_.pipelined_advance_statement(entry.duplicate ? Outcome::kDuplicate
                                                                  : Outcome::kApplied),
             parameters_);
  flight.add(is_last ? postgres::commit_statement() : postgres::commit_and_chain_statement());
}

MessageFlight::Landed MessageFlight::run(postgres::Session& session,
                                         const std::function<void()>& sent) {
  find_duplicates(session);
  if (used_ == 0)
    return {};
  const auto& frame = entries_.front().binding->frame;
  session.require_statement_timeout(frame.statement_timeout);
  postgres::Answers answers;
  try {
    postgres::Flight flight(session, postgres::Cargo::kHandler);
    flight.add(postgres::begin_statement(frame.isolation, false));
    for (std::size_t i = 0; i < used_; ++i) {
      send(flight, entries_[i], i + 1 == used_);
      entries_[i].committed_at = flight.size() - 1;
    }
    if (sent) {
      flight.push();
      sent();
    }
    answers = flight.run_each();
  } catch (const postgres::Error& error) {
    throw postgres::InDoubt(
        fmt::format("connection lost while {} transactions were on their way: {}", used_,
                    error.what()),
        error.sqlstate());
  }
  const auto landed = read(answers);
  if (!landed.complete)
    postgres::roll_back(session);
  return landed;
}

MessageFlight::Landed MessageFlight::read(const postgres::Answers& answers) const {
  Landed landed;
  for (std::size_t i = 0; i < used_; ++i) {
    const auto at = entries_[i].committed_at;
    if (answers.failure && answers.failed_at <= at)
      return landed;
    if (!postgres::has_committed(answers.results[at].get()))
      return landed;
    if (postgres::affected_rows(answers.results[at - 1].get()) == 0)
      throw postgres::Error::row_missing();
    ++landed.stored;
  }
  landed.complete = true;
  return landed;
}

ledger::Outcome MessageFlight::outcome(std::size_t index) const {
  return entries_[index].duplicate ? Outcome::kDuplicate : Outcome::kApplied;
}

}  // namespace pawl::engine
