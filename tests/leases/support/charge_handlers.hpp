#pragma once

#include "pawl/handler.hpp"

namespace pawl::test {

/// Leased handlers of the test consumer that charge by PaymentApi, at PAWL_TEST_API ("host:port"):
/// "charge", "charge_and_record", which enters the payment in the books as well, and
/// "charge_record_fails", whose record refuses ids that begin with "poison" while app.refuses has a
/// row.
void add_charge_handlers(Registry& registry);

}  // namespace pawl::test
