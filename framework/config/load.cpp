#include "config/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "config/broker_list.hpp"
#include "config/document.hpp"
#include "config/option_table.hpp"
#include "config/overrides.hpp"
#include "config/read_options.hpp"
#include "config/shape.hpp"
#include "config/validate.hpp"

namespace pawl::config {

namespace {

std::optional<std::string> read_file(const std::filesystem::path& path, Files& files,
                                     std::vector<Problem>& problems) {
  auto content = files.read(path);
  if (content.text)
    return std::move(content.text);
  Problem problem;
  problem.where = path.string();
  problem.what = fmt::format("cannot be read ({})", content.problem);
  problem.fix = "Use the path of a TOML file";
  problems.push_back(std::move(problem));
  return std::nullopt;
}

/// The name of the file in error texts. Empty: there is no file.
std::string name_of(const LoadRequest& request) {
  return request.path.empty() && request.text ? "config" : request.path.string();
}

std::optional<Node> user_file(const LoadRequest& request, Files& files,
                              std::vector<Problem>& problems) {
  if (request.path.empty() && !request.text)
    return std::nullopt;
  auto text = request.text ? request.text : read_file(request.path, files, problems);
  if (!text)
    return std::nullopt;
  const auto source = std::make_shared<Source>();
  source->name = name_of(request);
  source->text = *std::move(text);
  source->folder = request.path.parent_path().string();
  return parse_document(source, problems);
}

/// The origin of an option: its own node (`exact`), or the table or array around it.
struct Origin {
  const Node* node = nullptr;
  bool exact = false;

  [[nodiscard]] bool from_user() const { return node != nullptr; }
};

Origin origin(const Findings& findings, std::string option) {
  for (bool exact = true; !option.empty(); exact = false) {
    if (const auto found = findings.nodes.find(option); found != findings.nodes.end()) {
      // A statement may be a table around its text.
      const Node* const text = found->second->member("text");
      return {text == nullptr ? found->second : text, exact};
    }
    const std::size_t end = option.find_last_of(".[");
    option.resize(end == std::string::npos ? 0 : end);
  }
  return {};
}

bool holds_substituted(const Node& node) {
  return node.substituted || std::any_of(node.items.begin(), node.items.end(), holds_substituted) ||
         std::any_of(node.members.begin(), node.members.end(),
                     [](const auto& member) { return holds_substituted(member.second); });
}

/// Adds the place to a problem that validate() found, and replaces a substituted value by the text
/// of the user. False: the problem is a missing option.
bool attribute(Problem& problem, const Findings& findings, const std::string& file) {
  Origin from = origin(findings, problem.option);
  if (!from.exact || !from.from_user()) {
    const Origin also = origin(findings, problem.also);
    if (also.exact && also.from_user())
      from = also;
  }
  if (!from.from_user()) {
    problem.where = file;
    return false;
  }
  const Node& node = *from.node;
  problem.where = node.where();
  problem.line = node.line;
  if (problem.place && node.substituted) {
    problem.what = "cannot be parsed after substitution, and is not shown because it may be secret";
    problem.fix = "Write the text itself here to see the error";
  } else if (problem.place) {
    if (auto where = node.where_at(*problem.place)) {
      problem.where = *std::move(where);
      problem.place.reset();
    }
  }
  if (!problem.shown.empty() && holds_substituted(node)) {
    problem.shown = from.exact && node.kind == Node::Kind::kString ? in_quotes(node.written) : "";
  }
  return true;
}

/// Returns the paths of all ${file:PATH} in a text, and replaces each by "1".
std::vector<std::string> take_files(std::string& text, const std::filesystem::path& folder) {
  constexpr std::string_view kFile = "${file:";
  std::vector<std::string> files;
  const bool begins = text.starts_with(kFile);
  for (auto at = text.find(kFile); at != std::string::npos; at = text.find(kFile)) {
    const auto end = std::min(text.find('}', at), text.size());
    const auto name = at + kFile.size();
    files.push_back((folder / text.substr(name, end - name)).string());
    // Any option of a connection string may be that.
    text.replace(at, end + 1 - at, "1");
  }
  if (begins)
    text.clear();
  return files;
}

/// Renews a text with ${file:PATH} at each connect. `read`: the text with the files as they were
/// loaded.
UrlRenewal renewal_of(const Node& node, const EnvironmentLookup& environment,
                      const std::string& read) {
  if (!node.substituted || node.written.find("${file:") == std::string::npos)
    return {};
  auto literal = node;
  const auto named = take_files(literal.written, node.source->folder);
  literal.value = literal.written;
  Files none;
  std::vector<Problem> reported;
  substitute(literal, environment, none, reported);
  const auto now = [node, environment, read](const std::string& url) {
    // The program has replaced the URL.
    if (url != read)
      return url;
    auto renewed = node;
    Files files;
    std::vector<Problem> problems;
    substitute(renewed, environment, files, problems);
    if (!problems.empty()) {
      throw std::runtime_error(fmt::format("{}. {}", problems.front().what, problems.front().fix));
    }
    return renewed.value;
  };
  return {now, read, literal.value, fmt::format("{}", fmt::join(named, " and "))};
}

bool is_inside(std::string_view option, std::string_view around) {
  return option.starts_with(around) &&
         (option.size() == around.size() || option[around.size()] == '.' ||
          option[around.size()] == '[');
}

/// An option that could not be read has its default, whose problems are only a consequence.
bool is_consequence(const Problem& problem, const std::vector<Problem>& causes) {
  return std::any_of(causes.begin(), causes.end(), [&](const Problem& cause) {
    return !cause.option.empty() &&
           (is_inside(problem.option, cause.option) || is_inside(cause.option, problem.option));
  });
}

/// Adds problems of librdkafka with its properties, unless validate() has reported the property.
void check_properties(const Options& options, const LoadRequest& request,
                      std::vector<Problem>& problems) {
  if (!request.property_problem)
    return;
  for (const auto& [name, value] : options.kafka.librdkafka) {
    const std::string option = "kafka.librdkafka." + name;
    const bool refused =
        std::any_of(problems.begin(), problems.end(),
                    [&option](const Problem& problem) { return problem.option == option; });
    if (refused)
      continue;
    std::string what = request.property_problem(name, value);
    if (what.empty())
      continue;
    Problem problem;
    problem.option = option;
    problem.what = std::move(what);
    problem.fix = "See CONFIGURATION.md of librdkafka";
    problems.push_back(std::move(problem));
  }
}

/// Every handler inherits a wrong default, which is reported once.
bool is_repeated(const Problem& problem, const std::vector<Problem>& problems) {
  return !problem.also.empty() &&
         std::any_of(problems.begin(), problems.end(), [&](const Problem& other) {
           return other.also == problem.also && other.where == problem.where &&
                  other.what == problem.what;
         });
}

/// Line by line, then missing options, then options of --default and --set.
void in_order_of_the_file(std::vector<Problem>& problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    const auto place = [](const Problem& problem) {
      return std::tuple{problem.where.starts_with("--"), problem.line == 0, problem.line};
    };
    return place(a) < place(b);
  });
}

/// The result of loading. It cannot be moved, because the findings point into the tree.
class Loading {
 public:
  explicit Loading(const LoadRequest& request) : request_(request) {
    merge_layers();
    options_ = read_options(root_, option_table(), findings_);
    if (const auto url = findings_.nodes.find("postgres.url"); url != findings_.nodes.end()) {
      options_.postgres.renewal =
          renewal_of(*url->second, request_.environment, options_.postgres.url);
    }
    // The missing options of an unreadable file are unknown.
    if (readable_)
      check();
    in_order_of_the_file(findings_.problems);
    if (!findings_.problems.empty())
      throw errors_of(findings_.problems);
    options_.kafka.bootstrap_servers = normal_broker_list(options_.kafka.bootstrap_servers);
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  [[nodiscard]] Options& options() { return options_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  void merge_layers() {
    std::optional<Node> file = user_file(request_, files(), findings_.problems);
    readable_ = findings_.problems.empty();
    std::vector<Node> layers;
    const auto add = [&](const std::vector<std::string>& texts, std::string_view flag) {
      for (const std::string& text : texts) {
        if (auto node = parse_override(text, findings_.problems, flag))
          layers.push_back(*std::move(node));
      }
    };
    add(request_.defaults, "--default");
    if (file)
      layers.push_back(*std::move(file));
    add(request_.overrides, "--set");
    for (Node& layer : layers) {
      check_shape(layer, option_table(), findings_.problems);
      substitute(layer, request_.environment, files(), findings_.problems);
      merge(root_, layer);
    }
  }

  void check() {
    const std::vector<Problem> causes = findings_.problems;
    std::vector<Problem> found = validate(options_, request_.may_only_relay);
    check_properties(options_, request_, found);
    for (Problem& problem : found) {
      if (is_consequence(problem, causes))
        continue;
      const bool of_user = attribute(problem, findings_, name_of(request_));
      if ((of_user || request_.complete) && !is_repeated(problem, findings_.problems))
        findings_.problems.push_back(std::move(problem));
    }
  }

  Files& files() { return request_.files == nullptr ? own_files_ : *request_.files; }

  const LoadRequest& request_;
  Files own_files_;
  Node root_;
  Findings findings_;
  Options options_;
  bool readable_ = true;
};

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

Options load(const LoadRequest& request) {
  return std::move(Loading{request}.options());
}

std::vector<OptionInForce> load_in_force(const LoadRequest& request) {
  Loading loading{request};
  return options_in_force(loading.options(), option_table(), loading.findings());
}

}  // namespace pawl::config
