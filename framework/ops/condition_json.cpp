#include "ops/condition_json.hpp"

#include "message/rfc3339.hpp"

namespace pawl::ops {

nlohmann::ordered_json condition_json(const Condition& condition) {
  using Json = nlohmann::ordered_json;
  return {
      {"kind", to_string(condition.kind)},
      {"subject", condition.subject},
      {"since", message::rfc3339(condition.since)},
      {"messages", condition.messages},
      {"cause", condition.cause},
      {"lasting", condition.lasting},
      {"blocking_pid", condition.blocking_pid == 0 ? Json(nullptr) : Json(condition.blocking_pid)}};
}

}  // namespace pawl::ops
