#include "engine/breaker.hpp"

namespace pawl::engine {

bool Breaker::allows(const std::string& handler, const std::string& way, std::uint32_t most) const {
  if (most == 0)
    return true;
  const std::scoped_lock lock(mutex_);
  const auto row = rows_.find(handler);
  return row == rows_.end() || row->second.way != way || row->second.length < most;
}

void Breaker::count(const std::string& handler, const std::string& way) {
  const std::scoped_lock lock(mutex_);
  auto& row = rows_[handler];
  if (row.way != way)
    row = {way, 0};
  ++row.length;
  counting_ = true;
}

void Breaker::applied(const std::string& handler) {
  if (!counting_.load(std::memory_order_relaxed))
    return;
  const std::scoped_lock lock(mutex_);
  rows_.erase(handler);
  counting_ = !rows_.empty();
}

}  // namespace pawl::engine
