#pragma once

#include <stdexcept>

namespace pawl::cli {

/// The command line asks for something that cannot be; nothing was changed. what() says what to ask
/// for instead.
class BadCall : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pawl::cli
