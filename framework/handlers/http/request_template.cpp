#include "handlers/http/request_template.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "handlers/http/status_set.hpp"
#include "message/message_error.hpp"
#include "message/traceparent.hpp"
#include "pawl/lease.hpp"

namespace pawl::handlers {

/// A JSON value whose strings are templates.
struct RequestTemplate::JsonNode {
  std::string literal;  ///< number, true, false, null
  std::optional<WrittenText> text;
  bool is_array = false;
  bool is_object = false;
  struct Member;
  std::vector<Member> members;
};

struct RequestTemplate::JsonNode::Member {
  std::string name;  ///< empty in an array
  JsonNode value;
};

namespace {

using message::Placeholder;

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

[[noreturn]] void refuse(const Placeholder& placeholder, std::string_view why) {
  throw message::RenderError(placeholder.text(),
                             fmt::format("{{{}}} {}. Fix the producer", placeholder.text(), why));
}

/// Whether a part of it between slashes, of either kind, is a step up or on the spot: servers that
/// decode first, and then walk, would take it.
bool has_step(std::string_view path) {
  while (true) {
    const auto end = path.find_first_of("/\\");
    const auto part = path.substr(0, end);
    if (part == "." || part == "..")
      return true;
    if (end == std::string_view::npos)
      return false;
    path.remove_prefix(end + 1);
  }
}

void percent_encode(std::string_view value, std::string& out) {
  for (const char c : value) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

/// RFC 3986, section 2.1.
void escape_in_url(std::string_view value, const Placeholder& placeholder, std::string& out) {
  const bool in_path = out.find('?') == std::string::npos;
  if (in_path && value.empty() && !placeholder.is_optional())
    refuse(placeholder, "is empty, so the request would have another URL");
  if (in_path && has_step(value))
    refuse(placeholder, "contains \".\" or \"..\", which is a step in the path of a URL");
  percent_encode(value, out);
}

void escape_in_form(std::string_view value, const Placeholder& /*placeholder*/, std::string& out) {
  percent_encode(value, out);
}

/// RFC 9110, section 5.5: what would end a header, or begin another one, has no way in.
void escape_in_header(std::string_view value, const Placeholder& placeholder, std::string& out) {
  const auto ends_header = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  if (std::ranges::any_of(value, ends_header))
    refuse(placeholder, "contains a line break or NUL, which a header cannot contain");
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
        of, fmt::format("{{{}}} is not UTF-8, which JSON requires. Fix the producer, or handle the "
                        "message in code",
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

/// Whether the client can connect to it: its host and port are valid.
bool is_origin(const std::string& origin) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  return url != nullptr && curl_url_set(url.get(), CURLUPART_URL, origin.c_str(), 0) == CURLUE_OK;
}

/// RFC 3986, section 6.2: the same place is written in one way.
std::string normal_origin(std::string origin) {
  std::ranges::transform(origin, origin.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view port = origin.starts_with("https://") ? ":443" : ":80";
  if (origin.ends_with(port))
    origin.resize(origin.size() - port.size());
  return origin;
}

bool is_token(std::string_view name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

/// What stands outside of all placeholders and ${...}.
std::string without_placeholders(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto rest = text.substr(at);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      out += rest.front();
      at += 2;
    } else if (rest.starts_with('{')) {
      at = std::min(end_of_placeholder(text, at), text.size());
    } else {
      out += rest.front();
      ++at;
    }
  }
  return out;
}

/// What shapes the request itself is the client's alone (RFC 9110, section 7.6.1; RFC 9112).
bool is_of_client(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{"Content-Length",
                                                    "Transfer-Encoding",
                                                    "Host",
                                                    "Connection",
                                                    "Expect",
                                                    "Upgrade",
                                                    "TE",
                                                    "Trailer",
                                                    "Keep-Alive",
                                                    "Proxy-Connection",
                                                    "Proxy-Authorization"};
  return std::ranges::any_of(kNames, [&](std::string_view one) { return same_name(one, name); });
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
      add(option, error.what(), "Write placeholders as in sql");
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
    return problems.add("url", error.what(), "Use the path of a file that this user may read");
  }
  const auto end = end_of_origin(begin);
  if (end == std::string_view::npos || !is_origin(begin.substr(0, end)))
    return problems.add("url", "not an http or https URL with a literal host",
                        "Use https://HOST/PATH");
  if (end == begin.size() && url.has_placeholders()) {
    return problems.add("url", "the host must not come from the message",
                        "Write the host literally, and a / before the first placeholder");
  }
  if (begin.substr(0, end).find('@') != std::string::npos) {
    return problems.add("url", "contains a user or a password",
                        "Use a header: Authorization = \"Bearer ${file:PATH}\"");
  }
  const auto control = [](unsigned char c) { return c <= ' ' || c == 127; };
  const auto written = without_placeholders(options.url.written);
  if (std::ranges::any_of(begin, control) || std::ranges::any_of(written, control) ||
      written.find('#') != std::string::npos)
    problems.add("url", "contains a space, a control character, or a #",
                 "Percent-encode them, such as %20");
  if (has_step(written.substr(0, written.find('?'))))
    problems.add("url", "contains \".\" or \"..\" in its path", "Write the path without it");
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

bool is_json_type(std::string_view type) {
  return type.find("json") != std::string_view::npos;
}

/// The Content-Type that the options say; empty: none.
std::string content_type(const HttpOptions& options) {
  for (const auto& [name, value] : options.headers) {
    if (same_name(name, "Content-Type"))
      return value.written;
  }
  return "";
}

void check_body(const HttpOptions& options, Problems& problems) {
  const auto& text = options.body.written;
  if (problems.understands("body", options.body) && WrittenText(options.body).has_placeholders()) {
    const auto begin = text.find_first_not_of(" \t\r\n");
    // "{{" is a brace, "{/a}" a value.
    if (text.substr(begin).starts_with("{{") || text[begin] == '[' ||
        is_json_type(content_type(options))) {
      problems.add("body", "is JSON, but values in body are not escaped",
                   "Use json = { ... }, which escapes values");
    }
  }
  if (options.json.empty())
    return;
  const auto json = nlohmann::json::parse(options.json.written, nullptr, false);
  if (json.is_discarded())
    return problems.add("json", "is not JSON", "Fix it");
  check_json(json, options.json.folder, problems);
}

void check_headers(const HttpOptions& options, Problems& problems) {
  for (auto header = options.headers.begin(); header != options.headers.end(); ++header) {
    const auto& [name, value] = *header;
    const auto option = "headers." + name;
    if (!is_token(name))
      problems.add(option, "not a header name", "Use letters, digits, and -");
    if (is_of_client(name))
      problems.add(option, "the HTTP client sets this header", "Remove it");
    if (same_name(name, options.key_header))
      problems.add(option, "key_header sends this header", "Remove it, or set key_header = \"\"");
    if (std::any_of(options.headers.begin(), header,
                    [&](const auto& other) { return same_name(other.first, header->first); }))
      problems.add(option, "occurs twice with different case", "Keep one");
    problems.understands(option, value);
    if (value.written.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      problems.add(option, "contains a line break or NUL character", "Remove it");
  }
}

/// A status that does not say that nothing was done may have done it.
void check_outage(const HttpOptions& options, Problems& problems) {
  const auto success = StatusSet::parse(options.success);
  const auto not_done = StatusSet::parse(options.not_done);
  const auto retry = StatusSet::parse(options.retry);
  const auto permanent = StatusSet::parse(options.permanent);
  const auto outage = StatusSet::parse(options.outage);
  if (!outage) {
    problems.add("outage", "not a list of statuses", "Write them as 503");
    return;
  }
  if (!success || !not_done || !retry || !permanent)
    return;
  const StatusSets sets{*success, *not_done, *retry, *permanent};
  for (long status = 100; status < 600; ++status) {
    const bool not_done_there = meaning_of({.status = status}, sets) == CallMeaning::kNotDone;
    if (outage->contains(status) && !not_done_there) {
      problems.add("outage", "contains statuses that do not mean that the call had no effect",
                   "Use only statuses that not_done lists, and that no other list names");
      return;
    }
  }
}

}  // namespace

bool same_name(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

bool is_form(const HttpOptions& options) {
  return content_type(options).find("x-www-form-urlencoded") != std::string::npos;
}

std::vector<HttpProblem> problems_of(const HttpOptions& options) {
  Problems problems;
  constexpr std::array<std::string_view, 5> kMethods{"POST", "PUT", "PATCH", "DELETE", "GET"};
  if (std::ranges::find(kMethods, options.method) == kMethods.end())
    problems.add("method", "not a supported method", "Use POST, PUT, PATCH, DELETE, or GET");
  if (options.method == "GET" && !(options.body.empty() && options.json.empty()))
    problems.add("method", "this method has no body", "Use POST, or remove the body");
  check_url(options, problems);
  check_headers(options, problems);
  if (!options.key_header.empty() && !is_token(options.key_header))
    problems.add("key_header", "not a header name", "Use a name such as Idempotency-Key");
  if (!options.body.empty() && !options.json.empty())
    problems.add("body", "json is also set", "Keep one");
  check_body(options, problems);
  const auto check_statuses = [&](const std::string& option, const std::string& text) {
    if (!StatusSet::parse(text))
      problems.add(option, "not a list of statuses", "Write them as 429,5xx");
  };
  check_statuses("success", options.success);
  check_statuses("retry", options.retry);
  check_statuses("permanent", options.permanent);
  check_statuses("not_done", options.not_done);
  check_outage(options, problems);
  if (options.success.empty())
    problems.add("success", "empty, so no response would be a success", "Use 2xx");
  for (const auto& [option, path] :
       {std::pair{"ca_file", &options.ca_file}, std::pair{"certificate", &options.certificate},
        std::pair{"private_key", &options.private_key}}) {
    if (path->find('\n') != std::string::npos || path->find("-----BEGIN") != std::string::npos)
      problems.add(option, "not a path", "Use the path of the file, not its content");
    else if (!path->empty() && !std::ifstream(*path))
      problems.add(option, "not a readable file", "Use the path of a file that this user may read");
  }
  if (options.certificate.empty() != options.private_key.empty())
    problems.add("certificate", "certificate and private_key require each other",
                 "Set both, or neither");
  return problems.found;
}

namespace {

/// Whether the first source with a value is one of the JSON document, which is appended as it is.
bool append_json_value(const Placeholder& placeholder, const Message& message,
                       message::JsonView& json, std::string& out) {
  std::string scratch;
  for (const auto& source : placeholder.sources()) {
    if (source.resolve(message, json, scratch).presence != message::Presence::kValue)
      continue;
    if (source.kind != message::SourceKind::kJson || source.sha256)
      return false;
    out += json.find(source.pointer).value().raw();
    return true;
  }
  return false;
}

template <typename JsonNode>
JsonNode parse_json(const nlohmann::json& from, const std::string& folder) {
  JsonNode node;
  if (from.is_string()) {
    node.text.emplace(HttpText{from.get<std::string>(), folder});
  } else if (from.is_object()) {
    node.is_object = true;
    for (const auto& [name, member] : from.items())
      node.members.push_back({name, parse_json<JsonNode>(member, folder)});
  } else if (from.is_array()) {
    node.is_array = true;
    for (const auto& item : from)
      node.members.push_back({"", parse_json<JsonNode>(item, folder)});
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
      has_body_(!options.body.empty() || !options.json.empty()),
      is_form_(is_form(options)) {
  const auto begin = url_.before_placeholders();
  origin_ = begin.substr(0, end_of_origin(begin));
  for (const auto& [name, value] : options.headers)
    headers_.emplace_back(name, WrittenText(value));
  if (!options.json.empty()) {
    json_ = std::make_unique<JsonNode>(
        parse_json<JsonNode>(nlohmann::json::parse(options.json.written), options.json.folder));
  }
}

RequestTemplate::~RequestTemplate() = default;

std::string RequestTemplate::origin() const {
  return normal_origin(origin_);
}

/// What ${...} stands for may have changed, and the host with it.
void RequestTemplate::require_origin(const std::string& url) const {
  if (!url.starts_with(origin_) ||
      (url.size() > origin_.size() && url[origin_.size()] != '/' && url[origin_.size()] != '?'))
    throw NotDone("the host of the URL has changed since the program started. Restart the program");
}

HttpRequest RequestTemplate::render(const Message& message, message::JsonView& json) const {
  HttpRequest request;
  request.method = method_;
  request.url = url_.render(message, json, escape_in_url);
  require_origin(request.url);
  const auto named = [&](std::string_view name) {
    return std::ranges::any_of(headers_,
                               [&](const auto& header) { return same_name(header.first, name); });
  };
  for (const auto& [name, value] : headers_) {
    const auto text = value.render(message, json, escape_in_header);
    // Of a file, or the environment.
    if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      throw NotDone(
          fmt::format("the header {} would have more than one line. Use values of one line for its "
                      "${{...}}",
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
    request.body = body_.render(message, json, is_form_ ? escape_in_form : as_it_is);
    if (!named("Content-Type"))
      request.headers.emplace_back("Content-Type: text/plain; charset=utf-8");
  }
  if (named("traceparent") || named("tracestate"))
    return request;
  // Of the form that they have neither can hold more than its line.
  const auto trace = message::trace_of(message);
  if (!trace.parent.empty())
    request.headers.push_back(fmt::format("traceparent: {}", trace.parent));
  if (!trace.state.empty())
    request.headers.push_back(fmt::format("tracestate: {}", trace.state));
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
    if (append_json_value(*placeholder, message, json, out))
      return;
    std::string scratch;
    if (placeholder->resolve(message, json, scratch).presence != message::Presence::kValue &&
        placeholder->is_optional()) {
      out += "null";
      return;
    }
  }
  out += json_string(
      node.text->render(message, json, as_it_is),
      node.text->only_placeholder() == nullptr ? "a value" : node.text->only_placeholder()->text());
}

}  // namespace pawl::handlers
