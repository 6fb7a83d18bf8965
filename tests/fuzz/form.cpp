// Queries and forms that browsers send to the dashboard, and the texts that it writes into HTML.
#include "console/printable.hpp"
#include "dashboard/html.hpp"
#include "fuzz.hpp"

using namespace pawl::dashboard;
using pawl::fuzzing::require;

namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// application/x-www-form-urlencoded (WHATWG URL, section 5.1), written down a second time.
std::string decoded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t used = 1;
    if (text[0] == '+') {
      out += ' ';
    } else if (text[0] == '%' && text.size() >= 3 && is_hex(text[1]) && is_hex(text[2])) {
      out += static_cast<char>(std::stoi(std::string(text.substr(1, 2)), nullptr, 16));
      used = 3;
    } else {
      out += text[0];
    }
    text.remove_prefix(used);
  }
  return out;
}

Fields reference(const std::string& text) {
  Fields fields;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] != '&')
      continue;
    const auto pair = text.substr(begin, at - begin);
    begin = at + 1;
    if (pair.empty())
      continue;
    const auto equals = pair.find('=');
    const bool has_value = equals != std::string::npos;
    fields[decoded(pair.substr(0, equals))] = has_value ? decoded(pair.substr(equals + 1)) : "";
  }
  return fields;
}

/// What a browser makes of an escaped text.
std::string unescaped(std::string text) {
  for (const auto& [entity, character] :
       {std::pair{"&lt;", '<'}, std::pair{"&gt;", '>'}, std::pair{"&quot;", '"'},
        std::pair{"&#39;", '\''}, std::pair{"&amp;", '&'}}) {
    for (auto at = text.find(entity); at != std::string::npos; at = text.find(entity, at + 1))
      text.replace(at, std::string_view(entity).size(), 1, character);
  }
  return text;
}

}  // namespace

void fuzz(std::string_view input) {
  const auto fields = parse_fields(input);
  require(fields == reference(std::string(input)), "a form has its fields", input);
  auto kept = fields;
  std::erase_if(kept, [](const auto& field) { return field.second.empty(); });
  const auto query = to_query(fields);
  require(parse_fields(std::string_view(query).substr(query.empty() ? 0 : 1)) == kept,
          "a query has the fields that it is made of", query);
  for (const auto& [name, value] : fields) {
    require(field(fields, name) == value, "a field has its value");
    const auto number = number_field(fields, name);
    require(!number || std::stoll(value) == *number, "a number is the text's", value);
    const auto partition = partition_field(fields, name);
    require(!partition || (*partition >= 0 && *partition == number), "a partition is the number");
  }
  const auto escaped = escape(input);
  require(escaped.find_first_of("<>\"'") == std::string::npos, "an escaped text has no markup");
  require(unescaped(escaped) == pawl::cli::printable_lines(input), "an escaped text is the text");
  require(decoded(url_encode(input)) == input, "an encoded text is the text");
  (void)are_text(fields);
}
