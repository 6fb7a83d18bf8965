#include "message/template.hpp"

#include "prelude.hpp"

using namespace pawl::message;

namespace {

struct Refused {
  std::string_view text;
  std::size_t column;
  std::string_view problem;
};

void check_refused(const Refused& refused, Template (*parse)(std::string_view)) {
  CAPTURE(refused.text);
  try {
    (void)parse(refused.text);
    FAIL("accepted");
  } catch (const TemplateError& error) {
    CHECK(error.column() == refused.column);
    CHECK(error.line() == 1);
    CHECK_THAT(error.problem(), ContainsSubstring(std::string{refused.problem}));
    CHECK_THAT(error.problem(), ContainsSubstring("Write") || ContainsSubstring("Remove") ||
                                    ContainsSubstring("Use") || ContainsSubstring("Put") ||
                                    ContainsSubstring("Close"));
  }
}

}  // namespace

TEST_CASE("templates of every source are understood") {
  for (const auto* text : {"{header:event-id}",
                           "{key}",
                           "{value}",
                           "{/order/id}",
                           "{/}",
                           "{/a~1b/0}",
                           "{topic}",
                           "{partition}",
                           "{offset}",
                           "{timestamp}",
                           "{topic_id}",
                           "{sha256:value}",
                           "{sha256:/a}",
                           "{sha256:header:x}",
                           "{header:a|/b|sha256:value}",
                           "{/x?}",
                           "{/a|/b?}",
                           "order:{/tenantId}:{/orderId}",
                           "{{literal}}{/a}",
                           "no placeholder",
                           "",
                           "{header:sha256:x}",
                           "{header:with blank}",
                           "{header:\\ edge\\ }",
                           "{/a b}",
                           "{/odd\\|name\\}\\?\\{\\\\}"}) {
    CAPTURE(text);
    CHECK_NOTHROW(Template::parse(text));
    CHECK(Template::parse(text).text() == text);
  }
}

TEST_CASE("any name can stand in a placeholder") {
  const std::string name =
      GENERATE("plain", "active?", "a|b", "{", "}", "a{b}c", "back\\slash", "\\", " ", "  ",
               " edge ", "in between", "?", "quo\"te", "ap'os", "line\nbreak", "$ref", "${HOME}",
               "\xC3\xBC", "~1", "a/b", "");
  CAPTURE(name);
  const auto of_member = "{" + Placeholder::escaped("/" + JsonPointer::escaped(name)) + "}";
  const auto member = Template::parse(of_member);
  const auto& tokens = member.placeholders().front()->sources().front().pointer.tokens();
  REQUIRE(tokens.size() == 1);
  CHECK(tokens.front().name == name);
  CHECK_FALSE(member.placeholders().front()->is_optional());
  if (!name.empty()) {
    const auto header = Template::parse("{" + Placeholder::escaped("header:" + name) + "}");
    CHECK(header.placeholders().front()->sources().front().header == name);
  }
}

TEST_CASE("a template that cannot be understood is refused at its column with what to do") {
  for (const Refused& refused : std::initializer_list<Refused>{
           {"{event-id}", 2, "Use header:event-id for a header, /event-id for a field"},
           {"order:{id}", 8, "unknown source \"id\""},
           {"{Header:x}", 2, "unknown source"},
           {"{header:}", 9, "header's name is missing"},
           {"{}", 2, "a source is missing"},
           {"{|key}", 2, "a source is missing"},
           {"{key|}", 6, "a source is missing"},
           {"{key", 1, "not closed"},
           {"abc{", 4, "not closed"},
           {"{key\\", 1, "not closed"},
           {"{key|/a", 1, "not closed"},
           {"{key?", 1, "not closed"},
           {"a}", 2, "} without its {"},
           {"{key}}", 6, "} without its {"},
           {"{ key}", 2, "space"},
           {"{key }", 5, "space"},
           {"{key | value}", 5, "space"},
           {"{key?|value}", 5, "? must be at the end"},
           {"{key??}", 5, "? must be at the end"},
           {"{a{b}", 3, "{ inside a placeholder"},
           {"{/a~2}", 4, "~ in a JSON pointer"},
           {"{/\\|~}", 5, "~ in a JSON pointer"},
           {"{sha256:sha256:value}", 9, "twice"},
           {"{sha256:}", 9, "a source is missing"},
           {"{sha256:/~}", 10, "~ in a JSON pointer"},
           {"{/a\\b}", 4, "backslash in a placeholder"},
           {"üü{x}", 4, "unknown source \"x\""},
       }) {
    check_refused(refused, &Template::parse);
  }
}

TEST_CASE("a key template that cannot tell messages apart is refused") {
  for (const Refused& refused : std::initializer_list<Refused>{
           {"", 1, "same key"},
           {"constant", 1, "same key"},
           {"{topic}", 1, "same key"},
           {"{topic}:{partition}", 1, "same key"},
           {"{topic_id}", 1, "same key"},
           {"{timestamp}", 1, "same key"},
           {"{header:event-id|topic}", 1, "same key"},
           {"{offset}", 1, "{topic_id}:{partition}:{offset}"},
           {"{topic}:{partition}:{offset}", 1, "{topic_id}:{partition}:{offset}"},
           {"{header:id|offset}", 1, "{topic_id}:{partition}:{offset}"},
           {"{/a}{/b}", 5, "is ambiguous"},
           {"{/a}:{/b}{/c}", 10, "is ambiguous"},
           {"{/a}\\{/b}", 6, "not starting with a backslash"},
       }) {
    check_refused(refused, &Template::parse_key);
  }
  for (const auto* text :
       {"{key}", "{topic_id}:{partition}:{offset}", "pay:{/id}:{/b?}",
        "{topic}/{header:event-id|sha256:value}", "a\\{/x}\\", "{key}:{timestamp}"}) {
    CAPTURE(text);
    CHECK_NOTHROW(Template::parse_key(text));
  }
}

TEST_CASE("an error in a text of several lines names the line") {
  try {
    (void)Template::parse("one\ntwo {x}");
    FAIL("accepted");
  } catch (const TemplateError& error) {
    CHECK(error.position() == TextPosition{2, 6});
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith("line 2, column 6: unknown source"));
  }
}
