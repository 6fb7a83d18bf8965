#include "engine/window.hpp"

#include <algorithm>

namespace pawl::engine {

std::uint32_t Window::slots(const InWindow& entry) {
  return entry.binding == nullptr ? 1 : entry.binding->concurrency;
}

void Window::add(const Entry& entry) {
  entries_.push_back(entry);
  if (entry->outcome) {
    count_prefix();
    return;
  }
  if (entry->suspect)
    suspects_.insert(entry->offset());
  if (slots(*entry) == 1)
    one_by_one_[entry->binding].insert(entry->offset());
  if (entry->order_key) {
    auto& queue = in_order_[*entry->order_key];
    queue.push_back(entry);
    if (queue.size() > 1)
      return;
  }
  make_ready(entry);
}

void Window::make_ready(const Entry& entry) {
  ready_[entry->binding].emplace(entry->offset(), entry);
}

bool Window::may_begin(const InWindow& entry) const {
  return suspects_.empty() || entry.offset() < *suspects_.begin() || entry.suspect ||
         !entry.runs_code();
}

Window::Entry Window::next(Clock::time_point now, std::int64_t below) {
  while (!later_.empty() && later_.begin()->first <= now) {
    const auto entry = later_.begin()->second;
    later_.erase(later_.begin());
    // One that waits keeps the only slot of its handler, so that none overtakes it.
    if (slots(*entry) == 1)
      --busy_[entry->binding];
    make_ready(entry);
  }
  Entry entry;
  for (auto& [binding, ready] : ready_) {
    const auto found =
        std::ranges::find_if(ready, [this](const auto& one) { return may_begin(*one.second); });
    if (found == ready.end())
      continue;
    const auto limit = slots(*found->second);
    // One that waits behind an order key is not overtaken by the others of its handler.
    if (busy_[binding] >= limit || (limit == 1 && found->first != *one_by_one_[binding].begin()))
      continue;
    if (entry == nullptr || found->first < entry->offset())
      entry = found->second;
  }
  if (entry == nullptr || entry->offset() >= below)
    return nullptr;
  ready_[entry->binding].erase(entry->offset());
  if (entry->order_key) {
    const auto before = last_finished_.find(*entry->order_key);
    entry->predecessor =
        before == last_finished_.end() ? std::nullopt : std::optional<std::int64_t>(before->second);
  }
  ++busy_[entry->binding];
  ++running_;
  entry->begun = true;
  return entry;
}

std::optional<Window::Clock::time_point> Window::due() const {
  if (later_.empty())
    return std::nullopt;
  return later_.begin()->first;
}

void Window::finished(const Entry& entry, ledger::Outcome outcome) {
  --running_;
  --busy_[entry->binding];
  suspects_.erase(entry->offset());
  if (slots(*entry) == 1)
    one_by_one_[entry->binding].erase(entry->offset());
  entry->outcome = outcome;
  if (entry->order_key) {
    last_finished_[*entry->order_key] = entry->offset();
    const auto queue = in_order_.find(*entry->order_key);
    queue->second.pop_front();
    if (queue->second.empty()) {
      in_order_.erase(queue);
    } else {
      make_ready(queue->second.front());
    }
  }
  count_prefix();
}

void Window::later(const Entry& entry, Clock::time_point when) {
  --running_;
  if (slots(*entry) > 1)
    --busy_[entry->binding];
  later_.emplace(when, entry);
}

void Window::lock_released(Clock::time_point now) {
  std::multimap<Clock::time_point, Entry> later;
  for (const auto& [when, entry] : later_)
    later.emplace(entry->lock_waits > 0 ? std::min(when, now) : when, entry);
  later_ = std::move(later);
}

void Window::halted(const Entry& entry) {
  --running_;
  --busy_[entry->binding];
}

void Window::count_prefix() {
  while (prefix_ < entries_.size() && entries_[prefix_]->outcome)
    ++prefix_;
}

void Window::pop(std::size_t count) {
  for (; count > 0; --count) {
    const auto& entry = *entries_.front();
    if (entry.order_key) {
      // The stored offset is there now.
      const auto last = last_finished_.find(*entry.order_key);
      if (last != last_finished_.end() && last->second == entry.offset())
        last_finished_.erase(last);
    }
    entries_.pop_front();
    --prefix_;
  }
}

bool Window::is_unbegun(const InWindow& entry) {
  return !entry.begun && !entry.outcome;
}

std::size_t Window::unbegun() const {
  const auto first = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [](const Entry& entry) { return !is_unbegun(*entry); });
  return static_cast<std::size_t>(first - entries_.rbegin());
}

void Window::drop_unbegun() {
  for (; !entries_.empty() && is_unbegun(*entries_.back()); entries_.pop_back()) {
    auto& entry = *entries_.back();
    entry.dropped = true;
    ready_[entry.binding].erase(entry.offset());
    one_by_one_[entry.binding].erase(entry.offset());
    suspects_.erase(entry.offset());
    if (!entry.order_key)
      continue;
    // It is the last one of its order key as well.
    const auto queue = in_order_.find(*entry.order_key);
    queue->second.pop_back();
    if (queue->second.empty())
      in_order_.erase(queue);
  }
}

void Window::clear() {
  for (const auto& entry : entries_)
    entry->dropped = true;
  entries_.clear();
  ready_.clear();
  busy_.clear();
  one_by_one_.clear();
  suspects_.clear();
  later_.clear();
  in_order_.clear();
  last_finished_.clear();
  running_ = 0;
  prefix_ = 0;
}

}  // namespace pawl::engine
