#include "cli/tail_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/partition_view.hpp"
#include "dead_letters/dlq.hpp"
#include "handlers/handler_statement.hpp"
#include "kafka/log_reader.hpp"
#include "ledger/instant.hpp"
#include "message/json.hpp"

namespace pawl::cli {
namespace {

constexpr std::int64_t kMostRecords = 20;
constexpr std::size_t kMostBytes = 200;

}  // namespace

PassedMessages::PassedMessages(const Options& options, const Registry& registry, bool values)
    : options_(options), router_(options, registry), values_(values) {}

std::vector<TailLine> PassedMessages::read(const TailLine& advanced) {
  std::vector<TailLine> lines;
  if (!advanced.passed || !advanced.partition)
    return lines;
  const auto [first, last] = *advanced.passed;
  const auto omit = [&](std::int64_t from, std::string text, Json details) {
    TailLine line{advanced.time, "messages_omitted", advanced.partition, std::move(text),
                  std::move(details)};
    line.subject = fmt::format("{}-{}", name_of(*advanced.partition, from), last);
    lines.push_back(std::move(line));
  };
  auto next = first;
  try {
    if (!client_)
      client_ = make_client(options_);
    kafka::LogReader reader(*client_, *advanced.partition, first, kKafkaTimeout);
    while (std::ssize(lines) < kMostRecords && next <= last) {
      const auto record = reader.next();
      if (!record || record->offset() > last) {
        next = last + 1;
        break;
      }
      next = record->offset() + 1;
      lines.push_back(describe(advanced, record->view(advanced.partition->topic, "")));
    }
  } catch (const kafka::KafkaError& error) {
    omit(next, fmt::format("cannot be read: {}", error.what()),
         {{"first_offset", next}, {"last_offset", last}, {"problem", error.what()}});
    client_.reset();
    return lines;
  }
  if (next <= last) {
    omit(next, counted(last - next + 1, "offset", "offsets") + " omitted",
         {{"first_offset", next}, {"last_offset", last}, {"omitted", last - next + 1}});
  }
  return lines;
}

TailLine PassedMessages::describe(const TailLine& advanced, const Message& message) const {
  const auto value = message.has_value() ? std::optional(message.value()) : std::nullopt;
  // Its form shows as long as it is not cut.
  const auto decoded = decode(value, value ? value->size() : 0);
  std::string handler;
  std::string unrouted;
  try {
    message::JsonReader reader;
    message::JsonView json(reader, message);
    if (const auto* binding = router_.route(message, json))
      handler = handlers::handler_text(binding->label);
  } catch (const std::runtime_error& error) {
    unrouted = error.what();
  }
  const auto time =
      message.timestamp()
          ? ledger::to_string(ledger::Instant(message.timestamp()->time_since_epoch()))
          : std::string("no timestamp");
  const auto key = message.key() ? std::optional(std::string(*message.key())) : std::nullopt;
  TailLine line{advanced.time, "message", advanced.partition, ""};
  line.subject = name_of(*advanced.partition, message.offset());
  line.text = fmt::format("{}  key={}  {}  {}", date_time(time), key_text(key, std::nullopt),
                          handler.empty() ? "no handler" : handler,
                          values_ ? to_text(decode(value, kMostBytes))
                                  : fmt::format("{}, {}", decoded.form, size_text(decoded)));
  line.details = {{"offset", message.offset()},
                  {"timestamp", or_null(message.timestamp())},
                  {"key", readable(message.key(), kMostBytes)},
                  {"form", decoded.form},
                  {"value_bytes", value ? Json(value->size()) : Json(nullptr)},
                  {"handler", or_null(handler)}};
  if (values_)
    line.details["value"] = readable(value, kMostBytes);
  return line;
}

}  // namespace pawl::cli
