#include "engine/observers.hpp"

namespace pawl::engine {

Observers::Observers(std::vector<std::shared_ptr<Observer>> observers)
    : observers_(std::move(observers)) {
  for (const auto& observer : observers_) {
    every_step_ = every_step_ || observer->watches_every_step();
    times_ = times_ || observer->watches_times();
  }
}

}  // namespace pawl::engine
