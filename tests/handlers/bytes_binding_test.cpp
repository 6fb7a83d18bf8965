// How a value reaches a parameter of a statement.
#include "handlers/bytes_binding.hpp"

#include "prelude.hpp"

using namespace pawl::handlers;
using pawl::message::Template;
using pawl::postgres::ParameterType;

TEST_CASE("what a value is and what its parameter is decide how it is bound") {
  struct Row {
    std::string value;
    BoundAs into_bytes;
  };
  const auto row = GENERATE(from_range(std::vector<Row>{
      {"{value}", BoundAs::kBytes},
      {"{key}", BoundAs::kBytes},
      {"{header:trace?}", BoundAs::kBytes},
      {"{header:trace|key}", BoundAs::kBytes},
      {"{header:trace|topic}", BoundAs::kBytes},
      {"{topic}", BoundAs::kText},
      {"{offset}", BoundAs::kText},
      {"{sha256:value}", BoundAs::kText},
      {"{sha256:/data}", BoundAs::kText},
      {"{/data}", BoundAs::kRefused},
      {"{/data?}", BoundAs::kRefused},
      {"{header:data|/data}", BoundAs::kRefused},
  }));
  CAPTURE(row.value);
  const auto value = Template::parse(row.value);
  CHECK(binding_of(value, ParameterType::kOther) == BoundAs::kText);
  CHECK(binding_of(value, ParameterType::kBytes) == row.into_bytes);
  const auto into_json = row.into_bytes == BoundAs::kBytes ? BoundAs::kJson : BoundAs::kText;
  CHECK(binding_of(value, ParameterType::kJson) == into_json);
  CHECK(binding_of(value, ParameterType::kJsonArray) == into_json);
  const auto into_array = row.into_bytes == BoundAs::kBytes ? BoundAs::kByteArray : row.into_bytes;
  CHECK(binding_of(value, ParameterType::kByteArray) == into_array);
  CHECK(may_be_bytes(value) == (row.into_bytes == BoundAs::kBytes));
}
