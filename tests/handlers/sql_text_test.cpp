#include "handlers/sql_text.hpp"

#include <fmt/format.h>

#include "prelude.hpp"

using namespace pawl::handlers;
using namespace pawl::message;

namespace {

std::string sql_of(std::string_view text) {
  return SqlText::parse(text).sql();
}

std::vector<std::string> parameters_of(std::string_view text) {
  std::vector<std::string> result;
  const SqlText parsed = SqlText::parse(text);
  for (const Template& parameter : parsed.parameters()) {
    CHECK(parameter.is_single_placeholder());
    result.push_back(parameter.text());
  }
  return result;
}

struct Refused {
  std::string_view text;
  TextPosition position;
  std::string_view problem;
};

void check_refused(const Refused& refused) {
  CAPTURE(refused.text);
  try {
    (void)SqlText::parse(refused.text);
    FAIL("accepted");
  } catch (const SyntaxError& error) {
    CHECK(error.position() == refused.position);
    CHECK_THAT(error.problem(), ContainsSubstring(std::string{refused.problem}));
    CHECK_THAT(error.problem(), ContainsSubstring("Write") || ContainsSubstring("Remove") ||
                                    ContainsSubstring("Put") || ContainsSubstring("Use"));
  }
}

}  // namespace

TEST_CASE("placeholders become numbered parameters") {
  const auto* const text =
      "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, "
      "{/amount}::bigint)";
  CHECK(sql_of(text) ==
        "INSERT INTO ledger (event_id, account, amount) VALUES ($1, $2, $3::bigint)");
  CHECK(parameters_of(text) ==
        std::vector<std::string>{"{header:event-id}", "{/account}", "{/amount}"});
}

TEST_CASE("a source that repeats is a parameter of its own each time") {
  const auto* const text = "UPDATE a SET x = x + {/n?}::bigint, t = {/n?} WHERE id={header:a|/b}";
  CHECK(sql_of(text) == "UPDATE a SET x = x + $1::bigint, t = $2 WHERE id=$3");
  CHECK(parameters_of(text) == std::vector<std::string>{"{/n?}", "{/n?}", "{header:a|/b}"});
}

TEST_CASE("SQL without placeholders stays as it is") {
  for (const auto* text : {"SELECT 1",
                           "SELECT '{1,2}'::int[]",
                           "SELECT '{{1,2},{3,4}}'::int[][]",
                           R"(SELECT '{"a": {"b": 1}}'::jsonb)",
                           R"(SELECT x #>> '{"key"}' FROM t)",
                           "SELECT '{}', E'{\\'}', $$ {x $$, \"{\" -- {1}\n/* {} */",
                           "SELECT a$b FROM t",
                           "WITH x AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM x",
                           "SELECT ';' AS \"a;b\"",
                           "SELECT 'commit'",
                           "-- first\nSELECT 1",
                           "(SELECT 1)",
                           "VALUES ('{a,b}')",
                           "SET LOCAL lock_timeout = '1s'",
                           "SET CONSTRAINTS ALL IMMEDIATE",
                           "NOTIFY x, 'y'",
                           "SELECT $f$ it's {not} closed ' $f$",
                           "EXECUTE stored",
                           "SELECT 1 AS commit",
                           "CALL app.apply()",
                           "DO $$ BEGIN PERFORM 1; END $$",
                           "UPDATE t SET begin = 1"}) {
    CAPTURE(text);
    CHECK(sql_of(text) == text);
    CHECK(parameters_of(text).empty());
  }
}

TEST_CASE("doubled braces outside of quotes are literal braces") {
  CHECK(sql_of("SELECT {{ }} {/a}") == "SELECT { } $1");
}

TEST_CASE("one trailing semicolon is dropped, with what stands behind it") {
  CHECK(sql_of("SELECT 1;") == "SELECT 1");
  CHECK(sql_of("SELECT {/a} ; \n -- done; really\n") == "SELECT $1");
  CHECK(sql_of("SELECT 1 -- note\n") == "SELECT 1 -- note");
}

TEST_CASE("more than one statement, or none, is refused") {
  check_refused({"SELECT 1; SELECT 2", {1, 11}, "second statement"});
  check_refused({"SELECT 1;;", {1, 10}, "second statement"});
  check_refused({"SELECT 1;{/a}", {1, 10}, "second statement"});
  check_refused({"SELECT 1;'x'", {1, 10}, "second statement"});
  check_refused({"", {1, 1}, "empty"});
  check_refused({" -- nothing\n", {1, 1}, "empty"});
  check_refused({" ; SELECT 1", {1, 2}, "empty"});
}

TEST_CASE("a placeholder where it would be plain text is refused") {
  check_refused({"INSERT INTO t VALUES ('{/a}')", {1, 24}, "Remove the quotes"});
  check_refused({"SELECT 'x {header:y} z'", {1, 11}, "join text with ||"});
  check_refused({"SELECT\n  E'\\'{key}'", {2, 7}, "Remove the quotes"});
  check_refused({"SELECT $$ {value} $$", {1, 11}, "Remove the quotes"});
  check_refused({"SELECT '{{key}}'", {1, 10}, "'{\"key\"}'"});
  check_refused({"SELECT \"{/column}\" FROM t", {1, 9}, "a name cannot be a parameter"});
  check_refused({"SELECT 1 -- was {/a}", {1, 17}, "comment"});
  check_refused({"SELECT 1 /* {topic} */", {1, 13}, "comment"});
  check_refused({"SELECT 1; -- was {/a}", {1, 18}, "comment"});
}

TEST_CASE("a placeholder that touches a name, a number or another one is refused") {
  check_refused({"SELECT * FROM table_{/n}", {1, 21}, "touches"});
  check_refused({"SELECT {/a}{/b}", {1, 12}, "touches"});
  check_refused({"SELECT {/a}1", {1, 8}, "touches"});
  check_refused({"SELECT {/a}AS", {1, 8}, "touches"});
  check_refused({"SELECT 1{/a}", {1, 9}, "touches"});
  check_refused({"SELECT E{/a}", {1, 9}, "touches"});
  CHECK(sql_of("SELECT ({/a})+{/b}||{/c}[1]") == "SELECT ($1)+$2||$3[1]");
}

TEST_CASE(
    "a dollar quote that the configuration took for its escape is refused with what to write") {
  // $${ in a configuration is ${ here, and $$${ is $${.
  check_refused({"SELECT ${\"a\":1}$$::jsonb", {1, 8}, "Write $$${"});
  check_refused({"SELECT ${/a}$$", {1, 8}, "Write $$${"});
  CHECK(sql_of("SELECT $${\"a\":1}$$::jsonb") == "SELECT $${\"a\":1}$$::jsonb");
}

TEST_CASE("what is not closed, or numbered by hand, is refused") {
  check_refused({"SELECT 'open", {1, 8}, "string is not closed"});
  check_refused({"SELECT \"open", {1, 8}, "quoted name is not closed"});
  check_refused({"SELECT 1 /* open", {1, 10}, "comment is not closed"});
  check_refused({"SELECT $q$ open", {1, 8}, "string is not closed"});
  check_refused({"SELECT {/a", {1, 8}, "placeholder is not closed"});
  check_refused({"SELECT }", {1, 8}, "} without its {"});
  check_refused({"SELECT {amount}", {1, 9}, "unknown source"});
  check_refused({"SELECT $1", {1, 8}, "numbered parameter"});
  check_refused({std::string_view{"SELECT \0", 8}, {1, 8}, "NUL"});
  check_refused({"SELECT '\xff'", {1, 1}, "UTF-8"});
}

TEST_CASE("statements that end or alter the transaction are refused") {
  for (const std::string_view text :
       {"BEGIN", "begin work", "START TRANSACTION", "COMMIT", "Commit Prepared 'x'", "END",
        "ROLLBACK", "ROLLBACK TO s", "ABORT", "SAVEPOINT s", "RELEASE SAVEPOINT s",
        "PREPARE TRANSACTION 'x'", "SET TRANSACTION READ ONLY", "SET transaction_isolation = 'x'",
        "SET LOCAL transaction_read_only = on", "SET LOCAL ROLE other",
        "SET LOCAL SESSION AUTHORIZATION x", "SET LOCAL \"transaction_read_only\" = on"}) {
    check_refused({text, {1, 1}, "message's transaction"});
  }
  check_refused({"/* quiet */ -- very\n  COMMIT;", {2, 3}, "message's transaction"});
}

TEST_CASE("statements that outlive the transaction or leave the protocol are refused") {
  for (const std::string_view text :
       {"SET search_path = x", "SET SESSION lock_timeout = 1", "SET SESSION CHARACTERISTICS AS x",
        "SET ROLE x", "SET \"x\" = 1", "RESET ALL", "DISCARD ALL", "LISTEN x", "UNLISTEN *",
        "PREPARE p AS SELECT 1", "DEALLOCATE p", "LOAD 'x'"}) {
    check_refused({text, {1, 1}, "session"});
  }
  check_refused({"COPY t FROM STDIN", {1, 1}, "uses another protocol than a query"});
}

TEST_CASE("a lock of the session is refused with the one of the transaction") {
  check_refused({"SELECT pg_advisory_lock(hashtext({/a}))", {1, 8}, "pg_advisory_xact_lock"});
  check_refused(
      {"SELECT PG_TRY_ADVISORY_LOCK_SHARED(1)", {1, 8}, "Use pg_try_advisory_xact_lock_shared"});
  CHECK_NOTHROW(SqlText::parse("SELECT pg_advisory_xact_lock(1), 'pg_advisory_lock(1)'"));
}

TEST_CASE("in a batch each placeholder is cast to an array type") {
  for (const auto* cast :
       {"::text[]", " :: text [ ]", "::bigint[]", "::numeric(10, 2)[]", "::public.kind[]",
        "::\"My Kind\"[]", "::double precision[]", "::timestamp(3) with time zone[]",
        "::character varying (10)[]", "::int[3]", "::text ARRAY", "::text/* each */[]"}) {
    CAPTURE(cast);
    const auto text = fmt::format("SELECT f(x) FROM unnest({{/x}}{}) AS u (x)", cast);
    CHECK(SqlText::parse_batch(text).sql() ==
          fmt::format("SELECT f(x) FROM unnest($1{}) AS u (x)", cast));
  }
  for (const auto* rest : {"", ")", "::text", "::bigint + y[1]", "::text FROM t WHERE a[1] = 1",
                           "::numeric(10, 2)", "::text, y[]", ":text[]", "[1]", "::text AS a[]",
                           "::numeric(10", "::", "::'text'[]", "::text[1"}) {
    CAPTURE(rest);
    CHECK_THROWS_AS(SqlText::parse_batch(fmt::format("SELECT f({{/x}}{}", rest)), SyntaxError);
  }
  try {
    (void)SqlText::parse_batch("INSERT INTO t VALUES ({/a})");
    FAIL("accepted");
  } catch (const SyntaxError& error) {
    CHECK(error.position() == TextPosition{1, 23});
    CHECK_THAT(error.problem(),
               ContainsSubstring("Write a cast to an array type, as in unnest({/a}::text[])"));
  }
}

TEST_CASE("a statement of code's has its numbers and braces already, and keeps to the same rules") {
  CHECK(SqlText::parse_numbered("INSERT INTO a VALUES ($1, '{/x}', '{}'::int[]); -- {/y}") ==
        "INSERT INTO a VALUES ($1, '{/x}', '{}'::int[])");
  for (const auto* text : {"COMMIT", "-- a\nrollback to b", "-- a\rCOMMIT", "SELECT 1; SELECT 2",
                           "", ";", "SELECT 'x", "SET a = 1", "COPY a FROM STDIN"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(SqlText::parse_numbered(text), SqlTextError);
  }
}

TEST_CASE("COPY is known by its first word, whatever stands before it") {
  for (const auto* text :
       {"COPY t FROM STDIN", "copy(SELECT 1) to stdout", " -- a\n;/* b */;CoPy t"}) {
    CAPTURE(text);
    CHECK(is_copy(text));
  }
  for (const auto* text : {"", ";", "SELECT 'COPY'", "WITH copy AS (SELECT 1) TABLE copy",
                           "EXPLAIN SELECT 1", "\"copy\"", "-- COPY", "copying", "$$COPY$$"}) {
    CAPTURE(text);
    CHECK_FALSE(is_copy(text));
  }
}

TEST_CASE("more parameters than the protocol can count are refused") {
  std::string text = "SELECT ARRAY[{/a}";
  for (std::size_t i = 1; i < SqlText::kMaxParameters; ++i)
    text += ",{/a}";
  CHECK(SqlText::parse(text + "]").parameters().size() == SqlText::kMaxParameters);
  CHECK_THROWS_AS(SqlText::parse(text + ",{/a}]"), SqlTextError);
}
