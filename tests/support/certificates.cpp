#include "certificates.hpp"

#include <fstream>

#include <pawl/testing/scripts.hpp>

namespace pawl::test {

Authority::Authority(const std::string& name) : folder_("authority") {
  testing::run_script("openssl",
                      {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                       "-nodes", "-days", "2", "-subj", "/CN=" + name, "-keyout",
                       (folder_.path() / "ca.key").string(), "-out", file()});
}

Authority::Certificate Authority::sign(const std::string& name, const std::string& names,
                                       int days) const {
  const auto base = (folder_.path() / name).string();
  std::ofstream(base + ".ext") << "subjectAltName=" << names << "\n";
  testing::run_script("openssl",
                      {"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                       "-subj", "/CN=" + name, "-keyout", base + ".key", "-out", base + ".csr"});
  testing::run_script("openssl",
                      {"x509", "-req", "-in", base + ".csr", "-days", std::to_string(days), "-CA",
                       file(), "-CAkey", (folder_.path() / "ca.key").string(), "-CAcreateserial",
                       "-extfile", base + ".ext", "-out", base + ".pem"});
  return {base + ".pem", base + ".key"};
}

}  // namespace pawl::test
