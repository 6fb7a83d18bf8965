#include "handlers/http/shown_request.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handlers/http/request_template.hpp"
#include "text/secret.hpp"

namespace pawl::handlers {
namespace {

using Json = nlohmann::ordered_json;
using texts::kHidden;

struct Piece {
  enum class Kind { kLiteral, kReference, kPlaceholder };
  Kind kind;
  std::string_view text;
};

void split_literal(std::string_view text, std::vector<Piece>& pieces) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto rest = text.substr(at);
    const bool brace = rest.front() == '{' && !rest.starts_with("{{");
    const auto end = brace ? end_of_placeholder(rest, 0) : std::string_view::npos;
    if (end == std::string_view::npos) {
      at += rest.starts_with("{{") ? 2 : 1;
      continue;
    }
    if (at > 0)
      pieces.push_back({Piece::Kind::kLiteral, text.substr(0, at)});
    pieces.push_back({Piece::Kind::kPlaceholder, rest.substr(0, end)});
    text = rest.substr(end);
    at = 0;
  }
  if (!text.empty())
    pieces.push_back({Piece::Kind::kLiteral, text});
}

/// ${...} and the texts between them, as WrittenText reads them: "$${" is none.
std::vector<Piece> with_references(std::string_view written) {
  std::vector<Piece> pieces;
  std::size_t from = 0;
  for (auto at = written.find("${"); at != std::string_view::npos; at = written.find("${", at)) {
    const auto end = written.find('}', at);
    if (at > 0 && written[at - 1] == '$') {
      at += 2;
      continue;
    }
    if (end == std::string_view::npos)
      break;
    if (at > from)
      pieces.push_back({Piece::Kind::kLiteral, written.substr(from, at - from)});
    pieces.push_back({Piece::Kind::kReference, written.substr(at, end + 1 - at)});
    at = from = end + 1;
  }
  if (from < written.size())
    pieces.push_back({Piece::Kind::kLiteral, written.substr(from)});
  return pieces;
}

/// The same with the placeholders in the texts between; "{{" is a brace.
std::vector<Piece> pieces_of(std::string_view written) {
  std::vector<Piece> pieces;
  for (const auto& piece : with_references(written)) {
    if (piece.kind == Piece::Kind::kReference) {
      pieces.push_back(piece);
    } else {
      split_literal(piece.text, pieces);
    }
  }
  return pieces;
}

bool is_literal(const Piece& piece) {
  return piece.kind == Piece::Kind::kLiteral;
}

std::string without_literals(std::string_view written) {
  std::string shown;
  for (const auto& piece : pieces_of(written))
    shown += is_literal(piece) ? kHidden : piece.text;
  return shown;
}

/// Name=value&name=value, in which a value that is hidden is so without what is inserted in it.
class Pairs {
 public:
  using Hides = bool (*)(std::string_view name);

  Pairs(std::string& out, Hides hides) : out_(out), hides_(hides) {}

  void add(const Piece& piece) {
    if (!is_literal(piece)) {
      end_bare_name();
      out_ += piece.text;
      hidden_ = false;
      return;
    }
    for (const char c : piece.text)
      add(c);
  }
  void finish() { end_bare_name(); }

 private:
  void add(char c) {
    if (c == '&') {
      end_bare_name();
      in_value_ = false;
      out_ += c;
    } else if (!in_value_ && c == '=') {
      hides_value_ = hides_(name_);
      out_.append(std::exchange(name_, {})).append("=");
      in_value_ = true;
      hidden_ = false;
    } else if (!in_value_) {
      name_ += c;
    } else if (!hides_value_) {
      out_ += c;
    } else if (!std::exchange(hidden_, true)) {
      out_ += kHidden;
    }
  }

  /// Without a value the name may be what is secret.
  void end_bare_name() {
    if (!name_.empty())
      out_ += hides_(name_) ? kHidden : name_;
    name_.clear();
  }

  std::string& out_;
  Hides hides_;
  std::string name_;
  bool in_value_ = false;
  bool hides_value_ = false;
  bool hidden_ = false;  ///< of this value, since the last piece that stays
};

std::string shown_url(std::string_view written) {
  std::string shown;
  Pairs query(shown, [](std::string_view) { return true; });
  bool in_query = false;
  for (auto piece : pieces_of(written)) {
    if (!in_query) {
      const auto mark = is_literal(piece) ? piece.text.find('?') : std::string_view::npos;
      in_query = mark != std::string_view::npos;
      const auto path = in_query ? mark + 1 : piece.text.size();
      shown += piece.text.substr(0, path);
      piece.text.remove_prefix(path);
    }
    if (in_query)
      query.add(piece);
  }
  query.finish();
  return shown;
}

std::string shown_form(std::string_view written) {
  std::string shown;
  Pairs form(shown, texts::may_be_secret);
  for (const auto& piece : pieces_of(written))
    form.add(piece);
  form.finish();
  return shown;
}

void hide_secrets(Json& node, bool hidden) {
  if (node.is_structured()) {
    for (auto&& [name, member] : node.items())
      hide_secrets(member, hidden || (node.is_object() && texts::may_be_secret(name)));
  } else if (hidden && node.is_string()) {
    node = without_literals(node.get<std::string>());
  } else if (hidden && node.is_number()) {
    node = kHidden;
  }
}

std::string shown_json(const std::string& written) {
  auto json = Json::parse(written, nullptr, false);
  if (json.is_discarded())
    return written;
  const auto before = json;
  hide_secrets(json, false);
  return json == before ? written : json.dump();
}

bool describes_content(std::string_view header) {
  constexpr std::array<std::string_view, 4> kNames{"Accept", "Content-Encoding", "Content-Type",
                                                   "User-Agent"};
  return std::ranges::any_of(kNames, [&](auto name) { return same_name(name, header); });
}

/// "Bearer " of "Bearer ${file:PATH}" is no secret.
std::string shown_header(std::string_view written) {
  constexpr std::array<std::string_view, 3> kSchemes{"Basic ", "Bearer ", "Token "};
  const auto pieces = pieces_of(written);
  std::string shown;
  for (const auto& piece : pieces) {
    const bool scheme = &piece == &pieces.front() && pieces.size() > 1 &&
                        std::ranges::find(kSchemes, piece.text) != kSchemes.end();
    shown += is_literal(piece) && !scheme ? kHidden : piece.text;
  }
  return shown;
}

}  // namespace

HttpOptions without_secrets(HttpOptions options) {
  options.url.written = shown_url(options.url.written);
  for (auto& [name, text] : options.headers) {
    if (!describes_content(name))
      text.written = shown_header(text.written);
  }
  options.json.written = shown_json(options.json.written);
  auto& body = options.body.written;
  body = is_form(options) ? shown_form(body) : shown_json(body);
  return options;
}

HttpOptions without_references(HttpOptions options) {
  const auto hide = [](HttpText& text) {
    std::string shown;
    for (const auto& piece : with_references(text.written))
      shown += piece.kind == Piece::Kind::kReference ? kHidden : piece.text;
    text.written = std::move(shown);
  };
  for (auto* text : {&options.url, &options.body, &options.json})
    hide(*text);
  for (auto& [name, text] : options.headers)
    hide(text);
  return options;
}

}  // namespace pawl::handlers
