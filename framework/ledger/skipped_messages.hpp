#pragma once

#include <optional>
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
  /// `halt`: the halt that the message caused; nullopt: there was none.
  [[nodiscard]] postgres::Request record(const Message& message, const std::string& reason,
                                         bool with_payload,
                                         const std::optional<Halt>& halt = std::nullopt) const;

 private:
  ConsumerId consumer_;
  postgres::Statement record_;
};

}  // namespace pawl::ledger
