#include "dead_letters/replay.hpp"

#include <fmt/format.h>

#include <vector>

#include "config/invocation.hpp"
#include "engine/context.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

/// A replay competes with the consumer for locks as any message does.
constexpr int kContentionTries = 10;
/// SQL that crashes its server process takes everybody's sessions along.
constexpr int kConnections = 3;

/// Ends a dead letter's own transaction: raises unless it is still to be resolved, and its turn.
class ResolveStep final : public LastStep {
 public:
  ResolveStep(const ledger::DeadLetterChanges& letters, std::int64_t letter)
      : letters_(letters), letter_(letter) {}

  void request(postgres::Request& request, const std::string& transaction,
               ledger::Outcome outcome) const override {
    letters_.resolve(request, letter_, transaction, outcome);
  }
  [[nodiscard]] bool request_first(postgres::Request& request) const override {
    letters_.lock_record_key(request, letter_);
    return true;
  }
  [[nodiscard]] bool respects_parking() const override { return false; }
  [[nodiscard]] bool may_leave_out() const override { return false; }

 private:
  const ledger::DeadLetterChanges& letters_;
  std::int64_t letter_;
};

FatalError unusable(const std::string& what) {
  return FatalError(fmt::format(
      "cannot use PostgreSQL: {}. Earlier replays are committed. Repeat the command for the others",
      what));
}

/// Its handler and its key may depend on what nobody can read.
ReplayResult headers_unknown(const InvocationOptions& invocation, std::int64_t letter) {
  return {
      ReplayResult::Kind::kUnreadable,
      fmt::format("its headers are unknown, because librdkafka cannot read them. pawl therefore "
                  "cannot determine its handler and key. Produce the message again with fewer "
                  "headers, then discard this dead letter:\n  {} {}",
                  command_text(invocation, "dlq discard --because 'headers unknown'"), letter)};
}

}  // namespace

Replay::Replay(const FrameContext& context, const Registry& registry,
               ledger::Registration registration, Fetch fetch, LockWaits lock_waits)
    : context_(context),
      registry_(registry),
      registration_(std::move(registration)),
      letters_(context.options.postgres.schema, registration_.consumer),
      topics_(context.options.postgres.schema, registration_.consumer),
      fetch_(std::move(fetch)),
      lock_waits_(lock_waits),
      processor_(context) {}

postgres::Session& Replay::session() {
  if (may_go_on())
    return *session_;
  try {
    session_ = connect();
  } catch (...) {  // code's may be anything
    throw unusable(explain(std::current_exception(), true).text);
  }
  forget();
  return *session_;
}

std::unique_ptr<postgres::Session> Replay::connect() const {
  const auto& options = context_.options;
  auto settings = session_settings(options);
  settings.schema = context_.schema;
  auto fresh = std::make_unique<postgres::Session>(settings);
  if (!ledger::still_registered(*fresh, options.postgres.schema, options.kafka.cluster,
                                options.kafka.group, registration_)) {
    throw postgres::Error::connection_lost(
        fmt::format("postgres.url no longer leads to database {}, which contains the dead letters",
                    registration_.database_id));
  }
  for (const auto& on_connect : registry_.connect_functions())
    on_connect(fresh->connection());
  fresh->take_baseline();
  return fresh;
}

/// What was read of the database may be of one that has lost it since.
void Replay::forget() {
  processor_.forget();
  sources_.clear();
}

/// Else another session is made.
bool Replay::may_go_on() {
  try {
    return session_ && session_->alive() && context_.schema->may_begin(*session_);
  } catch (const postgres::Error&) {
    return false;
  }
}

ledger::SourceId Replay::source_of(postgres::Session& connection, const std::string& topic) {
  const auto known = sources_.find(topic);
  if (known != sources_.end())
    return known->second;
  const auto found = topics_.find_topic(connection, topic);
  if (!found) {
    throw FatalError(
        fmt::format("this consumer has not processed topic {}. The database is not the one that "
                    "contains its dead letters",
                    topic));
  }
  return sources_.emplace(topic, found->id).first->second;
}

ReplayResult Replay::one(const ledger::DeadLetter& letter) {
  try {
    return with_message(letter, [&](const Message& message) { return apply(letter, message); });
  } catch (const postgres::Error& error) {
    throw unusable(error.what());
  } catch (const postgres::InDoubt& error) {
    throw unusable(error.what());
  }
}

std::variant<const handlers::Binding*, ReplayResult> Replay::handler_of(
    const ledger::DeadLetter& letter) {
  std::optional<const handlers::Binding*> found;
  auto result = with_message(letter, [&](const Message& message) {
    found = identify(context_.router, message).binding;
    return ReplayResult{};
  });
  if (found)
    return *found;
  return result;
}

ReplayResult Replay::with_message(const ledger::DeadLetter& letter, const UseMessage& use) {
  if (letter.headers_unknown)
    return headers_unknown(context_.options.invocation, letter.id);
  if (letter.payload == "complete") {
    const auto headers = ledger::views_of(letter.headers);
    MessageFields fields;
    fields.topic = letter.partition.topic;
    fields.partition = letter.partition.partition;
    fields.offset = letter.offset;
    if (letter.record_key)
      fields.key = *letter.record_key;
    if (letter.record_value)
      fields.value = *letter.record_value;
    fields.headers = headers;
    fields.timestamp = letter.timestamp;
    fields.topic_id = letter.topic_id;
    return use(Message(fields));
  }
  if (letter.payload == "erased")
    return {ReplayResult::Kind::kUnreadable, "its payload was erased"};
  try {
    if (fetch_ && (!fetched_ || fetched_of_ != letter.id)) {
      fetched_ = fetch_(letter);
      fetched_of_ = letter.id;
    }
  } catch (const kafka::KafkaError& error) {
    return {
        ReplayResult::Kind::kNotRead,
        fmt::format("its stored payload is {}, and the message could not be read from Kafka: {}",
                    letter.payload, error.what())};
  }
  if (!fetched_) {
    return {ReplayResult::Kind::kUnreadable,
            fmt::format("its stored payload is {}, and Kafka no longer has the message",
                        letter.payload)};
  }
  const auto message = fetched_->view(letter.partition.topic, letter.topic_id);
  if (message.headers_unreadable())
    return headers_unknown(context_.options.invocation, letter.id);
  return use(message);
}

/// Whether its turn has not come. A handler that ran too early would fail for that, and its error
/// be taken for the letter's.
std::optional<ReplayResult> Replay::waits(const ledger::DeadLetter& letter,
                                          postgres::Session& connection) {
  const auto before = letters_.letter_before(connection, letter.id);
  if (!before)
    return std::nullopt;
  return ReplayResult{
      ReplayResult::Kind::kWaits,
      fmt::format("it waits for dead letter {}, which has the same record key. Replay that dead "
                  "letter first",
                  *before)};
}

ReplayResult Replay::apply(const ledger::DeadLetter& letter, const Message& message) {
  using postgres::FailureClass;
  using Kind = ReplayResult::Kind;
  const ResolveStep last(letters_, letter.id);
  for (int tries = 1;; ++tries) {
    auto& connection = session();
    const auto source = source_of(connection, letter.partition.topic);
    Subject subject;
    try {
      if (auto waiting = waits(letter, connection))
        return *std::move(waiting);
      const auto outcome =
          processor_.process(connection, {message, source, letter.leader_epoch, last}, subject);
      if (connection.take_published())
        context_.outbox_written->ring();
      return {outcome == ledger::Outcome::kDuplicate ? Kind::kDuplicate : Kind::kApplied, ""};
    } catch (...) {
      const auto failure = explain_on(connection, std::current_exception());
      if (failure.sqlstate == postgres::kResolvedState)
        return {Kind::kResolved, failure.text};
      if (failure.sqlstate == postgres::kParkedBehindState)
        return {Kind::kWaits, failure.text};
      if (failure.pending)
        return {Kind::kPending, failure.text};
      switch (failure.kind) {
        case FailureClass::kConnection:
          // In doubt or not: the next try finds it resolved, or resolves it.
          session_.reset();
          if (tries < kConnections)
            continue;
          return {
              Kind::kBreaks,
              fmt::format("the connection to PostgreSQL was lost repeatedly during the replay of "
                          "dead letter {}: {}",
                          letter.id, failure.text)};
        case FailureClass::kContention:
          if (failure.waited_for_lock() && lock_waits_ == LockWaits::kOne)
            break;
          if (tries < kContentionTries)
            continue;
          break;
        case FailureClass::kOutOfOrder:
          // What was read of this database may be of before it lost commits.
          forget();
          if (tries < kContentionTries)
            continue;
          break;
        case FailureClass::kSessionChanged:
          if (tries >= kContentionTries)
            break;
          if (!connection.restore())
            session_.reset();
          continue;
        default:
          break;
      }
      if (tries < kContentionTries && may_be_of_old_schema(failure, subject.handler_begun) &&
          context_.schema->has_changed_since(connection)) {
        session_.reset();
        continue;
      }
      letters_.record_failure(connection, letter.id,
                              {failure.sqlstate, failure.statement, failure.text, failure.detail});
      return {Kind::kFailed, located_text(failure), failure};
    }
  }
}

}  // namespace pawl::engine
