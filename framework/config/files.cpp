#include "config/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace pawl::config {
namespace {

/// "5:texts" at the beginning of the rest.
std::string take_text(std::string_view& rest) {
  std::size_t size = 0;
  const auto* const last = rest.data() + rest.size();
  const auto [end, error] = std::from_chars(rest.data(), last, size);
  if (error != std::errc{} || end == last || *end != ':')
    throw std::invalid_argument("no size of a text");
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  if (size > rest.size())
    throw std::invalid_argument("a text ends too early");
  std::string text(rest.substr(0, size));
  rest.remove_prefix(size);
  return text;
}

}  // namespace

Files::Content Files::read(const std::filesystem::path& path) {
  const auto known = contents_.find(path.string());
  if (known != contents_.end())
    return {known->second};
  std::error_code ignored;
  std::ifstream file;
  errno = 0;
  if (std::filesystem::is_directory(path, ignored)) {
    errno = EISDIR;
  } else {
    file.open(path, std::ios::binary);
  }
  if (!file.is_open())
    return {std::nullopt, std::strerror(errno)};
  std::ostringstream content;
  content << file.rdbuf();
  return {contents_.emplace(path.string(), content.str()).first->second};
}

std::string Files::packed() const {
  std::string packed;
  for (const auto& [path, content] : contents_)
    packed += fmt::format("{}:{}{}:{}", path.size(), path, content.size(), content);
  return packed;
}

Files Files::unpacked(std::string_view packed) {
  Files files;
  while (!packed.empty()) {
    auto path = take_text(packed);
    files.contents_.insert_or_assign(std::move(path), take_text(packed));
  }
  return files;
}

}  // namespace pawl::config
