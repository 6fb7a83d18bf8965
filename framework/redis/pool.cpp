#include "redis/pool.hpp"

#include <utility>

namespace pawl::redis {

Pool::Borrowed Pool::borrow() {
  while (auto idle = take_idle()) {
    if (!idle->stale())
      return {*this, std::move(idle)};
  }
  return {*this, connector_.connect()};
}

std::size_t Pool::idle() const {
  const std::scoped_lock lock(mutex_);
  return idle_.size();
}

std::unique_ptr<Connection> Pool::take_idle() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty())
    return nullptr;
  auto last = std::move(idle_.back());
  idle_.pop_back();
  return last;
}

void Pool::give_back(std::unique_ptr<Connection> connection) noexcept {
  std::vector<std::unique_ptr<Connection>> dropped;
  const std::scoped_lock lock(mutex_);
  if (connection->alive()) {
    idle_.push_back(std::move(connection));
  } else {
    // Whatever broke it (a failover, a restart) has most likely met the others too.
    dropped.swap(idle_);
  }
}

}  // namespace pawl::redis
