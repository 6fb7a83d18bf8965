#pragma once

#include <cstdint>
#include <string>

#include "payments_world.hpp"

namespace pawl::test {

/// Every committed move of a stored offset, kept by a trigger in the world's database: nothing
/// between two looks at the register can go unnoticed. Begins with the object.
class RegisterMoves {
 public:
  explicit RegisterMoves(const PaymentsWorld& world);

  /// Moves that went back, skipped what another move had not reached, or were made under an epoch
  /// older than that of an earlier move of the partition. Empty: none.
  [[nodiscard]] std::string violations() const;
  [[nodiscard]] std::int64_t made_by(const std::string& owner) const;
  /// Processes that have moved something.
  [[nodiscard]] std::int64_t movers() const;

 private:
  const PaymentsWorld& world_;
};

}  // namespace pawl::test
