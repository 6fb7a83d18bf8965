#include "engine/ahead.hpp"

#include <algorithm>
#include <utility>

#include "message/record_digest.hpp"

namespace pawl::engine {

void AheadOfOffset::acquired(std::shared_ptr<HeldPartition> held,
                             const std::vector<ledger::KnownAhead>& known) {
  // What no hand has begun under the older epoch would be in vain.
  if (held_)
    held_->winding_up = true;
  held_ = std::move(held);
  known_.clear();
  for (const auto& message : known)
    known_.emplace(message.record.offset, message);
}

AheadOfOffset::~AheadOfOffset() {
  clear();
  if (held_)
    held_->winding_up = true;
}

const ledger::KnownAhead* AheadOfOffset::known(std::int64_t offset) const {
  const auto found = known_.find(offset);
  return found == known_.end() ? nullptr : &found->second;
}

bool AheadOfOffset::is_same(const ledger::KnownAhead& known, const Inbox::Item& item) const {
  return known.record.digest ==
         message::record_digest(item.record.view(held_->name.topic, held_->topic_id));
}

void AheadOfOffset::stored(ledger::Position position) {
  if (held_)
    held_->last_stored = position.last();
  known_.erase(known_.begin(), known_.upper_bound(position.last()));
  suspects_.erase(suspects_.begin(), suspects_.upper_bound(position.last()));
}

bool AheadOfOffset::add(const Window::Entry& entry, ledger::Position stored) {
  if (entry->item.from != taken(stored))
    return false;
  tail_ = ledger::Position::behind(entry->offset());
  window_.add(entry);
  return true;
}

void AheadOfOffset::clear() {
  tail_ = {};
  window_.clear();
  contention_.passed();
  halt_.reset();
}

void AheadOfOffset::drop_unbegun() {
  window_.drop_unbegun();
  tail_ = window_.empty() ? ledger::Position{}
                          : ledger::Position::behind(window_[window_.size() - 1].offset());
}

/// The first one in the log's order is told.
void AheadOfOffset::want_halt(const AttemptHalt& halt) {
  if (!halt_ || *halt.halt.message_offset < *halt_->halt.message_offset)
    halt_ = halt;
}

void AheadOfOffset::wind_up() {
  winding_up_ = true;
  if (held_)
    held_->winding_up = true;
}

std::optional<AheadOfOffset::Clock::time_point> AheadOfOffset::due() const {
  if (winding_up_)
    return std::nullopt;
  auto due = contention_.due(window_.due(), window_.running());
  if (window_.prefix() > 0)
    due = std::min(due.value_or(next_pass_), next_pass_);
  return due;
}

}  // namespace pawl::engine
