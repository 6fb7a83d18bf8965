#pragma once

#include <utility>

#include "handlers/leased_handler.hpp"

namespace pawl::handlers {

/// C++ functions that the program registered by name.
class LeasedCodeHandler final : public LeasedHandler {
 public:
  explicit LeasedCodeHandler(pawl::LeasedHandler functions) : functions_(std::move(functions)) {}

  Response call(Lease& lease, const Message& message) const override;
  Found reconcile(Lease& lease, const Message& message) const override;
  [[nodiscard]] bool has_record() const override { return functions_.record != nullptr; }
  void record(pqxx::dbtransaction& transaction, const Message& message,
              const Response& response) const override;

 private:
  pawl::LeasedHandler functions_;
};

}  // namespace pawl::handlers
