#include "pawl/publish.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "message/base64.hpp"
#include "pawl/defer.hpp"
#include "postgres/frame.hpp"

namespace pawl {
namespace {

std::string statement(std::string_view schema) {
  return fmt::format("SELECT {}.publish($1::text, $2::bytea, $3::bytea, $4::jsonb, $5::text)",
                     schema);
}

void append(pqxx::params& parameters, const std::optional<std::string_view>& bytes) {
  if (bytes)
    parameters.append(pqxx::binary_cast(*bytes));
  else
    parameters.append();
}

/// As pawl.publish takes headers that keep their order.
std::string headers_of(const Outgoing& message) {
  auto headers = nlohmann::json::array();
  for (const auto& header : message.headers) {
    auto& entry = headers.emplace_back();
    entry["name"] = header.name;
    if (header.value)
      entry["base64"] = message::base64(*header.value);
    else
      entry["value"] = nullptr;
  }
  return headers.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

pqxx::params parameters_of(const Outgoing& message) {
  pqxx::params parameters;
  parameters.append(message.topic);
  append(parameters, message.key);
  append(parameters, message.value);
  if (message.headers.empty())
    parameters.append();
  else
    parameters.append(headers_of(message));
  if (message.event_id.empty())
    parameters.append();
  else
    parameters.append(message.event_id);
  return parameters;
}

}  // namespace

void publish(pqxx::dbtransaction& tx, const Outgoing& message, std::string_view schema) {
  if (dynamic_cast<postgres::Frame*>(&tx) != nullptr)
    defer(tx, statement(schema), parameters_of(message));
  else
    tx.exec(statement(schema), parameters_of(message));
}

void publish(Statements& statements, const Outgoing& message, std::string_view schema) {
  statements.add(statement(schema), parameters_of(message));
}

}  // namespace pawl
