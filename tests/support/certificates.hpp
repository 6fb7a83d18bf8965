#pragma once

#include <filesystem>
#include <string>

#include <pawl/testing/temp_dir.hpp>

namespace pawl::test {

/// An authority of a test's own, and certificates that it has signed.
class Authority {
 public:
  explicit Authority(const std::string& name);

  struct Certificate {
    std::string file;
    std::string key;
  };
  /// `name`: the CN. `names`: as subjectAltName has them, "DNS:localhost,IP:127.0.0.1". With `days`
  /// below zero the certificate has ended so long ago.
  [[nodiscard]] Certificate sign(const std::string& name, const std::string& names,
                                 int days = 2) const;

  [[nodiscard]] std::string file() const { return (folder_.path() / "ca.pem").string(); }

 private:
  testing::TempDir folder_;
};

}  // namespace pawl::test
