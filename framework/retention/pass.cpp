#include "retention/pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "console/counted.hpp"
#include "engine/context.hpp"
#include "engine/lease_keeper.hpp"
#include "handlers/topic_entries.hpp"
#include "ledger/register_view.hpp"
#include "pawl/errors.hpp"
#include "retention/scope_retention.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLease{30000};
constexpr milliseconds kLeaseRenewal{5000};
/// What holds our few rows holds them for a moment.
constexpr milliseconds kLockTimeout{1000};
/// TID range scans, without which each small transaction would read the whole table.
constexpr int kOldestServer = 140000;

/// 4 MiB: read from memory in a few milliseconds.
constexpr std::int64_t kBlocksAtOnce = 512;
/// A claim of a key that is being removed waits for one transaction: aim at this time for each.
constexpr milliseconds kTransactionTime{20};
constexpr std::int64_t kFewestRows = 100;
constexpr std::int64_t kMostRows = 5000;
constexpr milliseconds kShortestRest{1};
constexpr milliseconds kLongestRest{2000};
constexpr std::int64_t kRecordsAtOnce = 500;

/// The table holds a tenth more than it must, and is read that many times a retention. More sweeps
/// would make vacuum touch every page of the index for fewer keys each.
constexpr int kSweepsPerRetention = 10;

/// A key goes only if it is old by the server's clock, by this process's, and by what has passed
/// since the first pass of this process: a clock may jump, and what is removed is gone. A clock
/// that is behind only delays.
ledger::Instant agreed_now(ledger::Instant server) {
  static const auto first = std::chrono::system_clock::now();
  static const auto begun = BootClock::now();
  const auto passed = first + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                  BootClock::now() - begun);
  const auto own = std::min(std::chrono::system_clock::now(), passed);
  return std::min(server, std::chrono::floor<ledger::Instant::duration>(own));
}

}  // namespace

postgres::SessionSettings pruning_settings(const Options& options) {
  auto settings = session_settings(options);
  settings.application_name = "pawl retention";
  settings.lock_timeout = std::min(settings.lock_timeout, kLockTimeout);
  settings.statement_timeout = milliseconds{30000};
  return settings;
}

std::string unusable_time_text(const std::string& partition) {
  return fmt::format(
      "{}: the timestamp of its last record is after the year 9999, so retention uses the time of "
      "processing. Timestamps must be milliseconds since 1970. Fix the producer, or set "
      "message.timestamp.type=LogAppendTime for the topic",
      partition);
}

std::string removed_text(const RetentionReport& report) {
  auto text = fmt::format(
      "{}{}, {}, {}", report.keys_estimated ? "about " : "",
      cli::counted(report.keys, "key", "keys"),
      cli::counted(report.letters, "resolved dead letter", "resolved dead letters"),
      cli::counted(report.skipped, "record of a skipped message", "records of skipped messages"));
  // Of most databases none.
  if (report.discarded > 0)
    text += ", " + cli::counted(report.discarded, "discarded message of the outbox",
                                "discarded messages of the outbox");
  if (report.losses > 0)
    text += ", " + cli::counted(report.losses, "record of a call that lost its lease",
                                "records of calls that lost their lease");
  return text;
}

RetentionPass::RetentionPass(const Options& options, ledger::ConsumerId consumer,
                             const kafka::Client& kafka, std::string holder, Pause pause,
                             std::optional<milliseconds> older_than)
    : options_(options),
      consumer_(consumer),
      kafka_(kafka),
      retention_(options.postgres.schema, consumer),
      records_{{options.retention.dead_letters, &RetentionReport::letters,
                ledger::OldRecords::letters(options.postgres.schema, consumer)},
               {options.retention.skipped, &RetentionReport::skipped,
                ledger::OldRecords::skipped(options.postgres.schema, consumer)},
               {options.retention.outbox, &RetentionReport::discarded,
                ledger::OldRecords::discarded(options.postgres.schema)},
               {options.retention.dead_letters, &RetentionReport::losses,
                ledger::OldRecords::losses(options.postgres.schema)}},
      holder_(std::move(holder)),
      pause_(std::move(pause)),
      older_than_(older_than),
      configured_(key_retentions(options)) {}

RetentionReport RetentionPass::run(postgres::Session& session, PassMode mode) {
  if (PQserverVersion(session.raw()) < kOldestServer) {
    throw FatalError(
        "retention requires PostgreSQL 14 or later, because it removes keys by TID range scans. "
        "Upgrade PostgreSQL, or set retention.interval = \"0s\"");
  }
  RetentionReport report;
  if (mode == PassMode::kDryRun) {
    prune(session, mode, report);
    return report;
  }
  lease_due_ = {};
  if (!keep_lease(session)) {
    report.busy = true;
    return report;
  }
  prune(session, mode, report);
  retention_.lease().release(session, holder_);
  return report;
}

/// Those that patterns mean are known once they were met.
void RetentionPass::find_topics(postgres::Session& session) {
  if (!handlers::topic_entries(options_).has_patterns())
    return;
  std::set<std::string> met;
  for (const auto& row : ledger::read_register(session, options_.postgres.schema, consumer_, ""))
    met.insert(row.partition.topic);
  configured_ = key_retentions(handlers::with_topics(options_, {met.begin(), met.end()}));
}

void RetentionPass::prune(postgres::Session& session, PassMode mode, RetentionReport& report) {
  const bool dry_run = mode == PassMode::kDryRun;
  find_topics(session);
  report.at = agreed_now(retention_.now(session));
  const auto chosen = cutoffs(session, mode, report);
  if (dry_run && !chosen.empty()) {
    const auto count = retention_.count_keys(session, chosen);
    report.keys = count.keys;
    report.keys_estimated = count.estimated;
  } else if (!chosen.empty()) {
    sweep(session, chosen, report);
  }
  if (!dry_run) {
    remove_records(session, report);
    return;
  }
  for (const auto& [kept, count, records] : records_) {
    if (kept != milliseconds{0})
      report.*count = records.count(session, report.at - kept);
  }
}

// A topic that this process will consume, and has not yet, may have duplicates waiting for a scope
// that it shares with others: by scope, the topic that nothing is known of.
std::map<std::string, std::string> RetentionPass::register_uses(postgres::Session& session) const {
  std::map<std::string, std::string> unknown;
  for (const auto& [place, retention] : configured_) {
    if (!retention_.register_use(session, place.first, place.second, retention))
      unknown.emplace(place.first, place.second);
  }
  return unknown;
}

/// What counts for this consumer's topics now.
KeyRetentions RetentionPass::in_force(const std::vector<ledger::PrunableScope>& scopes) const {
  auto retentions = configured_;
  if (!older_than_)
    return retentions;
  for (auto& [place, retention] : retentions)
    retention = *older_than_;
  for (const auto& scope : scopes) {
    for (const auto& user : scope.users) {
      if (user.own)
        retentions.insert_or_assign({scope.name, user.topic}, *older_than_);
    }
  }
  return retentions;
}

std::vector<ledger::KnownEnd> RetentionPass::ask_ends(postgres::Session& session,
                                                      RetentionReport& report) const {
  std::vector<ledger::KnownEnd> ends;
  try {
    const auto sources = retention_.sources(session);
    std::vector<std::string> topics;
    for (const auto& source : sources) {
      if (std::find(topics.begin(), topics.end(), source.topic) == topics.end())
        topics.push_back(source.topic);
    }
    const auto described = kafka_.describe(topics, kafka::kAnswerTimeout);
    std::vector<TopicPartition> partitions;
    for (const auto& [topic, description] : described) {
      for (std::int32_t p = 0; p < description.partitions; ++p)
        partitions.push_back({topic, p});
    }
    // Not the last stable offset: what an open transaction has written waits as well.
    const auto watermarks = kafka_.high_watermarks(partitions, kafka::kAnswerTimeout);
    for (const auto& source : sources) {
      const auto description = described.find(source.topic);
      if (description == described.end())
        continue;
      for (std::int32_t p = 0; p < description->second.partitions; ++p) {
        const auto end = watermarks.find({source.topic, p});
        // Without an answer the partition must not look as if it did not exist.
        ends.push_back(
            {source.id, p, end == watermarks.end() ? -1 : end->second, description->second.id});
      }
    }
  } catch (const kafka::KafkaError& error) {
    report.kafka_problem = error.what();
    ends.clear();
  }
  return ends;
}

std::map<ledger::ScopeId, ledger::Instant> RetentionPass::cutoffs(postgres::Session& session,
                                                                  PassMode mode,
                                                                  RetentionReport& report) const {
  // Uses come before the ends: a topic's partitions are asked for only if its use is known.
  std::map<std::string, std::string> unknown;
  if (mode != PassMode::kDryRun)
    unknown = register_uses(session);
  const auto otherwise = older_than_.value_or(options_.retention.keys);
  auto scopes = retention_.scopes(session);
  const auto own = in_force(scopes);
  const auto kept = [&](const ledger::PrunableScope& scope) {
    return retention_of(scope, own, otherwise);
  };
  const bool any =
      std::ranges::any_of(scopes, [&](const auto& scope) { return kept(scope).count() > 0; });
  const auto ends = any ? ask_ends(session, report) : std::vector<ledger::KnownEnd>{};
  std::map<ledger::ScopeId, ledger::Instant> chosen;
  for (auto& scope : scopes) {
    ScopeRetention one;
    one.kept = kept(scope);
    const auto ask = [&](bool store) {
      return retention_.cutoff(session, scope.id, one.kept, report.at, ends, store);
    };
    if (one.kept == milliseconds{0}) {
      // None may go.
    } else if (const auto missing = unknown.find(scope.name); missing != unknown.end()) {
      one.cutoff.held_by =
          fmt::format("topic {}, which this consumer has not processed yet", missing->second);
    } else {
      one.cutoff = ask(false);
    }
    one.swept =
        one.cutoff.keys && (mode != PassMode::kWhenDue || !scope.swept_to ||
                            *one.cutoff.keys - *scope.swept_to >= one.kept / kSweepsPerRetention);
    if (one.swept && mode != PassMode::kDryRun) {
      one.cutoff = ask(true);
      one.swept = one.cutoff.keys.has_value();
    }
    if (one.swept)
      chosen[scope.id] = *one.cutoff.keys;
    one.scope = std::move(scope);
    report.scopes.push_back(std::move(one));
  }
  return chosen;
}

bool RetentionPass::keep_lease(postgres::Session& session) {
  const auto now = Clock::now();
  if (now < lease_due_)
    return true;
  lease_due_ = now + kLeaseRenewal;
  return retention_.lease().take(session, holder_, kLease);
}

bool RetentionPass::rest(Clock::duration worked) {
  const auto load = options_.retention.load;
  const auto pause = std::chrono::duration_cast<milliseconds>(worked * (100 - load) / load);
  if (load == 100)
    return pause_(milliseconds{0});
  return pause_(std::clamp(pause, kShortestRest, kLongestRest));
}

void RetentionPass::sweep(postgres::Session& session,
                          const std::map<ledger::ScopeId, ledger::Instant>& cutoffs,
                          RetentionReport& report) {
  // What is inserted behind it meanwhile is too young.
  const auto blocks = retention_.blocks(session);
  std::int64_t rows = kFewestRows;
  std::int64_t next = 0;
  while (next < blocks) {
    if (!keep_lease(session)) {
      report.interrupted = true;
      return;
    }
    const auto begun = Clock::now();
    const auto swept =
        retention_.sweep(session, {next, std::min(next + kBlocksAtOnce, blocks)}, cutoffs, rows);
    const auto worked = Clock::now() - begun;
    report.keys += swept.keys;
    next = swept.next;
    if (worked > kTransactionTime) {
      rows = std::max(kFewestRows, rows / 2);
    } else if (swept.keys == rows) {
      rows = std::min(kMostRows, rows * 3 / 2);
    }
    if (!rest(worked)) {
      report.interrupted = true;
      return;
    }
  }
  retention_.finish_sweep(session, cutoffs, report.keys);
}

void RetentionPass::remove_records(postgres::Session& session, RetentionReport& report) {
  for (const auto& [kept, count, records] : records_) {
    std::int64_t removed = kRecordsAtOnce;
    while (kept != milliseconds{0} && removed == kRecordsAtOnce && !report.interrupted) {
      const auto begun = Clock::now();
      removed = records.remove(session, report.at - kept, kRecordsAtOnce);
      report.*count += removed;
      report.interrupted = !rest(Clock::now() - begun) || !keep_lease(session);
    }
  }
}

}  // namespace pawl::engine
