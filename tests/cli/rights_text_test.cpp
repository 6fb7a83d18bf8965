#include "cli/rights_text.hpp"

#include "config/shell_word.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("rights that are missing are told by privilege, of each the first few") {
  CHECK(rights_text({}).empty());
  CHECK(rights_text({"USAGE on schema pawl"}) == "USAGE on schema pawl");
  CHECK(rights_text({"SELECT on pawl.b", "UPDATE (x) on pawl.c", "SELECT on pawl.a"}) ==
        "SELECT on pawl.a, pawl.b; UPDATE (x) on pawl.c");
  std::vector<std::string> many{"DELETE on pawl.t"};
  for (char c = 'a'; c <= 'z'; ++c)
    many.push_back(std::string("EXECUTE on function pawl.") + c);
  CHECK(rights_text(many) ==
        "DELETE on pawl.t; EXECUTE on function pawl.a, function pawl.b, function pawl.c, function "
        "pawl.d and 22 more");
}

TEST_CASE("the command that gives rights can be pasted as it stands") {
  CHECK(grants_command("pawl", "app", "pawl", false, {"db.example", "5432", "payments", "owner"}) ==
        "pawl migrate grants --role app | psql -h db.example -p 5432 -U owner -d payments");
  CHECK(grants_command("pawl", "it's", "my schema", true, {"/run/postgresql", "", "p", ""}) ==
        R"(pawl migrate grants --relay --role 'it'\''s' --schema 'my schema' | psql -h )"
        "/run/postgresql -d p");
  CHECK(shell_word("") == "''");
}
