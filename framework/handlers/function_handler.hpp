#pragma once

#include <string>
#include <vector>

#include "handlers/handler.hpp"
#include "handlers/handler_statement.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// Calls a database function with the message:
/// f(topic text, "partition" integer, "offset" bigint, key bytea, value bytea, headers jsonb,
///   timestamp_ms bigint). A tombstone's value and a null key are NULL; headers are an object of
/// name to text, the last of a name counts, values that are not UTF-8 are null. Whatever the
/// function returns is ignored.
class FunctionHandler final : public Handler {
 public:
  /// `function` is an SQL name, possibly schema-qualified; validated with the configuration.
  FunctionHandler(const HandlerPlace& place, const std::string& function, SourceLocation where);

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  [[nodiscard]] std::vector<DescribedStatement> statements() const override;

 private:
  std::string label_;
  SourceLocation where_;
  postgres::Statement statement_;
};

}  // namespace pawl::handlers
