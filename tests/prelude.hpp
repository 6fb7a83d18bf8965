#pragma once

/// What every test begins with: Catch2, the fixtures of pawl::testing, and the names of both.

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pawl/testing/testing.hpp>

/// Helpers of the tests themselves.
namespace pawl::test {}

using namespace std::chrono_literals;
using namespace std::string_literals;
using namespace pawl;
using namespace pawl::test;
using namespace pawl::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
