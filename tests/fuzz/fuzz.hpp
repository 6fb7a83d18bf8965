// What every fuzz target begins with. A target defines fuzz(); libFuzzer calls it with inputs that
// it derives from the corpus. docs/architecture/fuzzing.md explains how to run a target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// Must hold its properties for any input.
void fuzz(std::string_view input);

extern "C" [[gnu::used]] inline int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                           std::size_t size) {
  fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}

namespace pawl::fuzzing {

/// libFuzzer stores the input and reports the place when a target aborts.
inline void require(bool holds, std::string_view property, std::string_view details = {}) {
  if (holds)
    return;
  std::fprintf(stderr, "property broken: %.*s\n%.*s\n", static_cast<int>(property.size()),
               property.data(), static_cast<int>(details.size()), details.data());
  std::abort();
}

/// The text before the first line break, which it removes from `input`: a part of an input.
inline std::string_view take_line(std::string_view& input) {
  const auto end = input.find('\n');
  const auto line = input.substr(0, end);
  input = end == std::string_view::npos ? std::string_view{} : input.substr(end + 1);
  return line;
}

}  // namespace pawl::fuzzing
