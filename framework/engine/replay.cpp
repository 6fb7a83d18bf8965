#include "engine/replay.hpp"

#include <fmt/format.h>

#include <vector>

#include "engine/context.hpp"
#include "engine/failure.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::engine {
namespace {

constexpr const char* kResolve =
    "SELECT pawl.resolve_dead_letter($1::bigint, $2::xid8, 'replayed', $3)";

constexpr const char* kFailedAgain =
    "UPDATE pawl.dead_letters SET replays = replays + 1, error = $2"
    " WHERE dead_letter_id = $1::bigint AND status IN ('dead', 'parked')";

constexpr const char* kSource =
    "SELECT source_id FROM pawl.consumer_topics WHERE consumer_id = $1::integer AND topic = $2";

constexpr std::size_t kLongestError = 8192;
/// A replay competes with the consumer for locks as any message does.
constexpr int kContentionTries = 10;

/// Ends a dead letter's own transaction: raises unless it is still to be resolved, and its turn.
class ResolveStep final : public LastStep {
 public:
  ResolveStep(const std::string& schema, std::int64_t letter)
      : statement_{"pawl_resolve_dead_letter", ledger::in_schema(kResolve, schema)},
        letter_(letter) {}

  [[nodiscard]] const postgres::Statement& statement(ledger::Outcome /*outcome*/) const override {
    return statement_;
  }
  void fill(postgres::Parameters& parameters, const std::string& transaction,
            ledger::Outcome outcome) const override {
    parameters.add_integer(letter_);
    if (transaction.empty()) {
      parameters.add_null();
    } else {
      parameters.add_text(transaction);
    }
    parameters.add_text(ledger::to_string(outcome));
  }
  [[nodiscard]] bool respects_parking() const override { return false; }

 private:
  postgres::Statement statement_;
  std::int64_t letter_;
};

}  // namespace

Replay::Replay(const FrameContext& context, const Registry& registry, ledger::ConsumerId consumer,
               Fetch fetch)
    : context_(context),
      registry_(registry),
      consumer_(consumer),
      fetch_(std::move(fetch)),
      processor_(context) {}

postgres::Session& Replay::session() {
  if (session_ && session_->alive())
    return *session_;
  try {
    session_ = std::make_unique<postgres::Session>(session_settings(context_.options));
    for (const auto& on_connect : registry_.connect_functions())
      on_connect(session_->connection());
    processor_.forget();
    return *session_;
  } catch (const std::exception&) {
    throw FatalError(
        fmt::format("cannot use PostgreSQL: {}; what was replayed before is stored, "
                    "repeat the command for the rest",
                    explain(std::current_exception(), true).text));
  }
}

ledger::SourceId Replay::source_of(const std::string& topic) {
  const auto known = sources_.find(topic);
  if (known != sources_.end())
    return known->second;
  const postgres::Statement find{"", ledger::in_schema(kSource, context_.options.postgres.schema)};
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(topic);
  const auto found = session().exec(find, parameters);
  if (PQntuples(found.get()) == 0) {
    throw FatalError(
        fmt::format("topic {} is not known to this consumer: the database is not the "
                    "one in which its dead letters arose",
                    topic));
  }
  const auto source =
      ledger::SourceId{static_cast<std::int32_t>(ledger::integer(found.get(), 0, 0))};
  return sources_.emplace(topic, source).first->second;
}

ReplayResult Replay::one(const ledger::DeadLetter& letter) {
  if (letter.payload == "complete") {
    std::vector<Header> headers;
    headers.reserve(letter.headers.size());
    for (const auto& header : letter.headers)
      headers.push_back({header.name, header.value ? std::optional<std::string_view>(*header.value)
                                                   : std::nullopt});
    MessageFields fields;
    fields.topic = letter.partition.topic;
    fields.partition = letter.partition.partition;
    fields.offset = letter.offset;
    if (letter.record_key)
      fields.key = *letter.record_key;
    if (letter.record_value)
      fields.value = *letter.record_value;
    fields.headers = headers;
    fields.timestamp_ms = letter.timestamp_ms;
    fields.topic_id = letter.topic_id;
    return apply(letter, Message(fields));
  }
  if (letter.payload == "erased")
    return {ReplayResult::Kind::kUnreadable, "its payload was erased"};
  const auto record = fetch_ ? fetch_(letter) : std::nullopt;
  if (!record) {
    return {ReplayResult::Kind::kUnreadable,
            fmt::format("its payload is {} here, and Kafka does not have the message any more",
                        letter.payload)};
  }
  return apply(letter, record->view(letter.partition.topic, letter.topic_id));
}

ReplayResult Replay::apply(const ledger::DeadLetter& letter, const Message& message) {
  using postgres::FailureClass;
  using Kind = ReplayResult::Kind;
  const ResolveStep last(context_.options.postgres.schema, letter.id);
  const auto source = source_of(letter.partition.topic);
  for (int tries = 1;; ++tries) {
    auto& connection = session();
    try {
      const auto outcome =
          processor_.process(connection, {message, source, letter.leader_epoch, last});
      return {outcome == ledger::Outcome::kDuplicate ? Kind::kDuplicate : Kind::kApplied, ""};
    } catch (...) {
      const auto failure = explain(std::current_exception(), connection.alive());
      if (failure.sqlstate == postgres::kResolvedState)
        return {Kind::kResolved, failure.text};
      if (failure.sqlstate == postgres::kParkedBehindState)
        return {Kind::kWaits, failure.text};
      switch (failure.kind) {
        case FailureClass::kConnection:
          // In doubt or not: the next try finds it resolved, or resolves it.
          session_.reset();
          if (tries < kContentionTries)
            continue;
          throw FatalError(
              fmt::format("the connection to PostgreSQL breaks again and again at dead letter {}: "
                          "{}",
                          letter.id, failure.text));
        case FailureClass::kContention:
          if (tries < kContentionTries)
            continue;
          break;
        default:
          break;
      }
      record_failure(letter, failure.text);
      return {Kind::kFailed, failure.text};
    }
  }
}

void Replay::record_failure(const ledger::DeadLetter& letter, const std::string& why) {
  const postgres::Statement failed{
      "", ledger::in_schema(kFailedAgain, context_.options.postgres.schema)};
  postgres::Parameters parameters;
  parameters.add_integer(letter.id);
  parameters.add_text(ledger::storable_text(why, kLongestError));
  postgres::run_transaction(session(), {{&failed, std::move(parameters)}});
}

}  // namespace pawl::engine
