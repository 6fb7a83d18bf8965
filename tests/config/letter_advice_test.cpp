#include "config/letter_advice.hpp"

#include "config/invocation.hpp"
#include "prelude.hpp"

using namespace pawl;

TEST_CASE("letters that died of the same have the same text but for the command") {
  InvocationOptions invocation;
  invocation.config_file = "my file.toml";
  invocation.overrides = {"kafka.group=other"};
  const std::string why = "error: relation is gone; look at it: then go on";
  const auto advice = letter_advice(invocation, 17);
  CHECK(advice == "; look at it: pawl dlq show --config 'my file.toml' --set kafka.group=other 17");
  CHECK(without_letter_advice(why + advice) == why);
  CHECK(without_letter_advice(why) == why);
  CHECK(without_letter_advice("").empty());
}
