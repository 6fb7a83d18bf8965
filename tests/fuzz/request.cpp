// HTTP requests of handlers: lines with the URL, a header, the body's kind and the body, then a
// message.
#include "handlers/http/request_template.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "handlers/http/shown_request.hpp"
#include "message.hpp"
#include "message/message_error.hpp"
#include "pawl/lease.hpp"

using namespace pawl::handlers;
using pawl::HttpOptions;
using pawl::fuzzing::require;

namespace {

struct Free {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, Free>;

std::string part_of(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK)
    return "";
  std::string result = text;
  curl_free(text);
  return result;
}

/// As the client reads it.
Url parsed_url(const std::string& text) {
  Url url(curl_url());
  require(curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) == CURLUE_OK,
          "a rendered URL is a URL", text);
  return url;
}

bool has_reference(const HttpOptions& options) {
  const auto has = [](const std::string& text) { return text.find("${") != std::string::npos; };
  for (const auto& [name, value] : options.headers) {
    if (has(value.written))
      return true;
  }
  return has(options.url.written) || has(options.body.written) || has(options.json.written);
}

std::string lower(std::string text) {
  for (auto& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void check_url(const RequestTemplate& request, const HttpRequest& rendered) {
  const auto& text = rendered.url;
  require(text.find('#') == std::string::npos, "a URL has no fragment", text);
  for (const char c : text)
    require(static_cast<unsigned char>(c) > ' ' && c != 127, "a URL has no space", text);
  const auto url = parsed_url(text);
  auto origin = lower(part_of(url, CURLUPART_SCHEME)) + "://" + lower(part_of(url, CURLUPART_HOST));
  require(request.origin().starts_with(origin), "the host is the configuration's", text);
  require(part_of(url, CURLUPART_USER).empty(), "a URL has no user", text);
  auto path = part_of(url, CURLUPART_PATH);
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find_first_of("/\\", at), path.size());
    const auto step = path.substr(at, end - at);
    require(step != "." && step != "..", "a path has no steps", text);
    at = end + 1;
  }
}

void check_headers(const HttpRequest& rendered) {
  for (const auto& header : rendered.headers) {
    require(header.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
            "a header is one line", header);
    require(header.find(':') != std::string::npos, "a header has a name", header);
  }
}

std::size_t count_of(std::string_view characters, std::string_view text) {
  std::size_t count = 0;
  for (const char c : text)
    count += characters.find(c) == std::string_view::npos ? 0 : 1;
  return count;
}

std::string literals_of(const std::string& text) {
  std::string out;
  const auto parsed = pawl::message::Template::parse(text);
  std::size_t at = 0;
  for (const auto* placeholder : parsed.placeholders()) {
    out += text.substr(at, placeholder->begin() - at);
    at = end_of_placeholder(text, placeholder->begin());
  }
  return out + text.substr(std::min(at, text.size()));
}

/// Values begin no part: what separates parts is the configuration's.
void check_parts(std::string_view separators, const std::string& written,
                 const std::string& rendered) {
  require(count_of(separators, rendered) == count_of(separators, literals_of(written)),
          "a value begins no other part", rendered);
}

void check_body(const HttpOptions& options, const HttpRequest& rendered) {
  check_parts("/?&=:", options.url.written, rendered.url);
  if (is_form(options) && options.json.empty())
    check_parts("&=", options.body.written, rendered.body);
  // A document that is nested more deeply than the reader allows is no defect of the request.
  if (options.json.empty() || count_of("[{", rendered.body) > 500)
    return;
  pawl::message::JsonReader reader;
  try {
    reader.read(rendered.body);
  } catch (const pawl::message::JsonError& error) {
    require(false, "the body is JSON", error.what());
  }
}

/// What is shown is a request of the same form, which shows again as it is.
void check_shown(const HttpOptions& options) {
  const auto shown = without_secrets(options);
  require(without_secrets(shown) == shown, "what is shown has no secret", shown.url.written);
  for (const auto& problem : problems_of(shown))
    require(false, "what is shown are options again", problem.option + ": " + problem.what);
  (void)without_references(options);
}

}  // namespace

void fuzz(std::string_view input) {
  HttpOptions options;
  options.url = {"https://api.example" + std::string(pawl::fuzzing::take_line(input)), "/nowhere"};
  const auto header = pawl::fuzzing::take_line(input);
  if (const auto colon = header.find(':'); colon != std::string_view::npos)
    options.headers[std::string(header.substr(0, colon))] = {std::string(header.substr(colon + 1)),
                                                             "/nowhere"};
  const auto kind = pawl::fuzzing::take_line(input);
  const std::string body(pawl::fuzzing::take_line(input));
  if (kind == "json") {
    options.json = {body, "/nowhere"};
  } else {
    options.body = {body, "/nowhere"};
    if (kind == "form")
      options.headers["Content-Type"] = {"application/x-www-form-urlencoded", ""};
  }
  // Files and the environment are not this target's.
  if (has_reference(options) || !problems_of(options).empty())
    return;
  check_shown(options);
  const pawl::fuzzing::LinesMessage lines(input);
  const auto message = lines.view();
  pawl::message::JsonReader reader;
  pawl::message::JsonView json(reader, message);
  const RequestTemplate request(options);
  try {
    const auto rendered = request.render(message, json);
    check_url(request, rendered);
    check_headers(rendered);
    check_body(options, rendered);
  } catch (const pawl::message::MessageError&) {
  }
}
