#include "engine/hands.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

namespace pawl::engine {

Hands::~Hands() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  stop();
  interrupt();
  for (auto& thread : threads_)
    thread.join();
}

void Hands::give(Errand errand) {
  {
    const std::scoped_lock lock(mutex_);
    if (ending_)
      return;
    waiting_.push_back(std::move(errand));
    if (waiting_.size() > idle_ && hands_.size() < context_.options.consumer.concurrency) {
      auto hand = std::make_shared<Hand>(context_);
      if (stopped_)
        hand->stop();
      try {
        threads_.emplace_back([this, hand] { run(*hand); });
        hands_.push_back(hand);
      } catch (const std::system_error&) {
        // The system has no thread to spare: those that are there do it.
        if (hands_.empty())
          throw;
      }
    }
  }
  changed_.notify_one();
}

void Hands::take_back(const HeldPartition* partition) {
  std::vector<Errand> taken;
  {
    const std::scoped_lock lock(mutex_);
    const auto first = std::stable_partition(
        waiting_.begin(), waiting_.end(),
        [&](const Errand& errand) { return errand.partition.get() != partition; });
    std::move(first, waiting_.end(), std::back_inserter(taken));
    waiting_.erase(first, waiting_.end());
  }
  for (const auto& errand : taken)
    errand.landed(errand, {.how = Landing::How::kLater});
}

void Hands::run(Hand& hand) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (ending_)
      return;
    lock.unlock();
    // Who has no session leaves the work to those that have one.
    const auto next_try = hand.make_ready();
    lock.lock();
    if (next_try) {
      changed_.wait_until(lock, *next_try, [this] { return ending_; });
      continue;
    }
    if (waiting_.empty())
      continue;
    {
      const auto errand = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      errand.landed(errand, hand.run(errand));
    }
    lock.lock();
  }
}

void Hands::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  for (const auto& hand : hands_)
    hand->stop();
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
