#include "engine/order_of.hpp"

namespace pawl::engine {

MessageOrder order_of(const handlers::Router& router, const Message& message,
                      message::JsonView& json, bool together) {
  MessageOrder order;
  if (!together)
    order.key = "";
  try {
    order.binding = router.route(message, json);
    if (together && order.binding != nullptr && order.binding->order_by) {
      const auto rendered = order.binding->order_by->render_key(message, json);
      if (const auto* key = std::get_if<message::KeyText>(&rendered))
        order.key = key->text;
    }
  } catch (const std::exception&) {
    // Its value is not JSON; its handler says whether that is wrong. A record key that is parked
    // for it holds back the later ones.
    if (together && message.key())
      order.key = *message.key();
  }
  return order;
}

}  // namespace pawl::engine
