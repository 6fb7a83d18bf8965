#include "cli/message_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "console/json_integer.hpp"
#include "message/base64.hpp"
#include "message/json.hpp"
#include "message/json_pointer.hpp"

namespace pawl::cli {
namespace {

[[noreturn]] void wrong(const std::string& path, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", path, what));
}

/// What stands at a place of a document, byte for byte: a number keeps all of its digits.
class Raw {
 public:
  Raw(const std::string& text, const std::string& path) {
    try {
      reader_.read(text);
    } catch (const message::JsonError& error) {
      wrong(path, error.what());
    }
  }
  [[nodiscard]] std::string at(const std::string& pointer) const {
    return std::string(reader_.find(message::JsonPointer::parse(pointer)).value().raw());
  }

 private:
  message::JsonReader reader_;
};

/// `pointer`: where it stands in `raw`.
std::optional<std::string> bytes_of(const Json& json, const Raw& raw, const std::string& pointer,
                                    const std::string& path, const std::string& place) {
  if (json.is_null())
    return std::nullopt;
  if (json.is_string())
    return json.get<std::string>();
  if (json.is_object() && json.size() == 1 && json.contains("base64")) {
    if (!json["base64"].is_string())
      wrong(path, place + ".base64 is not a string");
    try {
      return message::from_base64(json["base64"].get<std::string>());
    } catch (const std::invalid_argument& error) {
      wrong(path, fmt::format("{}.base64: {}", place, error.what()));
    }
  }
  return raw.at(pointer);
}

template <typename Number>
Number number_of(const Json& json, const char* name, const std::string& path) {
  if (!json.contains(name) || json[name].is_null())
    return 0;
  try {
    return integer_from<Number>(json[name], name);
  } catch (const std::invalid_argument& error) {
    wrong(path, error.what());
  }
}

}  // namespace

MessageFile MessageFile::parse(const std::string& text, const std::string& path) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    wrong(path, fmt::format("is not JSON, at byte {}", error.byte));
  }
  if (!json.is_object())
    wrong(path,
          R"(is not a JSON object, such as { "topic": "payments", "value": { "amount": 7 } })");
  const Raw raw(text, path);
  static const std::vector<std::string> kKnown{"topic",     "topic_id", "partition",
                                               "offset",    "key",      "value",
                                               "timestamp", "headers",  "value_bytes"};
  for (const auto& [name, member] : json.items()) {
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
      wrong(path, fmt::format("{} is not known; a message has topic, topic_id, partition, "
                              "offset, timestamp, key, value, and headers",
                              name));
  }
  if (!json.contains("topic") || !json["topic"].is_string())
    wrong(path, "topic is missing. It determines the handler of the message");
  if (!json.contains("value"))
    wrong(path, "value is missing. A tombstone is \"value\": null");
  MessageFile file;
  file.topic_ = json["topic"].get<std::string>();
  if (json.contains("topic_id") && !json["topic_id"].is_null()) {
    if (!json["topic_id"].is_string())
      wrong(path,
            "topic_id is not a string. Use the base64 form of Kafka, as printed by `partitions "
            "peek`");
    file.topic_id_ = json["topic_id"].get<std::string>();
  }
  file.partition_ = number_of<std::int32_t>(json, "partition", path);
  file.offset_ = number_of<std::int64_t>(json, "offset", path);
  try {
    file.timestamp_ = timestamp_from(json.value("timestamp", Json(nullptr)));
  } catch (const std::invalid_argument& error) {
    wrong(path, error.what());
  }
  if (json.contains("key"))
    file.key_ = bytes_of(json["key"], raw, "/key", path, "key");
  file.value_ = bytes_of(json["value"], raw, "/value", path, "value");
  const auto headers = json.value("headers", Json::array());
  if (headers.is_object()) {
    for (const auto& [name, value] : headers.items())
      file.headers_.emplace_back(
          name, bytes_of(value, raw, "/headers/" + message::JsonPointer::escaped(name), path,
                         "headers." + name));
  } else if (headers.is_array()) {
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const auto place = fmt::format("headers[{}]", i);
      const auto& header = headers[i];
      if (!header.is_object() || !header.contains("name") || !header["name"].is_string())
        wrong(path, place + R"( is none, such as { "name": "event-id", "value": "e-1" })");
      file.headers_.emplace_back(
          header["name"].get<std::string>(),
          bytes_of(header.value("value", Json(nullptr)), raw, fmt::format("/headers/{}/value", i),
                   path, place + ".value"));
    }
  } else {
    wrong(path, R"(headers are none, such as { "event-id": "e-1" })");
  }
  return file;
}

Message MessageFile::view() const {
  views_.clear();
  for (const auto& [name, value] : headers_)
    views_.push_back({name, value ? std::optional<std::string_view>(*value) : std::nullopt});
  MessageFields fields;
  fields.topic = topic_;
  fields.topic_id = topic_id_;
  fields.partition = partition_;
  fields.offset = offset_;
  if (key_)
    fields.key = *key_;
  if (value_)
    fields.value = *value_;
  fields.headers = views_;
  fields.timestamp = timestamp_;
  return Message(fields);
}

}  // namespace pawl::cli
