// `check --json`.
#include <algorithm>

#include "cli/check.hpp"
#include "console/json.hpp"

namespace pawl::cli {
namespace {

const char* result_of(Finding::Mark mark) {
  using Mark = Finding::Mark;
  switch (mark) {
    case Mark::kOk:
      return "ok";
    case Mark::kInfo:
      return "info";
    case Mark::kWarn:
      return "warn";
    case Mark::kFail:
      break;
  }
  return "fail";
}

}  // namespace

std::string check_json(const std::vector<Finding>& findings) {
  Json root;
  root["ready"] = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.mark == Finding::Mark::kFail; });
  auto& list = root["findings"] = Json::array();
  for (const auto& finding : findings) {
    list.push_back({{"section", finding.section},
                    {"result", result_of(finding.mark)},
                    {"text", finding.text}});
  }
  return indented(root) + '\n';
}

}  // namespace pawl::cli
