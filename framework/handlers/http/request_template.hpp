#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/http/written_text.hpp"
#include "message/json.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"

namespace pawl::handlers {

/// A request, ready to be sent.
struct HttpRequest {
  std::string method;
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string body;
  bool has_body = false;
};

/// What is wrong with a request's options, in words that end with what to do; empty: nothing.
/// `option`: the part of HttpOptions that it is about.
struct HttpProblem {
  std::string option;
  std::string what;
  std::string fix;
};
[[nodiscard]] std::vector<HttpProblem> problems_of(const HttpOptions& options);

/// Whether two names of headers are one (RFC 9110, section 5.1).
[[nodiscard]] bool same_name(std::string_view one, std::string_view other);
/// Whether the body is a form's, by the Content-Type.
[[nodiscard]] bool is_form(const HttpOptions& options);

/// Makes the request of a message. A value of the message's stands in the URL's path and query, in
/// headers, in JSON and in forms, escaped for its place, and can reach no other. In any other body
/// it stands as it is. Immutable, any thread.
class RequestTemplate {
 public:
  /// Of options without problems.
  explicit RequestTemplate(const HttpOptions& options);
  ~RequestTemplate();

  /// Throws message::MessageError for what the message lacks, or what cannot stand in its place;
  /// NotDone for a file that cannot be read.
  [[nodiscard]] HttpRequest render(const Message& message, message::JsonView& json) const;
  /// "https://api.example:8443", what all requests go to; the same place reads the same.
  [[nodiscard]] std::string origin() const;

 private:
  struct JsonNode;

  void require_origin(const std::string& url) const;
  void render_json(const JsonNode& node, const Message& message, message::JsonView& json,
                   std::string& out) const;

  std::string method_;
  WrittenText url_;
  std::string origin_;
  std::vector<std::pair<std::string, WrittenText>> headers_;
  WrittenText body_;
  bool has_body_;
  bool is_form_;
  std::unique_ptr<JsonNode> json_;
};

}  // namespace pawl::handlers
