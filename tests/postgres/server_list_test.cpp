// Which server is tried after which.
#include "postgres/connecting.hpp"
#include "prelude.hpp"

using namespace pawl::postgres;

TEST_CASE("the servers of a connection string are its hosts, addresses and ports side by side") {
  CHECK(listed_servers("", "", "") == std::vector<Server>{{"", "", ""}});
  CHECK(listed_servers("a", "", "5432") == std::vector<Server>{{"a", "", "5432"}});
  CHECK(listed_servers("a,b", "", "5432") ==
        std::vector<Server>{{"a", "", "5432"}, {"b", "", "5432"}});
  CHECK(listed_servers("a,b", ",10.0.0.2", "1,2") ==
        std::vector<Server>{{"a", "", "1"}, {"b", "10.0.0.2", "2"}});
  CHECK(listed_servers("", "10.0.0.1,10.0.0.2", "") ==
        std::vector<Server>{{"", "10.0.0.1", ""}, {"", "10.0.0.2", ""}});
}

TEST_CASE("behind a silent server come the other addresses of its host, and the servers after it") {
  const std::vector<Server> two{{"a", "", "1"}, {"b", "", "2"}};
  const std::vector<std::string> addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  CHECK(servers_behind(two, {"a", "10.0.0.1", "1"}, {}) == std::vector<Server>{{"b", "", "2"}});
  CHECK(servers_behind(two, {"a", "10.0.0.2", "1"}, addresses) ==
        std::vector<Server>{{"a", "10.0.0.3", "1"}, {"b", "", "2"}});
  CHECK(servers_behind(two, {"b", "10.0.0.3", "2"}, addresses).empty());
  // An address that the resolver does not give again ends the host's turn.
  CHECK(servers_behind(two, {"a", "10.0.0.9", "1"}, addresses) ==
        std::vector<Server>{{"b", "", "2"}});
  // An address in the string is the only one of its host, whatever the name has.
  const std::vector<Server> same{{"a", "10.0.0.1", "1"}, {"a", "10.0.0.2", "1"}};
  CHECK(servers_behind(same, {"a", "10.0.0.1", "1"}, addresses) ==
        std::vector<Server>{{"a", "10.0.0.2", "1"}});
  CHECK(servers_behind(same, {"a", "10.0.0.2", "1"}, addresses).empty());
  // What the string leaves to libpq.
  CHECK(servers_behind({{"", "", ""}}, {"/run/postgresql", "", "5432"}, {}).empty());
  CHECK(servers_behind(two, {"c", "", "1"}, addresses).empty());
}
