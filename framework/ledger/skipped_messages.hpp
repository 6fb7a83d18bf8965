#pragma once

#include <string>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/parameters.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// pawl.skipped_messages: messages at or below the stored offset that were not applied, on purpose.
/// Written in the transaction that moves the offset past them.
class SkippedMessages {
 public:
  SkippedMessages(const std::string& schema, ConsumerId consumer);

  [[nodiscard]] const postgres::Statement& record_statement() const { return record_; }
  /// `with_payload` keeps key, value and headers, so that an operator's skip loses nothing.
  void fill(postgres::Parameters& parameters, const Message& message, const std::string& reason,
            bool with_payload) const;

 private:
  ConsumerId consumer_;
  postgres::Statement record_;
};

}  // namespace pawl::ledger
