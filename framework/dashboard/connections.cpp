#include "dashboard/connections.hpp"

#include <exception>

#include "console/connections.hpp"

namespace pawl::dashboard {

Connections::Lease::~Lease() {
  if (std::uncaught_exceptions() > exceptions_ || !session_ || !session_->alive())
    return;
  const std::scoped_lock lock(from_.mutex_);
  if (from_.idle_.size() < kMostIdle)
    from_.idle_.push_back(std::move(session_));
}

Connections::Lease Connections::get() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      return {*this, std::move(session), true};
    }
  }
  return {*this, cli::connect_database(options_), false};
}

void Connections::forget_kept() {
  const std::scoped_lock lock(mutex_);
  idle_.clear();
}

}  // namespace pawl::dashboard
