#pragma once

// Waits until a file exists.
//
//   #include <chrono>
//   #include <filesystem>
//   #include <pawl/testing/wait.hpp>
//
//   void wait_for_file(const std::filesystem::path& file) {
//     pawl::testing::wait_until([&] { return std::filesystem::exists(file); },
//                               std::chrono::seconds(30), file.string() + " to exist");
//   }

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

namespace pawl::testing {

/// A condition was not met before its deadline. what() names the condition and the deadline.
class Timeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns when the predicate returns true. It calls the predicate on the calling thread, every 2
/// to 100 ms: a predicate that takes longer is called less often.
///
/// `deadline`: the longest wait from now. The predicate is called at least once, and once more at
/// the deadline.
///
/// Throws Timeout ("waited 5000 ms for DESCRIPTION ...") if the predicate is still false then.
/// Exceptions of the predicate reach the caller.
void wait_until(const std::function<bool()>& predicate, std::chrono::milliseconds deadline,
                const std::string& description);

}  // namespace pawl::testing
