#include "audit/store/ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl::ledger {

std::string text_array(std::span<const std::string> texts) {
  std::string array = "{";
  for (const auto& text : texts) {
    array += array.size() == 1 ? "\"" : ",\"";
    for (const char c : text) {
      if (c == '"' || c == '\\')
        array += '\\';
      array += c;
    }
    array += '"';
  }
  return array += '}';
}

void add_range(postgres::Parameters& parameters, const OffsetRange& range) {
  parameters.add_text(range.partition.topic);
  parameters.add_integer(range.partition.partition);
  parameters.add_integer(range.after);
  parameters.add_integer(range.upto);
}

void add_ranges(postgres::Parameters& parameters, const std::vector<OffsetRange>& ranges) {
  std::vector<std::string> topics;
  std::vector<std::int32_t> partitions;
  std::vector<std::int64_t> after;
  std::vector<std::int64_t> upto;
  for (const auto& range : ranges) {
    topics.push_back(range.partition.topic);
    partitions.push_back(range.partition.partition);
    after.push_back(range.after);
    upto.push_back(range.upto);
  }
  parameters.add_text(text_array(topics));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(partitions, ",")));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(after, ",")));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(upto, ",")));
}

}  // namespace pawl::ledger
