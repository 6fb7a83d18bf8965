#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <pawl/testing/child_process.hpp>
#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>

namespace pawl::testing {

namespace {

std::string read_trimmed(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{stream}, {}};
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

}  // namespace

std::string run_script(const std::filesystem::path& script,
                       const std::vector<std::string>& arguments) {
  const TempDir folder{"script"};
  ChildOptions options;
  options.output = folder.path() / "output";
  options.errors = folder.path() / "errors";
  ChildProcess child{script, arguments, options};
  const ExitStatus status = child.wait(std::chrono::minutes{2});
  if (!status.success()) {
    throw std::runtime_error{fmt::format("{} {} exited with {}:\n{}", script.string(),
                                         fmt::join(arguments, " "), to_string(status),
                                         read_trimmed(options.errors))};
  }
  return read_trimmed(options.output);
}

}  // namespace pawl::testing
