#include "engine/reachability.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace pawl::engine {

void Reachability::answered() {
  const std::scoped_lock lock(mutex_);
  silent_ = false;
  update("");
}

void Reachability::failed(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  silent_ = true;
  update(why);
}

void Reachability::lost(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(silent_, true))
    update(why);
}

bool Reachability::is_away() const {
  const std::scoped_lock lock(mutex_);
  return away_;
}

std::optional<Reachability::Outage> Reachability::outage() const {
  const std::scoped_lock lock(mutex_);
  return away_ ? std::optional(Outage{since_, why_}) : std::nullopt;
}

std::string Reachability::problem() const {
  const std::scoped_lock lock(mutex_);
  return why_;
}

void Reachability::refused(const TopicPartition& partition, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  refused_.insert(partition);
  update(why);
}

void Reachability::accepted(const TopicPartition& partition) {
  const std::scoped_lock lock(mutex_);
  refused_.erase(partition);
  update("");
}

void Reachability::update(const std::string& why) {
  const bool away = silent_ || !refused_.empty();
  // A success of one user is no new reason for what is refused to another.
  const bool other_reason = away && !why.empty() && why != why_;
  const bool was_away = std::exchange(away_, away);
  if (was_away == away && !other_reason)
    return;
  if (!was_away)
    since_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  why_ = why;
  tell(away ? lost_ : back_, why);
}

void Reachability::tell(Step step, const std::string& detail) const {
  Event event{step};
  event.detail = detail;
  observers_.emit(event);
}

std::string unready_without(const Reachability& database) {
  const auto problem = database.problem();
  return problem.empty() ? "" : fmt::format("PostgreSQL cannot be used: {}", problem);
}

}  // namespace pawl::engine
