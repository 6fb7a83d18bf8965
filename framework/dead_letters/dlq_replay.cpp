// `dlq replay`: processes dead letters again with the current handlers.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/operator_change.hpp"
#include "console/printable.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/operator_replay.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::shared_ptr<LetterArguments> letters;
  std::int64_t limit = 0;  ///< 0: none
  double rate = 0;         ///< letters per second; 0: as fast as possible
  bool dry_run = false;
  bool force = false;
  bool json = false;
};

class Pace {
 public:
  explicit Pace(double rate) : rate_(rate) {}
  void wait() {
    if (rate_ <= 0)
      return;
    const auto now = std::chrono::steady_clock::now();
    next_ = std::max(next_, now);
    std::this_thread::sleep_until(next_);
    next_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(1 / rate_));
  }

 private:
  double rate_;
  std::chrono::steady_clock::time_point next_{};
};

class ReplayRun {
 public:
  ReplayRun(const Options& options, const Registry& registry, const Arguments& arguments)
      : arguments_(arguments),
        invocation_(options.invocation),
        session_(connect_database(options)),
        consumer_(require_consumer(*session_, options)),
        view_(options.postgres.schema, consumer_.id),
        replay_(options, registry, *session_, consumer_,
                [](const std::string& text) { std::cerr << text << '\n'; }),
        pace_(arguments.rate) {}

  int run() {
    replay_chosen();
    const auto& letters = *arguments_.letters;
    // A letter that --limit left for another time was not looked for.
    const bool unmatched =
        !full() && explain_unmatched(*session_, invocation_, view_, letters, matched_, "replayed");
    report();
    return exit_code(unmatched);
  }

 private:
  using Kind = engine::ReplayResult::Kind;

  void replay_chosen() {
    const auto filter = arguments_.letters->filter();
    // A parked message can be replayed only after the dead letter before it, so repeat while there
    // is progress.
    bool advanced = true;
    while (advanced && !full()) {
      advanced = false;
      waits_ = 0;
      view_.for_each(*session_, filter, true, [&](const ledger::DeadLetter& letter) {
        matched_.insert(letter.id);
        if (!failed_.contains(letter.id))
          advanced = one(letter) || advanced;
        return !full();
      });
      if (arguments_.dry_run || !arguments_.letters->all)
        break;
    }
  }

  [[nodiscard]] bool full() const { return arguments_.limit > 0 && tried_ >= arguments_.limit; }

  /// Whether it is resolved now.
  bool one(const ledger::DeadLetter& letter) {
    if (!arguments_.force) {
      if (const auto why = replay_.beyond_keys(letter)) {
        if (refused_.insert(letter.id).second)
          problem(letter, *why + ", then --force");
        return false;
      }
    }
    if (arguments_.dry_run) {
      ++tried_;
      if (arguments_.json)
        listed_.push_back(describe(letter));
      else
        std::cout << fmt::format("would replay {}: {}, {} ({})\n", letter.id, place_of(letter),
                                 letter.reason, letter.status);
      return false;
    }
    pace_.wait();
    const auto result = replay_.replay(letter);
    switch (result.kind) {
      case Kind::kApplied:
      case Kind::kDuplicate:
        ++tried_;
        ++counts_[result.kind];
        return true;
      case Kind::kResolved:
        return true;
      case Kind::kWaits:
        ++waits_;
        if (!arguments_.letters->all)
          problem(letter, result.why);
        return false;
      case Kind::kBreaks:
        throw FatalError(result.why);
      case Kind::kFailed:
      case Kind::kPending:
      case Kind::kUnreadable:
      case Kind::kNotRead:
        ++tried_;
        ++counts_[result.kind];
        failed_.insert(letter.id);
        problem(letter, result.why);
        return false;
    }
    return false;
  }

  /// On stderr as it occurs, and in the JSON.
  void problem(const ledger::DeadLetter& letter, const std::string& why) {
    std::cerr << fmt::format("{}: {}: {}\n", letter.id, place_of(letter), printable_lines(why));
    problems_.push_back({{"id", letter.id},
                         {"topic", letter.partition.topic},
                         {"partition", letter.partition.partition},
                         {"offset", letter.offset},
                         {"text", why}});
  }

  void report_json() {
    std::cout << indented({{"dry_run", arguments_.dry_run},
                           {"replayed", arguments_.dry_run ? tried_ : counts_[Kind::kApplied]},
                           {"duplicates", counts_[Kind::kDuplicate]},
                           {"failed", counts_[Kind::kFailed]},
                           {"lease_unavailable", counts_[Kind::kPending]},
                           {"unreadable", counts_[Kind::kUnreadable]},
                           {"fetch_failed", counts_[Kind::kNotRead]},
                           {"force_required", refused_.size()},
                           {"waiting", waits_},
                           {"dead_letters", std::move(listed_)},
                           {"problems", std::move(problems_)}})
              << '\n';
  }

  void report() {
    if (arguments_.json)
      return report_json();
    if (arguments_.dry_run) {
      std::cout << fmt::format("would replay {}\n", counted(tried_, "dead letter", "dead letters"));
      return;
    }
    std::cout << fmt::format("replayed {}", counts_[Kind::kApplied]);
    const auto add = [](std::int64_t count, const char* what) {
      if (count > 0)
        std::cout << fmt::format(", {} {}", count, what);
    };
    add(counts_[Kind::kDuplicate], "already processed");
    add(counts_[Kind::kFailed], "failed again");
    add(counts_[Kind::kPending], "without a lease");
    add(counts_[Kind::kUnreadable], "without readable bytes");
    add(counts_[Kind::kNotRead], "not read from Kafka");
    add(static_cast<std::int64_t>(refused_.size()), "need --force");
    add(waits_, "waiting for an earlier one of their record key");
    std::cout << '\n';
  }

  /// `unmatched`: an id was named that is no letter to replay.
  [[nodiscard]] int exit_code(bool unmatched) const {
    // With --all the first of the key has been told to have failed, or another command has it.
    const bool named_waits = waits_ > 0 && !arguments_.letters->all;
    if (failed_.empty() && refused_.empty() && !named_waits && !unmatched)
      return kDone;
    // Nothing was tried: nothing was changed.
    return tried_ == 0 && !named_waits ? kBadCall : kFailed;
  }

  const Arguments& arguments_;
  const InvocationOptions& invocation_;
  std::unique_ptr<postgres::Session> session_;
  ledger::KnownConsumer consumer_;
  ledger::DeadLetterView view_;
  OperatorReplay replay_;
  Pace pace_;
  Json listed_ = Json::array();  ///< of --dry-run
  Json problems_ = Json::array();
  std::int64_t tried_ = 0;
  std::int64_t waits_ = 0;
  std::map<Kind, std::int64_t> counts_;
  std::set<std::int64_t> matched_;
  std::set<std::int64_t> failed_;
  std::set<std::int64_t> refused_;
};

}  // namespace

void add_dlq_replay(Command& dlq, Commands& commands) {
  auto* command =
      dlq.add_subcommand("replay", "Process dead letters again with the current handlers");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  arguments->letters = add_letter_arguments(*command, true);
  command->add_option("--limit", arguments->limit, "Limit of dead letters")->at_most_entries();
  command->add_option("--rate", arguments->rate, "Limit of dead letters per second")
      ->positive()
      ->type_name("N");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Show what would be replayed without changing anything");
  command->add_flag("--force", arguments->force,
                    "Also replay dead letters that are older than the stored idempotency keys");
  command->add_json_flag(arguments->json);
  const auto& registry = commands.program().registry;
  commands.set_action(command, [config, arguments, &registry] {
    arguments->letters->require_choice();
    const auto options = config->load();
    return ReplayRun(options, registry, *arguments).run();
  });
}

}  // namespace pawl::cli
