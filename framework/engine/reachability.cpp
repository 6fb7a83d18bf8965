#include "engine/reachability.hpp"

#include <utility>

namespace pawl::engine {

void Reachability::answered() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(away_, false))
    tell(back_, "");
}

void Reachability::failed(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(away_, true))
    tell(lost_, why);
}

void Reachability::tell(Step step, const std::string& detail) const {
  Event event{step};
  event.detail = detail;
  observers_.emit(event);
}

}  // namespace pawl::engine
