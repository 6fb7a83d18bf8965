#include "engine/hands.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace pawl::engine {
namespace {

bool is_leased(const Errand& errand) {
  const auto* binding = errand.entry->binding;
  return binding != nullptr && binding->leased != nullptr;
}

Unstored::Now now_of(const Errand& errand, const LeasedCall& call) {
  return {.time = Unstored::Clock::now(),
          .given_up = call.is_given_up(),
          .winding_up = errand.partition->winding_up};
}

}  // namespace

Hands::~Hands() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    waiting_.clear();
    leased_.clear();
  }
  stop();
  interrupt();
  for (auto& thread : threads_)
    thread.join();
}

std::size_t Hands::most_threads() const {
  const auto& options = context_.options;
  return std::size_t{options.consumer.concurrency} + options.calls.max_in_flight;
}

void Hands::give(Errand errand) {
  const std::scoped_lock lock(mutex_);
  if (ending_)
    return;
  if (errand.alone) {
    waiting_.push_front(std::move(errand));
  } else {
    (is_leased(errand) ? leased_ : waiting_).push_back(std::move(errand));
  }
  if (waiting_.size() + leased_.size() > idle_ && threads_.size() < most_threads()) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      // The system has no thread to spare: those that are there do it.
      if (threads_.empty())
        throw;
    }
  }
  wake();
}

void Hands::take_back(const HeldPartition* partition) {
  std::vector<Errand> taken;
  {
    const std::scoped_lock lock(mutex_);
    for (auto* errands : {&waiting_, &leased_}) {
      const auto first = std::stable_partition(
          errands->begin(), errands->end(),
          [&](const Errand& errand) { return errand.partition.get() != partition; });
      std::move(first, errands->end(), std::back_inserter(taken));
      errands->erase(first, errands->end());
    }
  }
  turns_.notify_all();
  for (const auto& errand : taken)
    errand.landed(errand, {.how = Landing::How::kLater, .not_run = true});
}

bool Hands::may_call(const Errand& errand) const {
  const auto& leased = *errand.entry->binding->leased;
  if (leased.max_calls() == 0)
    return true;
  const auto found = calls_to_.find(leased.remote());
  return found == calls_to_.end() || found->second < leased.max_calls();
}

/// A lease is taken only where its call can begin at once.
Hands::Errands::const_iterator Hands::next_call() const {
  if (calls_ >= context_.options.calls.max_in_flight)
    return leased_.end();
  return std::ranges::find_if(leased_, [this](const Errand& errand) { return may_call(errand); });
}

bool Hands::may_begin() const {
  const bool has_work = !waiting_.empty() || next_call() != leased_.end();
  // Who has called goes first: its lease may end, and its order key waits.
  return has_work &&
         free_.size() + (context_.options.consumer.concurrency - hands_.size()) > ending_calls_;
}

bool Hands::has_hand() const {
  return !free_.empty() || hands_.size() < context_.options.consumer.concurrency;
}

/// After every change, under mutex_: one of each kind, which wakes the next.
void Hands::wake() {
  if (ending_calls_ > 0 && has_hand())
    hand_free_.notify_one();
  if (may_begin())
    work_.notify_one();
}

void Hands::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [this] { return ending_ || may_begin(); });
    --idle_;
    if (ending_)
      return;
    begin_one(lock);
  }
}

/// Under mutex_; there is one to spare.
std::shared_ptr<Hand> Hands::take_hand() {
  if (!free_.empty()) {
    auto hand = std::move(free_.back());
    free_.pop_back();
    return hand;
  }
  auto hand = std::make_shared<Hand>(context_);
  if (stopped_)
    hand->stop();
  hands_.push_back(hand);
  return hand;
}

/// Under mutex_.
void Hands::put_down(std::shared_ptr<Hand> hand) {
  free_.push_back(std::move(hand));
  wake();
}

void Hands::begin_one(std::unique_lock<std::mutex>& lock) {
  auto hand = take_hand();
  lock.unlock();
  // Who has no session leaves the work to those that have one, and a suspect does not wait here.
  const auto next_try = hand->make_ready();
  lock.lock();
  if (next_try && !suspect_waits()) {
    stopping_.wait_until(lock, *next_try, [this] { return ending_; });
    return put_down(std::move(hand));
  }
  const auto call = next_call();
  const bool calls = call != leased_.end();
  if (waiting_.empty() && !calls)
    return put_down(std::move(hand));
  // Both take their turns: neither kind holds up the other.
  if (calls && !suspect_waits() && (waiting_.empty() || call->given < waiting_.front().given)) {
    // Erases nothing, and gives a place that may be moved from.
    const auto place = leased_.erase(call, call);
    const auto errand = std::move(*place);
    leased_.erase(place);
    auto& calls_to = calls_to_[errand.entry->binding->leased->remote()];
    ++calls_;
    ++calls_to;
    wake();
    lock.unlock();
    run_leased(errand, std::move(hand));
    lock.lock();
    --calls_;
    --calls_to;
    wake();
    return;
  }
  {
    const auto errand = std::move(waiting_.front());
    waiting_.pop_front();
    wake();
    lock.unlock();
    const auto landing = hand->run(errand);
    lock.lock();
    put_down(std::move(hand));
    lock.unlock();
    errand.landed(errand, landing);
  }
  lock.lock();
}

void Hands::run_leased(const Errand& errand, std::shared_ptr<Hand> hand) {
  RunGate::Pass pass;
  const auto begun = hand->begin_call(errand, pass);
  {
    const std::scoped_lock lock(mutex_);
    put_down(std::move(hand));
  }
  if (const auto* landing = std::get_if<Landing>(&begun))
    return errand.landed(errand, *landing);
  auto& call = *std::get<std::unique_ptr<LeasedCall>>(begun);
  Hand::make_call(context_, errand, call);
  // To be stored it may wait for a hand, and for PostgreSQL.
  pass = {};
  errand.landed(errand, end_call(errand, call));
}

Landing Hands::end_call(const Errand& errand, LeasedCall& call) {
  const auto& options = context_.options;
  std::unique_lock lock(mutex_);
  const auto ending =
      unstored_
          .try_emplace(errand.partition.get(),
                       EndingCalls{0, Unstored(options.failures, options.postgres.retry_max)})
          .first;
  ++ending->second.count;
  auto landing = end_call(lock, errand, call, ending->second.unstored);
  if (--ending->second.count == 0)
    unstored_.erase(ending);
  return landing;
}

/// Under mutex_, but for the attempts.
Landing Hands::end_call(std::unique_lock<std::mutex>& lock, const Errand& errand, LeasedCall& call,
                        Unstored& unstored) {
  Unstored::Call waiting;
  while (true) {
    switch (wait_for_turn(lock, errand, call, unstored, waiting)) {
      case Unstored::Turn::kStore:
        break;
      case Unstored::Turn::kWait:
        return {.how = Landing::How::kLater};
      case Unstored::Turn::kLetGo:
        return {.how = Landing::How::kLater, .waited_for_lock = true};
    }
    // Before the hand: who has none keeps none from others.
    lock.unlock();
    auto pass = Hand::ask_to_store(context_, errand);
    lock.lock();
    if (!pass) {
      if (stopped_)
        return {.how = Landing::How::kLater};
      continue;
    }
    ++ending_calls_;
    hand_free_.wait(lock, [this] { return ending_ || has_hand(); });
    --ending_calls_;
    if (!has_hand())
      return {.how = Landing::How::kLater};
    const auto begun = Clock::now();
    // Others of its partition may have met a lock meanwhile.
    if (unstored.turn_of(waiting, now_of(errand, call)) != Unstored::Turn::kStore) {
      wake();
      continue;
    }
    unstored.begun();
    auto hand = take_hand();
    wake();
    lock.unlock();
    auto landing = hand->end_call(errand, call, std::move(pass));
    lock.lock();
    put_down(std::move(hand));
    unstored.ended(waiting, landing, begun, Clock::now(), errand.entry->lock_waits);
    turns_.notify_all();
    if (!landing.unstored || stopped_)
      return landing;
  }
}

/// Until it may be stored, or is to be let go of. kWait: nothing more is stored. Under mutex_.
Unstored::Turn Hands::wait_for_turn(std::unique_lock<std::mutex>& lock, const Errand& errand,
                                    const LeasedCall& call, Unstored& unstored,
                                    Unstored::Call& waiting) {
  while (true) {
    const auto now = now_of(errand, call);
    const auto turn = unstored.turn_of(waiting, now);
    if (turn != Unstored::Turn::kWait || stopped_)
      return turn;
    turns_.wait_until(lock, unstored.look_again(waiting, now));
  }
}

void Hands::lock_released(const TopicPartition& partition) {
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [held, ending] : unstored_) {
      if (held->name == partition)
        ending.unstored.lock_released(Clock::now());
    }
  }
  turns_.notify_all();
}

void Hands::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    for (const auto& hand : hands_)
      hand->stop();
  }
  work_.notify_all();
  hand_free_.notify_all();
  stopping_.notify_all();
  turns_.notify_all();
}

void Hands::interrupt() {
  const std::scoped_lock lock(mutex_);
  for (const auto& hand : hands_)
    hand->interrupt();
}

std::vector<std::shared_ptr<Hand>> Hands::all() const {
  const std::scoped_lock lock(mutex_);
  return hands_;
}

}  // namespace pawl::engine
