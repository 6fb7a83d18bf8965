#include "json_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace pawl::testing {
namespace {

using Json = nlohmann::json;

/// The names that a JSON Schema has for the type of a value.
std::vector<std::string> types_of(const Json& value) {
  if (value.is_number_integer())
    return {"integer", "number"};
  return {value.is_number() ? "number" : value.type_name()};
}

bool has_type(const Json& value, const Json& type) {
  const auto types = types_of(value);
  const auto is = [&](const Json& one) {
    return std::find(types.begin(), types.end(), one.get<std::string>()) != types.end();
  };
  return type.is_array() ? std::any_of(type.begin(), type.end(), is) : is(type);
}

bool is_instant(const std::string& text) {
  static const std::regex form(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  return std::regex_match(text, form);
}

class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  [[nodiscard]] std::string check(const Json& value, const Json& schema,
                                  const std::string& place) const {
    if (const auto ref = schema.find("$ref"); ref != schema.end())
      return check(value, root_.at(Json::json_pointer(ref->get<std::string>().substr(1))), place);
    if (const auto any = schema.find("anyOf"); any != schema.end()) {
      const bool fits = std::any_of(any->begin(), any->end(), [&](const Json& one) {
        return check(value, one, place).empty();
      });
      if (!fits)
        return fmt::format("{}: {} fits none of anyOf", place, value.dump());
    }
    if (schema.contains("type") && !has_type(value, schema.at("type")))
      return fmt::format("{}: {} is not of type {}", place, value.dump(), schema.at("type").dump());
    if (const auto words = schema.find("enum"); words != schema.end()) {
      if (std::find(words->begin(), words->end(), value) == words->end())
        return fmt::format("{}: {} is none of {}", place, value.dump(), words->dump());
    }
    if (schema.contains("format") && value.is_string() && !is_instant(value.get<std::string>()))
      return fmt::format("{}: {} is not RFC 3339 in UTC", place, value.dump());
    if (value.is_object())
      return check_members(value, schema, place);
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        auto why = check(value[i], schema.at("items"), fmt::format("{}[{}]", place, i));
        if (!why.empty())
          return why;
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string check_members(const Json& value, const Json& schema,
                                          const std::string& place) const {
    const auto properties = schema.find("properties");
    if (properties == schema.end())
      return {};
    for (const auto& name : schema.at("required")) {
      if (!value.contains(name.get<std::string>()))
        return fmt::format("{}: {} is missing", place, name.dump());
    }
    for (const auto& [name, member] : value.items()) {
      const auto found = properties->find(name);
      if (found == properties->end())
        return fmt::format("{}: \"{}\" is not documented", place, name);
      auto why = check(member, *found, place + "." + name);
      if (!why.empty())
        return why;
    }
    return {};
  }

  const Json& root_;
};

}  // namespace

const std::map<std::string, Json>& json_schemas() {
  static const auto schemas = [] {
    std::map<std::string, Json> found;
    for (const auto& entry : std::filesystem::directory_iterator(PAWL_JSON_SCHEMAS)) {
      if (entry.path().extension() == ".json")
        found[entry.path().stem().string()] = Json::parse(std::ifstream(entry.path()));
    }
    return found;
  }();
  return schemas;
}

std::string schema_name(const std::vector<std::string>& arguments) {
  std::string words;
  std::string name;
  for (const auto& argument : arguments) {
    if (argument.starts_with('-'))
      break;
    words += (words.empty() ? "" : "-") + argument;
    if (json_schemas().contains(words))
      name = words;
  }
  return name;
}

std::string violation(const Json& value, const Json& schema) {
  return Checker(schema).check(value, schema, "$");
}

void require_schema(const std::vector<std::string>& arguments, const std::string& output) {
  const auto name = schema_name(arguments);
  const auto require = [&](const Json& value) {
    const auto why =
        name.empty() ? "there is no schema" : violation(value, json_schemas().at(name));
    if (!why.empty())
      throw std::runtime_error(fmt::format("docs/reference/json/{}.json: {}", name, why));
  };
  if (Json::accept(output)) {
    require(Json::parse(output));
    return;
  }
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    require(Json::parse(line));
}

}  // namespace pawl::testing
