#include "kafka/bounded_call.hpp"

#include <atomic>

namespace pawl::kafka {
namespace {

std::atomic<int> calls{0};

}  // namespace

std::shared_ptr<void> count_call() {
  ++calls;
  return {static_cast<void*>(nullptr), [](void*) { --calls; }};
}

int calls_in_progress() {
  return calls;
}

}  // namespace pawl::kafka
