#pragma once

#include <string>

#include "ledger/types.hpp"
#include "pawl/message.hpp"
#include "postgres/request.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// pawl.skipped_messages: messages at or below the stored offset that were not applied, on purpose.
/// Written in the transaction that moves the offset past them.
class SkippedMessages {
 public:
  SkippedMessages(const std::string& schema, ConsumerId consumer);

  /// `with_payload` keeps key, value and headers, so that an operator's skip loses nothing.
  /// `halt_reason`: why the partition had halted before it; empty: it had not.
  [[nodiscard]] postgres::Request record(const Message& message, const std::string& reason,
                                         bool with_payload,
                                         const std::string& halt_reason = {}) const;

 private:
  ConsumerId consumer_;
  postgres::Statement record_;
};

}  // namespace pawl::ledger
