#include "message/condition.hpp"

#include "message/message_error.hpp"
#include "message_builder.hpp"
#include "prelude.hpp"

using namespace pawl::message;

namespace {

bool matches(std::string_view text, const MessageBuilder& builder) {
  const Condition condition = Condition::parse(text);
  return with(builder, [&](const pawl::Message& message, JsonView& json) {
    return condition.matches(message, json);
  });
}

const MessageBuilder& refund() {
  static const MessageBuilder builder = valued(R"({"id": 7, "state": "draft", "none": null,
    "same": "refund", "empty": "", "flag": true})")
                                            .header("type", "refund")
                                            .header("null", std::nullopt);
  return builder;
}

}  // namespace

TEST_CASE("comparisons compare text") {
  CHECK(matches(R"({header:type} == "refund")", refund()));
  CHECK(matches(R"({header:type}=="refund")", refund()));
  CHECK(matches(R"("refund" == {header:type})", refund()));
  CHECK(matches(R"({header:type} == 'refund')", refund()));
  CHECK_FALSE(matches(R"({header:type} == "Refund")", refund()));
  CHECK_FALSE(matches(R"({header:type} != "refund")", refund()));
  CHECK(matches(R"({header:type} != "payment")", refund()));
  CHECK(matches(R"({header:type} == {/same})", refund()));
  CHECK(matches(R"({/id} == "7")", refund()));
  CHECK_FALSE(matches(R"({/id} == "7.0")", refund()));
  CHECK(matches(R"({/flag} == "true")", refund()));
  CHECK(matches(R"({/empty} == "")", refund()));
  CHECK(matches(R"({topic} == "payments")", refund()));
  CHECK(matches(R"({header:nothing|/state} == "draft")", refund()));
}

TEST_CASE("in looks for the text in a list") {
  CHECK(matches(R"({header:type} in ["payment", "refund"])", refund()));
  CHECK(matches(R"({header:type} in ["refund"])", refund()));
  CHECK_FALSE(matches(R"({header:type} in ["payment",'chargeback'])", refund()));
  CHECK_FALSE(matches(R"(!({header:type} in ["refund"]))", refund()));
}

TEST_CASE("what is missing or null equals nothing, not even itself") {
  for (const auto* source : {"{/nothing}", "{/none}", "{header:nothing}", "{header:null}"}) {
    const std::string name{source};
    CAPTURE(name);
    CHECK_FALSE(matches(name + R"( == "")", refund()));
    CHECK_FALSE(matches(name + R"( == "null")", refund()));
    CHECK(matches(name + R"( != "")", refund()));
    CHECK_FALSE(matches(name + " == " + name, refund()));
    CHECK(matches(name + " != " + name, refund()));
    CHECK_FALSE(matches(name + R"( in ["", "x"])", refund()));
    CHECK_FALSE(matches("has(" + name + ")", refund()));
  }
  CHECK(matches("has({/empty})", refund()));
  CHECK(matches("has({header:nothing|/id})", refund()));
  CHECK(matches("!has({value})", MessageBuilder{}.value(std::nullopt)));
  CHECK_FALSE(matches("has({/id})", MessageBuilder{}.value(std::nullopt)));
}

TEST_CASE("&& binds tighter than ||, ! tighter than both, parentheses tightest") {
  const std::string yes = R"({/id} == "7")";
  const std::string no = R"({/id} == "8")";
  CHECK(matches(yes + " || " + no + " && " + no, refund()));
  CHECK_FALSE(matches("(" + yes + " || " + no + ") && " + no, refund()));
  CHECK(matches("!" + no, refund()));
  CHECK(matches("!" + no + " && " + yes, refund()));
  CHECK(matches("!(" + no + " || " + no + ")", refund()));
  CHECK(matches("!!" + yes, refund()));
  CHECK(matches("! ! !( " + no + " )", refund()));
  CHECK(matches(no + "||" + no + "||" + yes, refund()));
  CHECK_FALSE(matches(yes + " && " + yes + " && " + no, refund()));
}

TEST_CASE("texts take escapes") {
  const auto builder = MessageBuilder{}.header("h", "a\"b'c\\d\n\r\te");
  CHECK(matches(R"({header:h} == "a\"b'c\\d\n\r\te")", builder));
  CHECK(matches(R"({header:h} == 'a"b\'c\\d\n\r\te')", builder));
}

TEST_CASE("JSON is parsed only where the outcome hangs on it") {
  const auto broken = valued("not json").header("type", "refund");
  CHECK_FALSE(matches(R"({header:type} == "payment" && {/id} == "7")", broken));
  CHECK(matches(R"({header:type} == "refund" || {/id} == "7")", broken));
  CHECK_THROWS_AS(matches(R"({header:type} == "refund" && {/id} == "7")", broken), JsonError);
  CHECK_THROWS_AS(matches("has({/id})", broken), JsonError);
}

TEST_CASE("a condition that cannot be understood is refused at its column with what to do") {
  struct Refused {
    std::string_view text;
    std::size_t column;
    std::string_view problem;
  };
  for (const Refused& refused : std::initializer_list<Refused>{
           {"", 1, "empty"},
           {"   ", 4, "empty"},
           {R"({header:type} = "x")", 15, "Write =="},
           {R"({/a} > "1")", 6, "no order"},
           {R"({/a} == 1)", 9, "Put quotes"},
           {R"({/a} == true)", 9, "Put quotes"},
           {R"({/a} == refund)", 9, "Put quotes"},
           {R"({/a} == )", 9, "ends too early"},
           {R"({/a})", 5, "ends too early"},
           {R"({/a} == "x)", 9, "not closed"},
           {R"({/a} == "x\q")", 11, "unknown escape"},
           {R"({/a} == "x\)", 11, "unknown escape"},
           {R"({/a} == "x" and {/b} == "y")", 13, "Write &&, ||, and !"},
           {R"(not {/a} == "x")", 1, "Write &&, ||, and !"},
           {R"({/a} == "x" & {/b} == "y")", 13, "&& for and"},
           {R"({/a} == "x" {/b} == "y")", 13, "&&, ||, or the end"},
           {R"(({/a} == "x")", 13, "not closed"},
           {R"({/a} == "x"))", 12, "&&, ||, or the end"},
           {R"("a" == "b")", 1, "two constants"},
           {R"("a" in ["a"])", 1, "two constants"},
           {R"({/a} in "x")", 9, "requires a list"},
           {R"({/a} in ["x")", 13, "list is not closed"},
           {R"({/a} in [])", 10, "strings in quotes"},
           {R"({/a} in [{/b}])", 10, "strings in quotes"},
           {R"(present({/a}))", 1, "has({...})"},
           {R"(has {/a})", 5, "has({...})"},
           {R"(has("a"))", 5, "requires a placeholder"},
           {R"(refund == {/a})", 1, "quote"},
           {R"({/a} == {/b)", 9, "placeholder is not closed"},
           {R"({nothing} == "x")", 2, "unknown source"},
           {R"(ü)", 1, "a placeholder or a string"},
       }) {
    CAPTURE(refused.text);
    try {
      (void)Condition::parse(refused.text);
      FAIL("accepted");
    } catch (const SyntaxError& error) {
      CHECK(error.column() == refused.column);
      CHECK_THAT(error.problem(), ContainsSubstring(std::string{refused.problem}));
      CHECK_THAT(error.problem(), ContainsSubstring("Write") || ContainsSubstring("Put") ||
                                      ContainsSubstring("Use"));
    }
  }
}

TEST_CASE("a condition nested beyond reason is refused without harm") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + R"({/id} == "7")" + std::string(depth, ')');
  };
  CHECK(matches(nested(50), refund()));
  CHECK_THROWS_AS(Condition::parse(nested(1000)), ConditionError);
  CHECK_THROWS_AS(Condition::parse(std::string(1000000, '(')), ConditionError);
  CHECK(matches(std::string(100000, '!') + R"({/id} == "7")", refund()));
}
