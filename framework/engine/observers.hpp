#pragma once

#include <memory>
#include <vector>

#include "pawl/message.hpp"
#include "pawl/observer.hpp"

namespace pawl::engine {

/// A step of this message.
[[nodiscard]] inline Event event_of(Step step, const Message& message) {
  Event event{step};
  event.topic = message.topic();
  event.partition = message.partition();
  event.offset = message.offset();
  return event;
}

/// Something that an operator should know. `detail` and `sqlstate` must outlive the event.
[[nodiscard]] inline Event warning_event(Warning warning, std::string_view detail,
                                         std::string_view sqlstate = {}) {
  Event event{Step::kWarning};
  event.warning = warning;
  event.detail = detail;
  event.sqlstate = sqlstate;
  return event;
}

/// All observers of a consumer. Immutable; called from every thread.
class Observers {
 public:
  explicit Observers(std::vector<std::shared_ptr<Observer>> observers);

  void emit(const Event& event) const noexcept {
    for (const auto& observer : observers_)
      observer->on_event(event);
  }
  [[nodiscard]] bool every_step() const { return every_step_; }
  [[nodiscard]] bool times() const { return times_; }

 private:
  std::vector<std::shared_ptr<Observer>> observers_;
  bool every_step_ = false;
  bool times_ = false;
};

}  // namespace pawl::engine
