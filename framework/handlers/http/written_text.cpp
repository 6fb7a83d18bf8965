#include "handlers/http/written_text.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "pawl/lease.hpp"

namespace pawl::handlers {
namespace {

constexpr std::string_view kFile = "file:";

/// What is empty may be on its way of being written; a secret it is not.
std::string content_of(const std::filesystem::path& path) {
  std::error_code ignored;
  std::ifstream file;
  if (!std::filesystem::is_directory(path, ignored))
    file.open(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  if (text.ends_with('\n'))
    text.pop_back();
  if (text.ends_with('\r'))
    text.pop_back();
  if (!file.is_open() || file.bad() || text.empty()) {
    throw NotDone(fmt::format(
        "the file {} cannot be read, or is empty. Use the path of a file that this user may read",
        path.string()));
  }
  return text;
}

}  // namespace

std::size_t end_of_placeholder(std::string_view text, std::size_t begin) {
  for (auto at = begin; at < text.size(); ++at) {
    if (text[at] == '}')
      return at + 1;
    if (text[at] == '\\')
      ++at;
  }
  return std::string_view::npos;
}

WrittenText::WrittenText(const HttpText& text) : folder_(text.folder) {
  std::string_view rest = text.written;
  std::string literal;
  const auto finish = [&] {
    if (!literal.empty())
      pieces_.emplace_back(message::Template::parse(std::exchange(literal, {})));
  };
  // As the configuration reads ${...} everywhere.
  for (auto at = rest.find("${"); at != std::string_view::npos; at = rest.find("${")) {
    if (at > 0 && rest[at - 1] == '$') {
      // "${" that is meant: its brace is a template's.
      literal += rest.substr(0, at - 1);
      literal += "${";
      rest.remove_prefix(at + 2);
      continue;
    }
    const auto end = rest.find('}', at);
    if (end == std::string_view::npos)
      break;
    literal += rest.substr(0, at);
    finish();
    pieces_.emplace_back(Reference{std::string(rest.substr(at + 2, end - at - 2))});
    rest.remove_prefix(end + 1);
  }
  literal += rest;
  finish();
}

std::string WrittenText::resolve(const Reference& reference) const {
  if (reference.name.starts_with(kFile))
    return content_of(std::filesystem::path(folder_) / reference.name.substr(kFile.size()));
  const char* value = std::getenv(reference.name.c_str());
  if (value == nullptr)
    throw NotDone(fmt::format("the environment variable {} is not set", reference.name));
  return value;
}

std::string WrittenText::render(const Message& message, message::JsonView& json,
                                const Escape& escape) const {
  std::string out;
  for (const auto& piece : pieces_) {
    if (const auto* reference = std::get_if<Reference>(&piece)) {
      out += resolve(*reference);
    } else {
      std::get<message::Template>(piece).render_text(message, json, escape, out);
    }
  }
  return out;
}

std::string WrittenText::before_placeholders() const {
  std::string out;
  for (const auto& piece : pieces_) {
    if (const auto* reference = std::get_if<Reference>(&piece)) {
      out += resolve(*reference);
      continue;
    }
    const auto& text = std::get<message::Template>(piece);
    out += text.leading_text();
    if (!text.placeholders().empty())
      break;
  }
  return out;
}

bool WrittenText::has_placeholders() const {
  for (const auto& piece : pieces_) {
    const auto* text = std::get_if<message::Template>(&piece);
    if (text != nullptr && !text->placeholders().empty())
      return true;
  }
  return false;
}

const message::Placeholder* WrittenText::only_placeholder() const {
  if (pieces_.size() != 1)
    return nullptr;
  const auto* text = std::get_if<message::Template>(&pieces_.front());
  return text != nullptr && text->is_single_placeholder() ? text->placeholders().front() : nullptr;
}

}  // namespace pawl::handlers
