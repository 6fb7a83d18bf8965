// Uses the installed pawl::testing from outside: a private PostgreSQL, with a database and pawl's
// tables in it.
#include <cstdlib>
#include <iostream>
#include <pawl/testing/testing.hpp>

int main() {
  ::setenv("PAWL_SCRIPTS", SCRIPTS, 0);
  pawl::testing::PostgresServer server;
  std::cout << server.create_database("fixtures") << '\n';
}
