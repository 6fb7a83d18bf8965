#include "ops/alerts_limit.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace pawl::ops {
namespace {

/// Kinds times partitions and handlers of one process; beyond it new ones are only counted.
constexpr std::size_t kMostPlaces = 10000;
/// A person who is paged ten times about one cause needs no eleventh.
constexpr std::size_t kMostAtOnce = 10;

/// Of an outage.
struct Words {
  std::string_view away;  ///< the kind of its alert
  std::string_view back;  ///< the kind of the alert of its end
  std::string_view end;   ///< the text of that
};

Words words_of(AlertLimit::Server server) {
  switch (server) {
    case AlertLimit::Server::kDatabase:
      return {alert_kind::kDatabaseUnreachable, alert_kind::kDatabaseReachable,
              "PostgreSQL can be used again"};
    case AlertLimit::Server::kKafka:
      return {alert_kind::kKafkaUnreachable, alert_kind::kKafkaReachable, "Kafka responds again"};
    case AlertLimit::Server::kRedis:
      return {alert_kind::kRedisUnreachable, alert_kind::kRedisReachable,
              "leases can be acquired from Redis again"};
    case AlertLimit::Server::kRemoteService:
      break;
  }
  return {alert_kind::kRemoteServiceUnreachable, alert_kind::kRemoteServiceReachable,
          "the endpoint responds, or no message waits for it"};
}

std::int64_t seconds(AlertLimit::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

AlertLimit::Place AlertLimit::place_of(const Alert& alert) {
  // A handler's dead letters are one matter, whatever partitions they come from. Each partition
  // that halts is resumed by itself.
  if (!alert.handler.empty() && alert.kind != alert_kind::kHalt)
    return {alert.kind, alert.handler, -1};
  if (!alert.endpoint.empty())
    return {alert.kind, alert.endpoint, -1};
  return {alert.kind, alert.topic, alert.partition};
}

void AlertLimit::add(Alert alert, Clock::time_point now) {
  const auto place = place_of(alert);
  auto found = entries_.find(place);
  if (found == entries_.end()) {
    if (entries_.size() >= kMostPlaces)
      forget_old(now);
    if (entries_.size() >= kMostPlaces) {
      ++overflow_[alert.kind];
      return;
    }
    found = entries_.emplace(place, Entry{}).first;
  }
  auto& entry = found->second;
  if (entry.waiting) {
    ++entry.suppressed;
    return;
  }
  entry.waiting = std::move(alert);
  entry.order = ++order_;
}

void AlertLimit::add_halt(Alert alert, Clock::time_point now) {
  auto& standing = halts_[{alert.topic, alert.partition}];
  if (standing == alert.msg)
    return;
  standing = alert.msg;
  add(std::move(alert), now);
}

void AlertLimit::runs(const TopicPartition& partition) {
  halts_.erase(partition);
  // A halt that was held back, and is over.
  const auto found = entries_.find({alert_kind::kHalt, partition.topic, partition.partition});
  if (found != entries_.end() && std::exchange(found->second.waiting, std::nullopt))
    ++found->second.suppressed;
}

void AlertLimit::add_end(Alert alert, std::string_view began, Clock::time_point now) {
  auto place = place_of(alert);
  std::get<std::string_view>(place) = began;
  if (const auto found = entries_.find(place); found != entries_.end()) {
    auto& beginning = found->second;
    const bool open = std::exchange(beginning.open, false);
    if (std::exchange(beginning.waiting, std::nullopt)) {
      // It was held back, and is over.
      ++beginning.suppressed;
      if (!open)
        return;
    }
  }
  // Who was told of the beginning must hear of the end.
  entries_.erase(place_of(alert));
  add(std::move(alert), now);
}

void AlertLimit::add_blocked(Alert alert, Clock::time_point now) {
  if (blocked_.insert({alert.topic, alert.partition}).second)
    add(std::move(alert), now);
}

void AlertLimit::add_unblocked(Alert alert, Clock::time_point now) {
  if (blocked_.erase({alert.topic, alert.partition}) > 0)
    add_end(std::move(alert), alert_kind::kPartitionBlocked, now);
}

void AlertLimit::lost(Server server, std::string why, Clock::time_point now, std::string remote) {
  auto& outage = outages_[{server, std::move(remote)}];
  outage.why = std::move(why);
  if (!outage.since)
    outage.since = now;
}

void AlertLimit::back(Server server, std::int64_t now_ms, Clock::time_point now,
                      std::string remote) {
  const auto ended = outages_.extract({server, remote});
  const auto outage = ended.empty() ? Outage{} : ended.mapped();
  if (!outage.since || !outage.told)
    return;
  Alert alert;
  alert.endpoint = std::move(remote);
  const auto words = words_of(server);
  alert.kind = words.back;
  alert.happened_ms = now_ms;
  alert.seconds = seconds(now - *outage.since);
  alert.msg = words.end;
  add_end(std::move(alert), words.away, now);
}

void AlertLimit::notice_outages(std::int64_t now_ms, Clock::time_point now) {
  for (auto& [place, outage] : outages_) {
    if (!outage.since || outage.told || now - *outage.since < unreachable_after_)
      continue;
    outage.told = true;
    Alert alert;
    alert.endpoint = place.second;
    alert.kind = words_of(place.first).away;
    alert.happened_ms = now_ms;
    alert.seconds = seconds(now - *outage.since);
    alert.msg = outage.why;
    add(std::move(alert), now);
  }
}

std::optional<Alert> AlertLimit::take(std::int64_t now_ms, Clock::time_point now) {
  notice_outages(now_ms, now);
  Entry* first = nullptr;
  for (auto& [place, entry] : entries_) {
    if (entry.waiting && due(entry) <= now && (first == nullptr || entry.order < first->order))
      first = &entry;
  }
  if (first == nullptr)
    return std::nullopt;
  const auto kind = first->waiting->kind;
  std::vector<Entry*> others;
  for (auto& [place, entry] : entries_) {
    if (&entry != first && entry.waiting && entry.waiting->kind == kind && due(entry) <= now)
      others.push_back(&entry);
  }
  auto alert = mark_sent(*first, now);
  alert.suppressed += std::exchange(overflow_[kind], 0);
  if (others.size() >= kMostAtOnce) {
    for (auto* other : others)
      alert.suppressed += 1 + mark_sent(*other, now).suppressed;
  }
  return alert;
}

Alert AlertLimit::mark_sent(Entry& entry, Clock::time_point now) {
  auto alert = *std::exchange(entry.waiting, std::nullopt);
  alert.suppressed = std::exchange(entry.suppressed, 0);
  entry.sent = now;
  entry.open = true;
  return alert;
}

AlertLimit::Clock::time_point AlertLimit::due(const Entry& entry) const {
  return entry.sent ? *entry.sent + min_interval_ : Clock::time_point::min();
}

std::uint64_t AlertLimit::waiting() const {
  std::uint64_t alerts = 0;
  for (const auto& [place, entry] : entries_)
    alerts += entry.waiting ? 1 + entry.suppressed : 0;
  for (const auto& [kind, more] : overflow_)
    alerts += more;
  return alerts;
}

AlertLimit::Clock::time_point AlertLimit::next_due() const {
  auto next = Clock::time_point::max();
  for (const auto& [place, entry] : entries_) {
    if (entry.waiting)
      next = std::min(next, due(entry));
  }
  for (const auto& [place, outage] : outages_) {
    if (outage.since && !outage.told)
      next = std::min(next, *outage.since + unreachable_after_);
  }
  return next;
}

void AlertLimit::forget_old(Clock::time_point now) {
  std::erase_if(entries_, [&](const auto& item) {
    return !item.second.waiting && item.second.suppressed == 0 && due(item.second) <= now;
  });
}

}  // namespace pawl::ops
