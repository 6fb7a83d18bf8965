#include "message/entity_key.hpp"

#include "prelude.hpp"

using namespace pawl::message;

TEST_CASE("a key of nothing but ids of things is noticed") {
  const auto* text = GENERATE(
      "{key}", "{header:customer-id}", "{header:X-Customer-Id}", "{/customerId}", "{/account_id}",
      "{/user/id}", "{/data/accountNumber}", "order:{/orderId}", "{/tenantId}:{/customer/id}",
      "{topic}:{key}", "{sha256:key}", "{key|/customerId}", "{/sku}", "{sha256:/userId}");
  CAPTURE(text);
  CHECK(entity_in_key(Template::parse_key(text)));
}

TEST_CASE("a key that may tell events apart is left alone") {
  const auto* text = GENERATE(
      "{header:event-id}", "{/eventId}", "{/id}", "{/event/id}", "{header:idempotency-key}",
      "{header:message-id}", "{/uuid}", "{/requestId}", "{/transactionId}", "{/payment/id}",
      "{/paymentId}", "{header:ce_id}", "{value}", "{sha256:value}", "{/customerId}:{/version}",
      "{key}:{timestamp}", "{header:event-id|/customerId}", "{/orderId}:{/status}",
      "{topic_id}:{partition}:{offset}", "{/userAgent}", "{/ordering}", "{/orderEventId}");
  CAPTURE(text);
  CHECK_FALSE(entity_in_key(Template::parse_key(text)));
}

TEST_CASE("what was noticed is named as the template has it") {
  CHECK(entity_in_key(Template::parse_key("{/tenantId}:{key}")) == "{/tenantId}, {key}");
}
