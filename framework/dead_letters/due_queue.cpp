#include "dead_letters/due_queue.hpp"

#include <algorithm>

namespace pawl::engine {
namespace {

/// Letters without a record key have no order.
bool have_one_key(const ledger::DueLetter& one, const ledger::DueLetter& other) {
  return one.record_key_hash && one.record_key_hash == other.record_key_hash &&
         one.partition.topic == other.partition.topic;
}

}  // namespace

std::size_t DueQueue::offer(const std::vector<ledger::DueLetter>& due) {
  std::size_t added = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& letter : due) {
      const bool waits =
          std::ranges::find(waiting_, letter.id, &ledger::DueLetter::id) != waiting_.end();
      if (waits || in_hand_.contains(letter.id) || ending_)
        continue;
      waiting_.push_back(letter);
      ++added;
    }
  }
  changed_.notify_all();
  return added;
}

std::size_t DueQueue::size() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size() + in_hand_.size();
}

bool DueQueue::wait_until_taken(Milliseconds most) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most,
                           [this] { return ending_ || find(std::nullopt) == waiting_.end(); });
}

DueQueue::Waiting::const_iterator DueQueue::find(std::optional<std::int64_t> kept) const {
  return std::ranges::find_if(waiting_, [&](const ledger::DueLetter& letter) {
    if (kept ? letter.id != *kept : kept_.contains(letter.id))
      return false;
    return std::ranges::none_of(
        in_hand_, [&](const auto& other) { return have_one_key(letter, other.second); });
  });
}

std::optional<ledger::DueLetter> DueQueue::take(Milliseconds most,
                                                std::optional<std::int64_t> kept) {
  std::unique_lock lock(mutex_);
  auto found = waiting_.cend();
  changed_.wait_for(lock, most, [&] {
    found = find(kept);
    return ending_ || found != waiting_.cend();
  });
  if (ending_ || found == waiting_.cend())
    return std::nullopt;
  auto letter = *found;
  waiting_.erase(found);
  kept_.erase(letter.id);
  in_hand_.emplace(letter.id, letter);
  lock.unlock();
  changed_.notify_all();
  return letter;
}

void DueQueue::done(const ledger::DueLetter& letter, bool keeps) {
  {
    const std::scoped_lock lock(mutex_);
    in_hand_.erase(letter.id);
    if (keeps)
      kept_.insert(letter.id);
  }
  changed_.notify_all();
}

void DueQueue::release(std::int64_t kept) {
  {
    const std::scoped_lock lock(mutex_);
    kept_.erase(kept);
  }
  changed_.notify_all();
}

void DueQueue::end() {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.clear();
    ending_ = true;
  }
  changed_.notify_all();
}

bool DueQueue::ending() const {
  const std::scoped_lock lock(mutex_);
  return ending_;
}

void DueQueue::rest(Milliseconds time) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return ending_; });
}

}  // namespace pawl::engine
