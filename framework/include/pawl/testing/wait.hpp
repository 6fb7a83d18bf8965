#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

namespace pawl::testing {

/// A condition did not come true in time. The text says which.
class Timeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns as soon as the predicate is true; asks every few milliseconds, from the calling thread.
/// Throws Timeout ("waited 5000 ms for DESCRIPTION ...") when it still is false at the deadline,
/// after one last try. What the predicate throws passes through.
///
/// This is the only place where pawl::testing polls: everything else waits by it or on an event.
void wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds deadline,
                const std::string& description);

}  // namespace pawl::testing
