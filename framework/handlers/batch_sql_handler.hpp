#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "handlers/batch_handler.hpp"
#include "handlers/handler_statement.hpp"
#include "message/template.hpp"
#include "pawl/options.hpp"
#include "postgres/statement.hpp"

namespace pawl::handlers {

/// Statements from the configuration whose placeholders are arrays with one element a message. They
/// travel to the server together with the advance and COMMIT.
class BatchSqlHandler final : public BatchHandler {
 public:
  /// As SqlHandler.
  BatchSqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                  std::size_t max_response, const std::string& schema);

  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const override;
  void collect(const Message& message, message::JsonView& json,
               BatchColumns& columns) const override;
  std::vector<Response> apply_batch(postgres::Frame& frame,
                                    const BatchMessages& batch) const override;
  [[nodiscard]] bool stores_responses() const override { return stores_responses_; }
  [[nodiscard]] std::vector<DescribedStatement> statements() const override;

 private:
  struct Entry {
    std::string name;  ///< of WrittenStatement
    std::string label;
    postgres::Statement statement;
    std::vector<std::size_t> columns;  ///< of its parameters, in values_
    SourceLocation where;
    std::string response;  ///< the text that gives them; empty: it gives none
  };

  struct Value {
    message::Template rendered;
    bool is_record;  ///< may_be_bytes(): taken from the message once its type is known
  };

  std::size_t column_of(message::Template value);
  [[nodiscard]] std::string array_of(const Entry& entry, const postgres::ParameterTypes& types,
                                     std::size_t parameter, const BatchMessages& batch) const;
  [[nodiscard]] DescribedStatement described(const Entry& entry) const;

  std::vector<Value> values_;  // each once, however often the statements name it
  std::vector<Entry> entries_;
  bool stores_responses_ = false;
};

}  // namespace pawl::handlers
