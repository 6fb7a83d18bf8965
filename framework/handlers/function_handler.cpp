#include "handlers/function_handler.hpp"
#include "message/timestamp.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <atomic>
#include <nlohmann/json.hpp>

namespace pawl::handlers {
namespace {

std::string headers_json(const Message& message) {
  auto headers = nlohmann::json::object();
  for (const auto& header : message.headers()) {
    const bool is_text = header.value &&
                         simdjson::validate_utf8(header.value->data(), header.value->size()) &&
                         header.value->find('\0') == std::string_view::npos;
    headers[std::string(header.name)] =
        is_text ? nlohmann::json(std::string(*header.value)) : nlohmann::json(nullptr);
  }
  return headers.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

FunctionHandler::FunctionHandler(const HandlerPlace& place, const std::string& function,
                                 SourceLocation where)
    : label_(fmt::format("{}.function {}{}", handler_option(place.index), function,
                         place.name.empty() ? "" : fmt::format(" ({})", place.name))),
      where_(std::move(where)) {
  static std::atomic<unsigned> next_number{0};
  statement_ = postgres::application_statement(
      fmt::format("pawl_function_{}", next_number++),
      fmt::format("SELECT {}($1::text, $2::integer, $3::bigint, $4::bytea, $5::bytea,"
                  " $6::jsonb, $7::bigint)",
                  function));
}

Response FunctionHandler::apply(postgres::Frame& frame, const Message& message,
                                message::JsonView& /*json*/) const {
  postgres::Parameters parameters;
  parameters.add_text(message.topic());
  parameters.add_integer(message.partition());
  parameters.add_integer(message.offset());
  parameters.add_optional_bytes(message.key());
  if (message.has_value()) {
    parameters.add_bytes(message.value());
  } else {
    parameters.add_null();
  }
  parameters.add_text(headers_json(message));
  parameters.add_integer(message::milliseconds_of(message.timestamp()));
  frame.defer(statement_, std::move(parameters), std::nullopt, "function");
  return std::nullopt;
}

std::vector<DescribedStatement> FunctionHandler::statements() const {
  return {{label_, statement_.text, 7, where_}};
}

}  // namespace pawl::handlers
