#include "engine/monitor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "config/redact.hpp"
#include "ledger/blocking_sessions.hpp"
#include "ledger/instant.hpp"
#include "ledger/stalled_sessions.hpp"
#include "message/partition_name.hpp"
#include "pawl/consumer.hpp"
#include "text/bounded.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{250};
constexpr milliseconds kLogEndInterval{2000};
/// Until the assignment of the beginning is found to leave out nothing. Later the looks are as far
/// apart as librdkafka's at the topics, which is to find new partitions by itself first.
constexpr milliseconds kCoverageLook{1000};
/// A call that waits for longer may be blocked by a stopped process.
constexpr milliseconds kStalledLook{1000};
/// How often sessions that block others are looked for again.
constexpr milliseconds kBlockersLook{1000};
/// A partition that has waited for a lock for so many times postgres.lock_timeout is reported.
constexpr int kLockWaits = 10;
/// Partitions named in one text.
constexpr std::size_t kMostNames = 10;
/// Beyond the handler's timeout, for statements of ours and a slow answer.
constexpr milliseconds kCallGrace{10000};

/// "orders[0], orders[1] and 40 more"
std::string names_of(const std::vector<TopicPartition>& partitions) {
  std::vector<std::string> names;
  for (const auto& one : partitions) {
    if (names.size() < kMostNames)
      names.push_back(message::name_of(one));
  }
  auto text = fmt::format("{}", fmt::join(names, ", "));
  if (partitions.size() > names.size())
    text += fmt::format(" and {} more", partitions.size() - names.size());
  return text;
}

}  // namespace

Monitor::Monitor(Context& context, const std::vector<std::unique_ptr<Worker>>& workers,
                 Hands& hands, Pulse& pulse, const std::atomic<bool>& assigned_once)
    : context_(context),
      workers_(workers),
      hands_(hands),
      pulse_(pulse),
      assigned_once_(assigned_once),
      covered_(!may_be_left_out(context.options.kafka)),
      thread_([this] { run(); }) {}

Monitor::~Monitor() {
  stopping_ = true;
  // Wakes it.
  context_.requests.doubt_topics();
  thread_.join();
}

void Monitor::run() {
  const Pulse::Beating beating(pulse_);
  Clock::time_point next_topics{};
  Clock::time_point next_ends{};
  Clock::time_point next_coverage{};
  Clock::time_point next_blockers{};
  while (true) {
    const auto rests = Clock::now();
    const bool in_doubt = context_.requests.wait_for_doubt(kTick);
    if (stopping_)
      return;
    pulse_.beat();
    const auto now = Clock::now();
    calls_.rested(kTick, rests, now);
    try {
      if (in_doubt || now >= next_topics) {
        next_topics = now + context_.options.kafka.topic_check_interval;
        check_topics();
        pulse_.beat();
      }
      if (may_be_left_out(context_.options.kafka) && assigned_once_ && now >= next_coverage) {
        look_at_coverage();
        next_coverage =
            now + (covered_once_ ? context_.options.kafka.topic_check_interval : kCoverageLook);
        pulse_.beat();
      }
      if (now >= next_ends) {
        next_ends = now + kLogEndInterval;
        // Without a partition, only the topics show that Kafka responds again.
        if (context_.kafka_reachable.is_away() && context_.board.all().empty())
          check_topics();
        else
          ask_log_ends();
      }
    } catch (const kafka::KafkaError& error) {
      // The next round asks again.
      context_.kafka_reachable.failed(error.what());
    }
    pulse_.beat();
    check_calls();
    if (now >= next_blockers) {
      next_blockers = now + kBlockersLook;
      look_at_blockers();
      pulse_.beat();
    }
    tell_conditions();
  }
}

/// What messages of this process wait for now.
std::vector<Condition> Monitor::conditions() const {
  std::vector<Condition> found;
  for (auto& away : context_.frame.remote_services->away()) {
    auto& condition = found.emplace_back();
    condition.kind = Condition::Kind::kRemoteServiceUnreachable;
    condition.subject = std::move(away.remote);
    condition.since = away.since;
    condition.cause = texts::bounded(away.why, texts::kLongestCause);
    for (const auto& [partition, messages] : away.waiting)
      condition.messages += waiting_in(partition, messages);
  }
  for (auto& blocked : context_.lock_waits.blocked(
           kLockWaits * context_.options.postgres.lock_timeout,
           [this](const auto& partition) { return context_.board.is_at_work(partition); })) {
    auto& condition = found.emplace_back();
    condition.kind = Condition::Kind::kPartitionBlocked;
    condition.subject = message::name_of(blocked.partition);
    condition.topic = blocked.partition.topic;
    condition.partition = blocked.partition.partition;
    condition.since = blocked.since;
    condition.messages = waiting_in(blocked.partition, blocked.messages);
    condition.cause = texts::bounded(blocked.cause, texts::kLongestCause);
    condition.lasting = blocked.lasting;
    condition.blocking_pid = blocked.blocking_pid;
  }
  if (auto kafka = kafka_condition(
          context_.kafka_reachable.outage(), context_.options.kafka.bootstrap_servers,
          std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now())))
    found.push_back(*std::move(kafka));
  return found;
}

/// How many messages of the partition wait if `messages` of them wait themselves: in log order all
/// later ones wait as well.
std::int64_t Monitor::waiting_in(const TopicPartition& partition, std::int64_t messages) const {
  if (context_.router.plan_of(partition.topic).order == handlers::TopicPlan::Order::kKey)
    return messages;
  return std::max(messages, context_.board.lag(partition));
}

void Monitor::tell_conditions() {
  using Kind = Condition::Kind;
  auto now = conditions();
  auto lasting = now;
  // Reachability reports Kafka.
  std::erase_if(lasting, [](const Condition& condition) {
    return !condition.lasting || condition.kind == Kind::kKafkaUnreachable;
  });
  for (const auto& [condition, ended, partitions] : conditions_.look(lasting, Clock::now())) {
    const bool blocked = condition.kind == Kind::kPartitionBlocked;
    Event event;
    event.topic = condition.topic;
    event.partition = condition.partition;
    if (blocked) {
      event.step = ended ? Step::kPartitionUnblocked : Step::kPartitionBlocked;
    } else {
      event.step = ended ? Step::kRemoteServiceReachable : Step::kRemoteServiceUnreachable;
      event.endpoint = condition.subject;
    }
    auto detail =
        ended ? std::string() : fmt::format("{}. Retrying; no attempt is counted", condition.cause);
    if (!ended && condition.blocking_pid != 0) {
      detail += fmt::format(". To terminate the session: `{}`. {}",
                            config::psql_text(context_.options.postgres.url,
                                              ledger::termination_sql(condition.blocking_pid)),
                            ledger::kTerminationRoles);
    }
    const auto names = names_of(partitions);
    const auto since = ledger::to_string(condition.since);
    std::vector<EventField> fields;
    if (!ended) {
      fields.push_back({"since", std::string_view(since)});
      fields.push_back({"messages", condition.messages});
    }
    if (!ended && condition.blocking_pid != 0) {
      fields.push_back({"blocking_pid", std::int64_t{condition.blocking_pid}});
      fields.push_back({"partitions", std::string_view(names)});
    }
    event.detail = detail;
    event.fields = fields;
    context_.observers.emit(event);
  }
  context_.board.note_conditions(std::move(now));
}

/// Compares with the topics under which the partitions were acquired: a first look of our own may
/// come too late.
void Monitor::check_topics() {
  const auto all = context_.board.all();
  std::vector<TopicLook> looks;
  looks.reserve(all.size());
  for (const auto& status : all)
    looks.push_back(status->before_look());
  context_.directory.refresh();
  context_.kafka_reachable.answered();
  for (const auto& topic : context_.directory.followed().value_or(std::vector<std::string>{}))
    tell_refusal(topic);
  tell_ambiguous();
  std::vector<TopicPartition> recreated;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& topic = all[i]->partition.topic;
    if (refused_.contains(topic))
      continue;
    const auto found = context_.directory.find(topic, milliseconds(60000));
    if (looks[i].topic_id.empty() || !found || found->id.empty())
      continue;
    if (found->id == looks[i].topic_id) {
      all[i]->named(looks[i]);
    } else {
      recreated.push_back(all[i]->partition);
    }
  }
  if (recreated.empty())
    return;
  // Also what is halted: by a cause that passes it is tried again by itself. What stands still
  // stays.
  for (const auto& worker : workers_)
    worker->recheck(recreated);
}

/// Said when Kafka begins to refuse the topic, and when that ends.
void Monitor::tell_refusal(const std::string& topic) {
  const auto refusal = context_.directory.refusal(topic);
  if (refusal.has_value() == refused_.contains(topic))
    return;
  Event event{refusal ? Step::kTopicAccessDenied : Step::kTopicAccessRestored};
  event.topic = topic;
  const auto detail = refusal ? topic_refused_text(topic, *refusal) : std::string();
  event.detail = detail;
  context_.observers.emit(event);
  if (refusal) {
    refused_.insert(topic);
  } else {
    refused_.erase(topic);
  }
}

/// Said once of each topic, until only one pattern means it, or it is gone.
void Monitor::tell_ambiguous() {
  const auto found = context_.directory.ambiguous();
  std::erase_if(ambiguous_, [&](const std::string& topic) { return !found.contains(topic); });
  for (const auto& [topic, patterns] : found) {
    if (!ambiguous_.insert(topic).second)
      continue;
    Event event{Step::kTopicAccessDenied};
    event.topic = topic;
    const auto detail = message::ambiguous_topic_text(topic, patterns);
    event.detail = detail;
    context_.observers.emit(event);
  }
}

void Monitor::ask_log_ends() {
  std::vector<TopicPartition> partitions;
  const auto all = context_.board.all();
  for (const auto& status : all)
    partitions.push_back(status->partition);
  const auto ranges = context_.kafka.log_ranges(partitions, kafka::kAnswerTimeout);
  // Asked about nothing, or without a leader for any of it, nobody has answered.
  if (!ranges.empty())
    context_.kafka_reachable.answered();
  for (const auto& status : all) {
    const auto found = ranges.find(status->partition);
    if (found == ranges.end())
      continue;
    const auto before = status->log_end.exchange(found->second.end);
    status->log_end_told();
    ++status->log_end_answers;
    if (before == found->second.end)
      continue;
    Event event{Step::kLogEndChanged};
    event.topic = status->partition.topic;
    event.partition = status->partition.partition;
    event.offset = found->second.end;
    context_.observers.emit(event);
  }
}

void Monitor::look_at_coverage() {
  const auto found = context_.kafka.group_assignment(kafka::kAnswerTimeout);
  context_.kafka_reachable.answered();
  if (!found) {
    // Nothing can be known, and nothing is to wait for it.
    covered_once_ = true;
    covered_ = true;
    return;
  }
  std::set<TopicPartition> wanted;
  for (const auto& topic : context_.directory.followed().value_or(std::vector<std::string>{})) {
    if (context_.directory.refusal(topic))
      continue;
    const auto known = context_.directory.find(topic, milliseconds(60000));
    for (std::int32_t p = 0; known && p < known->partitions; ++p)
      wanted.insert({topic, p});
  }
  const auto missing =
      coverage_.look(wanted, found->settled ? std::optional(found->partitions) : std::nullopt);
  covered_once_ = covered_once_ || coverage_.settled();
  covered_ = coverage_.settled();
  if (missing.empty())
    return;
  warn(Warning::kUnassignedPartition,
       fmt::format("Kafka assigned {} to no process, because a restarted static member "
                   "(kafka.group_instance_id) gets its earlier assignment. Rejoining the group",
                   names_of(missing)),
       missing.front());
  context_.requests.rejoin();
}

void Monitor::warn(Warning warning, const std::string& text,
                   const TopicPartition& partition) const {
  auto event = warning_event(warning, text);
  event.topic = partition.topic;
  event.partition = partition.partition;
  context_.observers.emit(event);
}

void Monitor::check_calls() {
  for (const auto& worker : workers_)
    check_call(worker.get(), worker->current_call(), [&] { worker->interrupt(); });
  for (const auto& hand : hands_.all())
    check_call(hand.get(), hand->current_call(), [&] { hand->interrupt(); });
}

void Monitor::check_call(const void* whose, const WorkerCall& call,
                         const std::function<void()>& interrupt) {
  if (!call.active)
    return;
  const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - call.since);
  const auto patience = std::min(kStalledLook, context_.options.postgres.lock_timeout / 2);
  if (waited > patience && call.own) {
    const auto& postgres = context_.options.postgres;
    // For each call, and each may find a server that does not answer.
    pulse_.beat(Clock::now() + postgres.connect_timeout + postgres.lock_timeout + kCallGrace);
    end_stalled_owner(call);
    ask_who_blocks(call);
    pulse_.beat();
  }
  const auto limit = call.limit + context_.options.postgres.lock_timeout + kCallGrace;
  switch (calls_.look(whose, call.since, limit, Clock::now())) {
    case CallWatch::Verdict::kWait:
      return;
    case CallWatch::Verdict::kGiveUp:
      warn(Warning::kWorkerStuck,
           fmt::format("PostgreSQL has not responded for {} s, or a handler has not returned. "
                       "Replacing the connection",
                       waited.count() / 1000),
           call.partition);
      return interrupt();
    case CallWatch::Verdict::kGivenUp:
      return interrupt();
    case CallWatch::Verdict::kEndProcess:
      warn(Warning::kWorkerStuck,
           fmt::format(
               "a handler has not returned for {} s and cannot be interrupted. The process exits, "
               "and another one processes the message again",
               waited.count() / 1000),
           call.partition);
      std::_Exit(static_cast<int>(RunResult::kHung));
  }
}

/// Asks which sessions block the call, while its statement waits: afterwards that is unknown.
void Monitor::ask_who_blocks(const WorkerCall& call) {
  if (!session_ || !session_->alive())
    return;
  try {
    auto sessions = ledger::blocking_sessions(*session_, call.own->pid);
    if (!sessions.empty())
      context_.lock_waits.blocked_by(call.partition, std::move(sessions));
  } catch (const postgres::Error&) {
    // The partition is reported without the session that blocks it.
    session_.reset();
  }
}

/// A lock that is released ends the pause before the next attempt.
void Monitor::look_at_blockers() {
  if (!session_ || !session_->alive())
    return;
  try {
    for (const auto& [partition, sessions] : context_.lock_waits.blockers()) {
      if (ledger::still_block(*session_, sessions))
        continue;
      context_.lock_waits.released(partition);
      for (const auto& worker : workers_)
        worker->lock_released(partition);
      hands_.lock_released(partition);
    }
  } catch (const postgres::Error&) {
    session_.reset();
  }
}

/// Whose open transactions may hold what the call waits for.
std::optional<PreviousOwner> Monitor::suspect(const WorkerCall& call) {
  // While an acquire waits for the row, the register still names the owner that locks it; once
  // the row is ours, only we remember whom we took it from.
  if (auto holder = context_.offsets.other_holder(*session_, call.partition, context_.owner))
    return PreviousOwner{std::move(holder->name), std::move(holder->session)};
  return call.previous_owner;
}

void Monitor::end_stalled_owner(const WorkerCall& call) {
  const auto bound = context_.options.postgres.stalled_owner_after;
  try {
    if (!session_ || !session_->alive()) {
      auto settings = session_settings(context_.options);
      settings.unwanted = &stopping_;
      session_ = std::make_unique<postgres::Session>(settings);
    }
    auto sessions = context_.previous_owners.abandoned();
    const auto owner = suspect(call);
    if (owner && owner->session)
      sessions.push_back(*owner->session);
    for (const auto& session : sessions) {
      if (ledger::end_stalled_session(*session_, session, call.own->pid, bound)) {
        warn(
            Warning::kStalledSession,
            fmt::format("terminated PostgreSQL session {} of an earlier owner of the partition, or "
                        "of this process. It was idle in a transaction and held locks",
                        session.pid),
            call.partition);
      }
    }
    if (owner && ledger::end_stalled_hand(*session_, owner->name, call.own->pid, bound)) {
      warn(Warning::kStalledSession,
           "terminated a PostgreSQL session of an earlier owner of the partition. It was idle in a "
           "transaction and held locks",
           call.partition);
    }
  } catch (const postgres::Error& error) {
    // idle_in_transaction_session_timeout ends it later.
    if (error.failure() != postgres::FailureClass::kConnection) {
      warn(Warning::kStalledSession,
           fmt::format("cannot terminate the session that may hold the partition's locks: {}",
                       error.what()),
           call.partition);
    }
    session_.reset();
  }
}

}  // namespace pawl::engine
