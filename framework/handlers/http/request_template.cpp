#include "handlers/http/request_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "handlers/http/status_set.hpp"
#include "message/message_error.hpp"
#include "pawl/lease.hpp"

namespace pawl::handlers {

/// A JSON value whose strings are templates.
struct RequestTemplate::JsonNode {
  std::string literal;  ///< number, true, false, null
  std::optional<WrittenText> text;
  bool is_array = false;
  bool is_object = false;
  std::vector<std::pair<std::string, JsonNode>> members;  ///< of an array without names
};

namespace {

using message::Placeholder;

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

/// RFC 3986, section 2.1. "." and ".." are steps in a path, whatever is done to them.
void escape_in_url(std::string_view value, const Placeholder& placeholder, std::string& out) {
  if (value == "." || value == "..") {
    throw message::RenderError(
        placeholder.text(), fmt::format("{{{}}} is \".\" or \"..\", which a URL takes for a step "
                                        "in its path; correct the producer, or skip the message",
                                        placeholder.text()));
  }
  for (const char c : value) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

/// RFC 9110, section 5.5: what would end a header, or begin another one, has no way in.
void escape_in_header(std::string_view value, const Placeholder& placeholder, std::string& out) {
  const auto ends_header = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  if (std::ranges::any_of(value, ends_header)) {
    throw message::RenderError(
        placeholder.text(), fmt::format("{{{}}} has a line end or NUL, which no header can hold; "
                                        "correct the producer, or skip the message",
                                        placeholder.text()));
  }
  out += value;
}

void as_it_is(std::string_view value, const Placeholder& /*placeholder*/, std::string& out) {
  out += value;
}

/// A JSON string's characters. Throws RenderError for what is no UTF-8.
std::string json_string(std::string_view text, const std::string& of) {
  try {
    return nlohmann::json(std::string(text)).dump();
  } catch (const nlohmann::json::type_error&) {
    throw message::RenderError(
        of, fmt::format("{{{}}} is not UTF-8, which JSON cannot hold; correct the producer, handle "
                        "the message in code, or skip it",
                        of));
  }
}

/// The end of "https://host:port" in the text; npos: it is no such URL.
std::size_t end_of_origin(std::string_view url) {
  const auto scheme = url.starts_with("https://") ? 8U : url.starts_with("http://") ? 7U : 0U;
  if (scheme == 0)
    return std::string_view::npos;
  const auto end = std::min(url.find_first_of("/?#", scheme), url.size());
  return end == scheme ? std::string_view::npos : end;
}

bool is_token(std::string_view name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

class Problems {
 public:
  void add(std::string option, std::string what, std::string fix) {
    found.push_back({std::move(option), std::move(what), std::move(fix)});
  }
  /// Whether the text can be understood.
  bool understands(const std::string& option, const HttpText& text) {
    try {
      (void)WrittenText(text);
      return true;
    } catch (const message::TemplateError& error) {
      add(option, error.what(), "write placeholders as in sql");
      return false;
    }
  }

  std::vector<HttpProblem> found;
};

void check_url(const HttpOptions& options, Problems& problems) {
  if (!problems.understands("url", options.url))
    return;
  const WrittenText url(options.url);
  std::string begin;
  try {
    begin = url.before_placeholders();
  } catch (const std::exception& error) {
    return problems.add("url", error.what(), "give the path of a file that this user may read");
  }
  const auto end = end_of_origin(begin);
  if (end == std::string_view::npos)
    return problems.add("url", "is no URL of http or https", "write https://HOST/PATH");
  if (end == begin.size() && url.has_placeholders()) {
    return problems.add("url", "a message may not choose the host",
                        "write the host out, and a / before the first placeholder");
  }
  if (begin.substr(0, end).find('@') != std::string::npos) {
    return problems.add("url", "has a user or a password",
                        "give them in a header: Authorization = \"Bearer ${file:PATH}\"");
  }
  const auto control = [](unsigned char c) { return c <= ' ' || c == 127; };
  if (std::ranges::any_of(begin, control) || options.url.written.find('#') != std::string::npos)
    problems.add("url", "has a blank, a control character or a #", "write them as %20 and so on");
}

void check_json(const nlohmann::json& node, const std::string& folder, Problems& problems) {
  if (node.is_string()) {
    problems.understands("json", {node.get<std::string>(), folder});
    return;
  }
  if (!node.is_structured())
    return;
  for (const auto& item : node)
    check_json(item, folder, problems);
}

}  // namespace

std::vector<HttpProblem> problems_of(const HttpOptions& options) {
  Problems problems;
  if (!is_token(options.method))
    problems.add("method", "is no HTTP method", "write POST, PUT, PATCH or DELETE");
  check_url(options, problems);
  for (const auto& [name, value] : options.headers) {
    const auto option = "headers." + name;
    if (!is_token(name))
      problems.add(option, "is no name of a header", "write letters, digits and -");
    problems.understands(option, value);
    if (value.written.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      problems.add(option, "has a line end or NUL", "take it out");
  }
  if (!options.key_header.empty() && !is_token(options.key_header))
    problems.add("key_header", "is no name of a header", "write Idempotency-Key");
  if (!options.body.empty() && !options.json.empty())
    problems.add("body", "stands beside json", "keep one");
  problems.understands("body", options.body);
  if (!options.json.empty())
    check_json(nlohmann::json::parse(options.json.written, nullptr, false), options.json.folder,
               problems);
  const auto check_statuses = [&](const std::string& option, const std::string& text) {
    if (!StatusSet::parse(text))
      problems.add(option, "is no list of statuses", "write them as 429,5xx");
  };
  check_statuses("success", options.success);
  check_statuses("retry", options.retry);
  check_statuses("permanent", options.permanent);
  if (options.certificate.empty() != options.private_key.empty())
    problems.add("certificate", "stands without its private_key, or the other way round",
                 "give both, or none");
  return problems.found;
}

namespace {

template <typename JsonNode>
JsonNode parse_json(const nlohmann::json& from, const std::string& folder) {
  JsonNode node;
  if (from.is_string()) {
    node.text.emplace(HttpText{from.get<std::string>(), folder});
  } else if (from.is_object()) {
    node.is_object = true;
    for (const auto& [name, member] : from.items())
      node.members.emplace_back(name, parse_json<JsonNode>(member, folder));
  } else if (from.is_array()) {
    node.is_array = true;
    for (const auto& item : from)
      node.members.emplace_back("", parse_json<JsonNode>(item, folder));
  } else {
    node.literal = from.dump();
  }
  return node;
}

}  // namespace

RequestTemplate::RequestTemplate(const HttpOptions& options)
    : method_(options.method),
      url_(options.url),
      body_(options.body),
      has_body_(!options.body.empty() || !options.json.empty()) {
  for (const auto& [name, value] : options.headers)
    headers_.emplace_back(name, WrittenText(value));
  if (!options.json.empty()) {
    json_ = std::make_unique<JsonNode>(
        parse_json<JsonNode>(nlohmann::json::parse(options.json.written), options.json.folder));
  }
}

RequestTemplate::~RequestTemplate() = default;

std::string RequestTemplate::origin() const {
  const auto begin = url_.before_placeholders();
  return begin.substr(0, end_of_origin(begin));
}

HttpRequest RequestTemplate::render(const Message& message, message::JsonView& json) const {
  HttpRequest request;
  request.method = method_;
  request.url = url_.render(message, json, escape_in_url);
  const auto named = [&](std::string_view name) {
    return std::ranges::any_of(headers_, [&](const auto& header) {
      return std::ranges::equal(header.first, name, [](unsigned char a, unsigned char b) {
        return std::tolower(a) == std::tolower(b);
      });
    });
  };
  for (const auto& [name, value] : headers_) {
    const auto text = value.render(message, json, escape_in_header);
    // Of a file, or the environment.
    if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      throw NotDone(
          fmt::format("the header {} would have more than one line; let what its ${{...}} "
                      "stand for be one line",
                      name));
    }
    request.headers.push_back(fmt::format("{}: {}", name, text));
  }
  request.has_body = has_body_;
  if (json_ != nullptr) {
    render_json(*json_, message, json, request.body);
    if (!named("Content-Type"))
      request.headers.emplace_back("Content-Type: application/json");
  } else if (has_body_) {
    request.body = body_.render(message, json, as_it_is);
    if (!named("Content-Type"))
      request.headers.emplace_back("Content-Type: text/plain; charset=utf-8");
  }
  return request;
}

/// A string that is one placeholder of a JSON value keeps that value's type.
void RequestTemplate::render_json(const JsonNode& node, const Message& message,
                                  message::JsonView& json, std::string& out) const {
  if (node.is_object || node.is_array) {
    out += node.is_object ? '{' : '[';
    bool first = true;
    for (const auto& [name, member] : node.members) {
      if (!std::exchange(first, false))
        out += ',';
      if (node.is_object)
        out += nlohmann::json(name).dump() + ':';
      render_json(member, message, json, out);
    }
    out += node.is_object ? '}' : ']';
    return;
  }
  if (!node.text) {
    out += node.literal;
    return;
  }
  if (const auto* placeholder = node.text->only_placeholder()) {
    for (const auto& source : placeholder->sources()) {
      if (source.kind != message::SourceKind::kJson || source.sha256)
        break;
      if (const auto value = json.find(source.pointer)) {
        out += value->raw();
        return;
      }
    }
    std::string scratch;
    const auto resolved = placeholder->resolve(message, json, scratch);
    if (resolved.presence != message::Presence::kValue && placeholder->is_optional()) {
      out += "null";
      return;
    }
  }
  out += json_string(
      node.text->render(message, json, as_it_is),
      node.text->only_placeholder() == nullptr ? "a value" : node.text->only_placeholder()->text());
}

}  // namespace pawl::handlers
