#pragma once

#include <string>

namespace pawl::postgres {

/// A statement that is prepared once a session, on first use, under its name. Lives as long as the
/// sessions that use it; names are unique within a process.
struct Statement {
  std::string name;
  std::string text;
};

}  // namespace pawl::postgres
