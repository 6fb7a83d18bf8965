#pragma once

#include <string>

#include "engine/last_step.hpp"
#include "ledger/idempotency_keys.hpp"

namespace pawl::engine {

/// Ends a transaction whose message moves no offset: it is another owner's by now.
class UnplacedStep final : public LastStep {
 public:
  explicit UnplacedStep(const ledger::IdempotencyKeys& keys) : keys_(keys) {}

  void request(postgres::Request& request, const std::string& /*transaction*/,
               ledger::Outcome /*outcome*/) const override {
    keys_.name_open_transaction(request);
  }
  [[nodiscard]] bool names_transaction() const override { return false; }
  [[nodiscard]] bool respects_parking() const override { return false; }
  [[nodiscard]] bool may_leave_out() const override { return false; }

 private:
  const ledger::IdempotencyKeys& keys_;
};

}  // namespace pawl::engine
