#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::ops {

/// A request for a page.
struct HttpRequest {
  std::string method;
  std::string path;
  std::string query;  ///< as it came, behind the question mark
  std::string body;   ///< of a POST
  std::string peer;   ///< numeric address of who is connected
  /// A header of this name as it came, "" where there is none. Names are compared without case.
  std::function<std::string(const std::string& name)> header;
  /// How many of this name there are.
  std::function<std::size_t(const std::string& name)> count;
};

struct HttpAnswer {
  int status = 200;
  std::string type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// What else is served than what programs ask for. Both are called on the server's threads,
/// several at a time.
struct Pages {
  /// Whether the path is one of these.
  std::function<bool(const std::string& path)> serve;
  std::function<HttpAnswer(const HttpRequest&)> answer;
};

}  // namespace pawl::ops
