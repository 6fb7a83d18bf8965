#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "ledger/consumers.hpp"

TEST_CASE("the newest schema version is the number of the last migration, and none is missing") {
  std::set<int> versions;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(PAWL_SOURCE_DIR) / "migrations")) {
    if (file.path().extension() == ".sql")
      versions.insert(std::stoi(file.path().filename().string().substr(0, 4)));
  }
  REQUIRE_FALSE(versions.empty());
  CHECK(*versions.begin() == 1);
  CHECK(*versions.rbegin() == pawl::ledger::kNewestSchema);
  CHECK(static_cast<int>(versions.size()) == pawl::ledger::kNewestSchema);
  CHECK(pawl::ledger::kOldestSchema <= pawl::ledger::kNewestSchema);
}
