// `try`: what one message would do, in a transaction that is rolled back.
#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/commands.hpp"
#include "cli/message_file.hpp"
#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/decoded.hpp"
#include "console/operator_change.hpp"
#include "console/printable.hpp"
#include "engine/failure.hpp"
#include "engine/handler_call.hpp"
#include "engine/last_step.hpp"
#include "engine/message_key.hpp"
#include "engine/message_processor.hpp"
#include "handlers/atomicity.hpp"
#include "handlers/http/request_template.hpp"
#include "handlers/http/shown_request.hpp"
#include "handlers/router.hpp"
#include "handlers/statement_plan.hpp"
#include "kafka/fetch_one.hpp"
#include "kafka/handles.hpp"
#include "ledger/consumers.hpp"
#include "ledger/history_view.hpp"
#include "ledger/key_view.hpp"
#include "ledger/offset_register.hpp"
#include "message/idempotency_key.hpp"
#include "message/traceparent.hpp"
#include "pawl/errors.hpp"
#include "postgres/session.hpp"
#include "text/bounded.hpp"

namespace pawl::cli {
namespace {

/// Of a parameter, a key or a response.
constexpr std::size_t kShown = 200;

struct Arguments {
  std::string file;
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<std::int64_t> offset;
  bool commit = false;
  std::string because;
};

// What each table has had, by this transaction: what triggers and code did is among it.
constexpr const char* kTouched = R"sql(
  SELECT s.schemaname || '.' || s.relname, s.n_tup_ins, s.n_tup_upd, s.n_tup_del
    FROM pg_catalog.pg_stat_xact_user_tables s
   WHERE s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0
   ORDER BY 1
)sql";

/// A message from Kafka, or from a file, with what it is a view of.
class Source {
 public:
  Source(const Options& options, const Arguments& arguments) {
    if (!arguments.file.empty()) {
      std::ifstream stream(arguments.file, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(stream), {}};
      if (!stream)
        throw BadCall(fmt::format("--message {}: cannot be read", arguments.file));
      try {
        file_ = MessageFile::parse(text, arguments.file);
      } catch (const std::invalid_argument& error) {
        throw BadCall(fmt::format("--message {}", error.what()));
      }
      return;
    }
    topic_ = arguments.topic;
    client_ = make_client(options);
    const TopicPartition partition{topic_, *arguments.partition};
    try {
      topic_id_ = topic_id_of(*client_, topic_);
      record_ = kafka::fetch_one(*client_, partition, *arguments.offset, kMessageTimeout);
    } catch (const kafka::KafkaError& error) {
      throw BadCall(fmt::format("--offset {}: {}", *arguments.offset, error.what()));
    }
    if (!record_ || record_->offset() != *arguments.offset) {
      throw BadCall(fmt::format(
          "--offset {}: {}[{}] has no message at this offset{}", *arguments.offset, topic_,
          partition.partition,
          record_ ? fmt::format(". The next message is at {}", record_->offset()) : std::string()));
    }
  }

  [[nodiscard]] Message message() const {
    return file_ ? file_->view() : record_->view(topic_, topic_id_);
  }

 private:
  std::string topic_;
  std::string topic_id_;
  std::optional<MessageFile> file_;
  std::unique_ptr<kafka::Client> client_;  // outlives the record
  std::optional<kafka::Record> record_;
};

std::string shown(std::optional<std::string_view> bytes) {
  return to_text(decode(bytes, kShown));
}

/// Its record key is parked, so that it would overtake what came before it.
class KeyIsParked : public std::exception {};

/// Ends the transaction of a message that an operator commits: with an entry of the history, at
/// whatever offset the partition is.
class CommitByHand final : public engine::LastStep {
 public:
  CommitByHand(const ledger::HistoryEntry& history, const ledger::IdempotencyKeys& keys,
               const Message& message, const std::string& because)
      : history_(history), keys_(keys), message_(message), because_(because) {}

  void request(postgres::Request& request, const std::string& /*transaction*/,
               ledger::Outcome outcome) const override {
    if (outcome == ledger::Outcome::kParked)
      throw KeyIsParked();
    if (outcome == ledger::Outcome::kDuplicate)
      return keys_.name_open_transaction(request);
    history_.record(request, {std::string(message_.topic()), message_.partition()},
                    message_.offset(), "try", because_);
  }
  [[nodiscard]] bool names_transaction() const override { return false; }
  [[nodiscard]] bool respects_parking() const override { return true; }
  [[nodiscard]] bool may_leave_out() const override { return false; }

 private:
  const ledger::HistoryEntry& history_;
  const ledger::IdempotencyKeys& keys_;
  const Message& message_;
  const std::string& because_;
};

class Trial {
 public:
  Trial(const Options& options, const Registry& registry, const Message& message)
      : options_(options),
        router_(options, registry),
        message_(message),
        json_(reader_, message),
        session_(connect_database(options)) {
    for (const auto& on_connect : registry.connect_functions())
      on_connect(session_->connection());
    // dblink_exec commits on its server even where the trial is rolled back.
    handlers::require_atomicity(*session_, router_, options.handlers);
  }

  int run(bool commit, const std::string& because) {
    std::cout << fmt::format("message   {} [{}] offset {}\n", printable(message_.topic()),
                             message_.partition(), message_.offset());
    bool has_key = false;
    try {
      binding_ = router_.route(message_, json_);
      if (binding_ == nullptr) {
        std::cout << "handler   none: no handler of this topic has a `when` that holds; "
                     "failures.unmatched says what becomes of it\n";
        return kFailed;
      }
      std::cout << fmt::format("handler   {}\n", printable(binding_->label));
      has_key = find_key();
    } catch (...) {  // code's may be anything
      return fail(true);
    }
    if (has_key)
      say_whether_processed();
    if (binding_->leased != nullptr) {
      std::cout << "effect    a call to the outside under a lease, which is not made here\n";
      try {
        say_request();
      } catch (...) {  // as of a call
        return fail(true);
      }
      return has_key ? kDone : kFailed;
    }
    say_statements();
    if (!has_key && binding_->missing_key != MissingKey::kProcess)
      return kFailed;
    if (!has_key && commit) {
      std::cout
          << "not committed: without an idempotency key it would be no duplicate when its turn "
             "comes, and be applied again; try it without --commit\n";
      return kFailed;
    }
    return commit ? commit_it(because) : roll_back();
  }

 private:
  bool find_key() {
    const auto key = engine::derive_key(*binding_, message_, json_);
    if (const auto* none = std::get_if<engine::NoKey>(&key)) {
      std::cout << fmt::format(
          "key       none: {}; idempotency.missing_key says what becomes of it\n", none->why);
      return false;
    }
    key_ = std::get<engine::Key>(key).text;
    std::string buffer;
    scope_ = engine::scope_name(options_.kafka, binding_->scope, message_.topic(), buffer);
    std::cout << fmt::format("key       {} in scope {}\n", printable(key_), printable(scope_));
    return true;
  }

  void say_whether_processed() {
    const auto found =
        ledger::find_key(*session_, options_.postgres.schema, {{scope_, ""}}, key_, 0);
    if (found.empty())
      return;
    const auto& before = found.front();
    const bool conflicts =
        binding_->conflicts(message::payload_hash(message_), before.payload_hash);
    std::cout << fmt::format(
        "          PROCESSED BEFORE, at {} [{}] offset {}{}; what it would do is shown all the "
        "same\n",
        printable(before.topic), before.partition, before.offset,
        conflicts
            ? " with ANOTHER payload: `run` takes it for a conflict, and idempotency.conflict "
              "says what becomes of it"
            : ": `run` passes it as a duplicate");
  }

  /// Of a handler that is an HTTP request: what would be sent. Of headers the names alone.
  void say_request() {
    const auto& bindings = router_.bindings();
    const auto found = std::ranges::find_if(
        bindings, [this](const auto& binding) { return binding.get() == binding_; });
    // One binding for each handler of the configuration.
    const auto& http = options_.handlers[static_cast<std::size_t>(found - bindings.begin())].http;
    if (http.empty())
      return;
    const auto request =
        handlers::RequestTemplate(handlers::without_references(handlers::without_secrets(http)))
            .render(message_, json_);
    std::cout << fmt::format("request   {} {}\n", request.method, printable(request.url));
    for (const auto& header : request.headers)
      std::cout << fmt::format("header    {}\n", printable(header.substr(0, header.find(':'))));
    if (!http.key_header.empty() && !key_.empty()) {
      std::cout << fmt::format("header    {}: {}\n", printable(http.key_header),
                               message::remote_key(scope_, key_));
    }
    if (request.has_body)
      std::cout << fmt::format("body      {}\n", shown(request.body));
  }

  /// With what is bound to them, as far as that is known without running them.
  void say_statements() {
    const auto written = binding_->handler->statements();
    if (written.empty()) {
      std::cout << "effect    C++\n";
      return;
    }
    handlers::StatementPlan plan;
    const auto* planner = binding_->handler->planner();
    const bool bound = planner != nullptr && planner->plan(plan, message_, json_);
    for (std::size_t i = 0; i < written.size(); ++i) {
      std::cout << fmt::format("sql       {}\n", printable_lines(written[i].sql));
      if (!bound || i >= plan.steps().size())
        continue;
      auto& parameters = plan.steps()[i].request.parameters;
      const auto view = parameters.view();
      for (int p = 0; p < parameters.count(); ++p) {
        const auto* value = view.values[p];
        const auto length = static_cast<std::size_t>(view.lengths[p]);
        std::cout << fmt::format(
            "          ${} = {}\n", p + 1,
            value == nullptr ? "NULL" : shown(std::string_view(value, length)));
      }
    }
  }

  int fail(bool alive) {
    const auto failure = engine::explain(std::current_exception(), alive);
    std::cout << fmt::format("FAILED    {}{}\n", printable_lines(failure.text),
                             engine::sqlstate_text(failure));
    if (!failure.detail.empty())
      std::cout << fmt::format(
          "          {}\n", printable_lines(texts::bounded(failure.detail, texts::kLongestCause)));
    return kFailed;
  }

  int roll_back() {
    try {
      postgres::Frame frame(*session_, binding_->frame);
      const ledger::IdempotencyKeys keys(options_.postgres.schema);
      postgres::Request request;
      keys.name_transaction(request, message::trace_setting(message_));
      (void)frame.begin(request);
      if (options_.postgres.trace_comment)
        frame.comment(message::trace_comment(message_));
      const auto response = engine::call_handler(
          *session_, [&] { return binding_->handler->apply(frame, message_, json_); });
      engine::require_fits(*binding_, response);
      frame.flush();
      // What would fail at COMMIT.
      const postgres::Statement check{"", "SET CONSTRAINTS ALL IMMEDIATE"};
      request.to(check);
      (void)frame.exec(request);
      say_rows(frame);
      if (response)
        std::cout << fmt::format("response  {}\n", shown(*response));
    } catch (...) {  // code's may be anything
      return fail(session_->alive());
    }
    std::cout << "rolled back: nothing of it is stored\n";
    return kDone;
  }

  static void say_rows(postgres::Frame& frame) {
    const postgres::Statement touched{"", kTouched};
    postgres::Request request;
    request.to(touched);
    const auto found = frame.exec(request);
    const auto* rows = found.get();
    if (PQntuples(rows) == 0)
      std::cout << "rows      none\n";
    for (int row = 0; row < PQntuples(rows); ++row) {
      std::cout << fmt::format("rows      {}: {} inserted, {} updated, {} deleted\n",
                               printable(PQgetvalue(rows, row, 0)), PQgetvalue(rows, row, 1),
                               PQgetvalue(rows, row, 2), PQgetvalue(rows, row, 3));
    }
  }

  /// As a replay does it: key and effects in one transaction, and the stored offset stays.
  int commit_it(const std::string& because) {
    const auto consumer = require_consumer(*session_, options_);
    const ledger::OffsetRegister topics(options_.postgres.schema, consumer.id);
    const std::string topic(message_.topic());
    const auto known = topics.find_topic(*session_, topic);
    if (!known) {
      throw BadCall(
          fmt::format("--commit: this consumer has never processed topic {}; begin with "
                      "`run`",
                      topic));
    }
    const engine::Observers observers({});
    const auto context = engine::frame_context(options_, router_, observers, consumer.id);
    engine::MessageProcessor processor(context);
    const ledger::HistoryEntry history(options_.postgres.schema, consumer.id);
    const CommitByHand last(history, context.keys, message_, because);
    engine::Subject subject;
    try {
      const auto outcome =
          processor.process(*session_, {message_, known->id, std::nullopt, last}, subject);
      std::cout << (outcome == ledger::Outcome::kDuplicate
                        ? "a duplicate: nothing was done\n"
                        : "committed: key and effects are stored, and the stored offset is where "
                          "it was\n");
      return kDone;
    } catch (const KeyIsParked&) {
      std::cout << fmt::format(
          "not committed: a dead letter of its record key is unresolved, and later messages of the "
          "key wait for it. This lists it: {} --topic {}; replay or discard it first\n",
          command_text(options_.invocation, "dlq parked"), shell_word(topic));
      return kFailed;
    } catch (...) {  // code's may be anything
      return fail(session_->alive());
    }
  }

  const Options& options_;
  const handlers::Router router_;
  const Message message_;
  message::JsonReader reader_;
  message::JsonView json_;
  const std::unique_ptr<postgres::Session> session_;
  const handlers::Binding* binding_ = nullptr;
  std::string key_;
  std::string scope_;
};

int try_it(const Program& program, const Options& options, const Arguments& arguments) {
  const bool from_kafka = !arguments.topic.empty() || arguments.partition || arguments.offset;
  const bool complete = !arguments.topic.empty() && arguments.partition && arguments.offset;
  if (arguments.file.empty() == !from_kafka || (from_kafka && !complete))
    throw BadCall("give --message FILE, or --topic, --partition and --offset");
  if (arguments.commit && arguments.because.empty())
    throw BadCall("--commit: give the reason with --because TEXT; it is kept in the history");
  const Source source(options, arguments);
  return Trial(options, program.registry, source.message())
      .run(arguments.commit, arguments.because);
}

}  // namespace

void add_try(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "try", "What one message would do: handler, key, SQL, rows; then roll it back");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--message", arguments->file,
                   "A message in a file, as `partitions peek --json` prints it")
      ->type_name("FILE");
  command->add_option("--topic", arguments->topic, "Or one of Kafka's: its topic")
      ->type_name("NAME");
  command->add_option("--partition", arguments->partition, "Its partition")->type_name("P");
  command->add_option("--offset", arguments->offset, "Its offset")->not_negative()->type_name("N");
  command->add_flag("--commit", arguments->commit,
                    "Keep it: key and effects in one transaction, without the offset, so that it "
                    "is a duplicate when its turn comes");
  command->add_option("--because", arguments->because, "Why, with --commit; kept in the history")
      ->reason();
  commands.set_action(command, [&commands, config, arguments] {
    return try_it(commands.program(), config->load(), *arguments);
  });
}

}  // namespace pawl::cli
