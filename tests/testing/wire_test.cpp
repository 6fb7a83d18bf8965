#include "prelude.hpp"
#include "testing/postgres_wire.hpp"

namespace {

std::string message(char type, const std::string& body) {
  const auto length = static_cast<unsigned char>(body.size() + 4);
  return std::string{type} + std::string{"\0\0\0", 3} + static_cast<char>(length) + body;
}

}  // namespace

TEST_CASE("COMMIT is seen as a statement and not inside of something else") {
  CHECK(commits("COMMIT"));
  CHECK(commits("  commit ; "));
  CHECK(commits("end"));
  CHECK(commits("UPDATE t SET x = 1; COMMIT"));
  CHECK(commits("/* so /* nested */ */ COMMIT"));
  CHECK(commits("-- a line\nCOMMIT"));
  CHECK(commits("SELECT E'it\\'s; COMMIT'; COMMIT"));
  CHECK_FALSE(commits("SELECT 'a; COMMIT'"));
  CHECK_FALSE(commits("SELECT E'\\'; COMMIT'"));
  CHECK_FALSE(commits("SELECT \"; COMMIT\" FROM t"));
  CHECK_FALSE(commits("DO $$ BEGIN; COMMIT; END $$"));
  CHECK_FALSE(commits("DO $x$ BEGIN $$; COMMIT; $$ END $x$"));
  CHECK_FALSE(commits("SELECT $1; -- COMMIT"));
  CHECK_FALSE(commits("SELECT CASE WHEN true THEN 1 END"));
  CHECK_FALSE(commits("ROLLBACK"));
  CHECK(commits("-- a line\rCOMMIT"));
  CHECK(commits("SELECT E'a'\n'\\''';'; COMMIT"));
  CHECK(commits("SELECT 1$$;$$; COMMIT"));
  CHECK_FALSE(commits("SELECT E'a'\n'\\'; COMMIT'"));
  CHECK_FALSE(commits("(COMMIT)"));
  CHECK_FALSE(commits("'a' COMMIT"));
  CHECK_FALSE(commits("$1 COMMIT"));
  CHECK_FALSE(commits("commit$1"));
  CHECK_FALSE(commits("SELECT commit FROM log"));
  CHECK_FALSE(commits(""));
}

TEST_CASE("a stream is cut into messages wherever its packets end") {
  const std::string bytes = message('Q', std::string{"SELECT 1\0", 9}) + message('X', "");
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    WireStream stream{true};
    std::string types;
    for (const auto& part : {bytes.substr(0, split), bytes.substr(split)}) {
      stream.append(part);
      while (const auto one = stream.next()) {
        types += one->type;
      }
    }
    REQUIRE(types == "QX");
    REQUIRE(stream.empty());
  }
}

TEST_CASE("bytes that are no messages are refused") {
  WireStream stream{true};
  stream.append("GET / HTTP/1.1\r\n");
  CHECK_THROWS_AS(stream.next(), std::runtime_error);
}

TEST_CASE("an Execute is known by what was prepared and bound") {
  StatementTracker statements;
  const auto read = [&](char type, const std::string& body) {
    return statements.read({type, body, {}});
  };
  CHECK_FALSE(read('P', "done\0COMMIT\0\0\0"s));
  CHECK_FALSE(read('P', "one\0SELECT 1\0\0\0"s));
  CHECK_FALSE(read('B', "\0done\0\0\0\0\0\0\0"s));
  auto executed = read('E', "\0\0\0\0\0"s);
  REQUIRE(executed);
  CHECK(executed->commit);
  CHECK_FALSE(read('B', "\0one\0\0\0\0\0\0\0"s));
  executed = read('E', "\0\0\0\0\0"s);
  REQUIRE(executed);
  CHECK(executed->sql == "SELECT 1");
  CHECK_FALSE(executed->commit);
  CHECK_FALSE(read('C', "Sdone\0"s));
  CHECK_FALSE(read('B', "\0done\0\0\0\0\0\0\0"s));
  CHECK_FALSE(read('E', "\0\0\0\0\0"s)->commit);
}
