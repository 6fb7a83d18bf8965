#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pawl::ops {

/// The names under which a process is asked over HTTP. Another one may have been pointed here by
/// another site that a browser shows, to read what the person's network reaches (DNS rebinding).
class HostNames {
 public:
  /// `machine`: this host's name. `more`: monitoring.hosts.
  HostNames(std::string machine, std::vector<std::string> more);

  /// `host`: the header Host. Why the request is not answered; nullopt: it is.
  [[nodiscard]] std::optional<std::string> refusal(const std::string& host) const;

 private:
  [[nodiscard]] bool knows(const std::string& name) const;

  const std::string machine_;
  const std::vector<std::string> more_;
};

/// This host's.
[[nodiscard]] std::string machine_name();

}  // namespace pawl::ops
