#pragma once

#include <string>

namespace pawl::postgres {

/// A statement that is prepared once a session, on first use, under its name. Lives as long as the
/// sessions that use it; names are unique within a process.
struct Statement {
  std::string name;
  std::string text;
  /// What it must be, for the error that says that it is not (42601); empty: that says enough.
  std::string rule = {};
};

}  // namespace pawl::postgres
