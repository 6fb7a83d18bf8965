// `try`: processes one message in a transaction that is rolled back, and shows its effects.
#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/message_file.hpp"
#include "config/invocation.hpp"
#include "config/shell_word.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/decoded.hpp"
#include "console/find_message.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
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
#include "ledger/consumers.hpp"
#include "ledger/history_view.hpp"
#include "ledger/key_view.hpp"
#include "ledger/offset_register.hpp"
#include "ledger/rows.hpp"
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
  bool force = false;
  bool json = false;
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
    client_ = make_client_of_one_message(options);
    found_.emplace(find_message(*client_, options.invocation,
                                {{topic_, *arguments.partition}, *arguments.offset}));
  }

  [[nodiscard]] Message message() const {
    return file_ ? file_->view() : found_->record.view(topic_, found_->topic_id);
  }

 private:
  std::string topic_;
  std::optional<MessageFile> file_;
  std::unique_ptr<kafka::Client> client_;  // outlives the record
  std::optional<FoundMessage> found_;
};

/// What commands print for people, while it exists.
class CapturedText {
 public:
  CapturedText() : screen_(std::cout.rdbuf(text_.rdbuf())) {}
  ~CapturedText() { std::cout.rdbuf(screen_); }
  CapturedText(const CapturedText&) = delete;
  CapturedText& operator=(const CapturedText&) = delete;
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* screen_;
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
  /// `report`: of --json.
  Trial(const Options& options, const Registry& registry, const Message& message, Json& report)
      : report_(report),
        options_(options),
        router_(options, registry),
        message_(message),
        json_(reader_, message),
        session_(connect_database(options)) {
    for (const auto& on_connect : registry.connect_functions())
      on_connect(session_->connection());
    // dblink_exec commits on its server even where the trial is rolled back.
    handlers::require_atomicity(*session_, router_, options.handlers);
    report_["message"] = {{"topic", std::string(message.topic())},
                          {"partition", message.partition()},
                          {"offset", message.offset()}};
    for (const auto* absent : {"handler", "idempotency_key", "scope", "result", "processed_before"})
      report_[absent] = nullptr;
    report_["statements"] = Json::array();
    report_["rows"] = Json::array();
    report_["response"] = nullptr;
    report_["error"] = nullptr;
  }

  int run(const Arguments& arguments) {
    const bool commit = arguments.commit;
    say("message", place_of(message_.topic(), message_.partition(), message_.offset()));
    bool has_key = false;
    try {
      binding_ = router_.route(message_, json_);
      if (binding_ == nullptr) {
        report_["result"] = "no-handler";
        say("handler", "-");
        return result(
            "unmatched: no handler of this topic has a `when` that holds; failures.unmatched "
            "decides what `run` does",
            kFailed);
      }
      report_["handler"] = binding_->label;
      say("handler", binding_->label);
      has_key = find_key();
    } catch (...) {  // code's may be anything
      return fail(true);
    }
    if (!has_key)
      report_["result"] = "no-key";
    if (has_key) {
      if (const auto before = find_before()) {
        if (!commit && !arguments.force) {
          report_["result"] = before->conflicts ? "conflict" : "duplicate";
          return result(before->text + ". --force shows its effects all the same",
                        before->conflicts ? kFailed : kDone);
        }
        say("before", before->text);
      }
    }
    if (binding_->leased != nullptr) {
      if (has_key)
        report_["result"] = "external-call";
      say("effect", "an external call under a lease, which `try` does not make");
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
      return result(
          "not committed: without an idempotency key, `run` would apply the message again; try it "
          "without --commit",
          kFailed);
    }
    return commit ? commit_it(arguments.because) : roll_back();
  }

 private:
  /// A line with its label. `text` may be from elsewhere.
  static void say(std::string_view label, std::string_view text) {
    std::cout << fmt::format("{:<10}{}\n", label, printable_lines(text));
  }

  static int result(std::string_view text, int code) {
    say("RESULT", text);
    return code;
  }

  static std::string place_of(std::string_view topic, std::int32_t partition, std::int64_t offset) {
    return name_of({std::string(topic), partition}, offset);
  }

  bool find_key() {
    const auto key = engine::derive_key(*binding_, message_, json_);
    if (const auto* none = std::get_if<engine::NoKey>(&key)) {
      say("key",
          fmt::format("none: {}; idempotency.missing_key decides what `run` does", none->why));
      return false;
    }
    key_ = std::get<engine::Key>(key).text;
    std::string buffer;
    scope_ = engine::scope_name(options_.kafka, binding_->scope, message_.topic(), buffer);
    report_["idempotency_key"] = key_;
    report_["scope"] = scope_;
    say("key", fmt::format("{} in scope {}", printable(key_), printable(scope_)));
    return true;
  }

  /// A message that was applied under the same key.
  struct Before {
    bool conflicts = false;  ///< with another payload
    std::string text;
  };

  std::optional<Before> find_before() {
    const auto found =
        ledger::find_key(*session_, options_.postgres.schema, {{scope_, ""}}, key_, 0);
    if (found.empty())
      return std::nullopt;
    const auto& before = found.front();
    const bool conflicts =
        binding_->conflicts(message::payload_hash(message_), before.payload_hash);
    report_["processed_before"] = {{"topic", before.topic},
                                   {"partition", before.partition},
                                   {"offset", before.offset},
                                   {"conflict", conflicts}};
    const auto place = place_of(before.topic, before.partition, before.offset);
    if (conflicts) {
      return Before{true, fmt::format("conflict: its key was applied with another payload at {}; "
                                      "idempotency.conflict decides what `run` does",
                                      place)};
    }
    return Before{false,
                  fmt::format("duplicate: already applied at {}; `{} run` would not apply it "
                              "again",
                              place, options_.invocation.program)};
  }

  /// Of an HTTP handler: the request that it would send. Of headers only the names.
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
    say("request", fmt::format("{} {}", request.method, request.url));
    for (const auto& header : request.headers)
      say("header", header.substr(0, header.find(':')));
    if (!http.key_header.empty() && !key_.empty())
      say("header", fmt::format("{}: {}", http.key_header, message::remote_key(scope_, key_)));
    if (request.has_body)
      say("body", shown(request.body));
  }

  /// With what is bound to them, as far as that is known without running them.
  void say_statements() {
    const auto written = binding_->handler->statements();
    if (written.empty()) {
      say("effect", "C++ code");
      return;
    }
    handlers::StatementPlan plan;
    const auto* planner = binding_->handler->planner();
    const bool bound = planner != nullptr && planner->plan(plan, message_, json_);
    for (std::size_t i = 0; i < written.size(); ++i) {
      auto& statement = report_["statements"].emplace_back(
          Json{{"sql", written[i].sql}, {"parameters", nullptr}});
      say("sql", written[i].sql);
      if (!bound || i >= plan.steps().size())
        continue;
      auto& parameters = plan.steps()[i].request.parameters;
      const auto view = parameters.view();
      auto& bound_values = statement["parameters"] = Json::array();
      for (int p = 0; p < parameters.count(); ++p) {
        const auto* value = view.values[p];
        const auto length = static_cast<std::size_t>(view.lengths[p]);
        bound_values.push_back(
            value == nullptr ? Json(nullptr) : readable(std::string_view(value, length), kShown));
        say("", fmt::format("${} = {}", p + 1,
                            value == nullptr ? "NULL" : shown(std::string_view(value, length))));
      }
    }
  }

  int fail(bool alive) {
    const auto failure = engine::explain(std::current_exception(), alive);
    report_["result"] = "failed";
    report_["error"] = {{"text", failure.text},
                        {"sqlstate", or_null(failure.sqlstate)},
                        {"statement", or_null(failure.statement)},
                        {"detail", or_null(failure.detail)}};
    (void)result(
        fmt::format("failed: {}{}", engine::located_text(failure), engine::sqlstate_text(failure)),
        kFailed);
    if (!failure.detail.empty())
      say("", texts::bounded(failure.detail, texts::kLongestCause));
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
      report_["response"] = readable(response);
      if (response)
        say("response", shown(*response));
    } catch (...) {  // code's may be anything
      return fail(session_->alive());
    }
    report_["result"] = "rolled-back";
    return result("success; rolled back, so nothing is stored", kDone);
  }

  void say_rows(postgres::Frame& frame) {
    const postgres::Statement touched{"", kTouched};
    postgres::Request request;
    request.to(touched);
    const auto found = frame.exec(request);
    const auto* rows = found.get();
    if (PQntuples(rows) == 0)
      say("rows", "none");
    for (int row = 0; row < PQntuples(rows); ++row) {
      report_["rows"].push_back({{"table", std::string(PQgetvalue(rows, row, 0))},
                                 {"inserted", ledger::integer(rows, row, 1)},
                                 {"updated", ledger::integer(rows, row, 2)},
                                 {"deleted", ledger::integer(rows, row, 3)}});
      say("rows", fmt::format("{}: {} inserted, {} updated, {} deleted", PQgetvalue(rows, row, 0),
                              PQgetvalue(rows, row, 1), PQgetvalue(rows, row, 2),
                              PQgetvalue(rows, row, 3)));
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
          fmt::format("--commit: this consumer has never processed topic {}; start with "
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
      report_["result"] = outcome == ledger::Outcome::kDuplicate ? "duplicate" : "committed";
      return result(outcome == ledger::Outcome::kDuplicate
                        ? "duplicate: nothing was done"
                        : "committed: key and effects are stored, and the stored offset is "
                          "unchanged",
                    kDone);
    } catch (const KeyIsParked&) {
      report_["result"] = "record-key-parked";
      return result(
          fmt::format("not committed: a dead letter of its record key is unresolved, and later "
                      "messages of the key wait for it. Replay or discard it first. List it:\n  {} "
                      "--topic {}",
                      command_text(options_.invocation, "dlq parked"), shell_word(topic)),
          kFailed);
    } catch (...) {  // code's may be anything
      return fail(session_->alive());
    }
  }

  Json& report_;
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
    throw BadCall("--message FILE, or --topic, --partition, and --offset, are required");
  if (arguments.commit && arguments.because.empty())
    throw BadCall("--commit requires --because TEXT");
  const Source source(options, arguments);
  Json report;
  const auto trial = [&] {
    return Trial(options, program.registry, source.message(), report).run(arguments);
  };
  if (!arguments.json)
    return trial();
  const auto code = [&] {
    const CapturedText captured;
    const auto code_of_trial = trial();
    report["text"] = captured.text();
    return code_of_trial;
  }();
  std::cout << indented(report) << '\n';
  return code;
}

}  // namespace

void add_try(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "try", "Process one message, show handler, key, SQL, and rows, and roll back");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--message", arguments->file,
                   "File with the message, as printed by partitions peek --json")
      ->type_name("FILE");
  command->add_option("-t,--topic", arguments->topic, "Topic of the message in Kafka")
      ->type_name("TOPIC");
  command->add_option("-p,--partition", arguments->partition, "Partition of the message")
      ->not_negative()
      ->type_name("P");
  command->add_option("--offset", arguments->offset, "Offset of the message")
      ->not_negative()
      ->type_name("N");
  command->add_flag("--commit", arguments->commit,
                    "Commit key and effects; pawl run then treats the message as a duplicate");
  command->add_flag("--force", arguments->force,
                    "Show the effects of a message that was applied before");
  command->add_option("--because", arguments->because, "Reason of --commit, stored in the history")
      ->reason();
  command->add_json_flag(arguments->json);
  commands.set_action(command, [&commands, config, arguments] {
    return try_it(commands.program(), config->load(), *arguments);
  });
}

}  // namespace pawl::cli
