#include "postgres/parameter_types.hpp"

#include <string>

#include "postgres/array_elements.hpp"
#include "postgres/flight.hpp"
#include "postgres/session.hpp"

namespace pawl::postgres {
namespace {

// Of pg_type, where they never change.
constexpr Oid kBytea = 17;
constexpr Oid kJson = 114;
constexpr Oid kJsonb = 3802;
constexpr Oid kByteaArray = 1001;
constexpr Oid kJsonArray = 199;
constexpr Oid kJsonbArray = 3807;
/// What a database defines itself is numbered from here.
constexpr Oid kFirstOwn = 16384;

/// What is made of bytea, json or jsonb in the end, and whether an array of it.
const Statement kResolve{"", R"sql(
  WITH RECURSIVE made_of (asked, oid, is_array) AS (
    SELECT a, a, false FROM unnest($1::oid[]) a
    UNION
    SELECT m.asked, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END,
           m.is_array OR t.typtype <> 'd'
      FROM made_of m JOIN pg_catalog.pg_type t ON t.oid = m.oid
     WHERE t.typtype = 'd' OR (NOT m.is_array AND t.typlen = -1 AND t.typelem <> 0)
  )
  SELECT asked, oid, is_array FROM made_of WHERE oid IN (17, 114, 3802)
)sql"};

ParameterType type_of(Oid oid) {
  switch (oid) {
    case kBytea:
      return ParameterType::kBytes;
    case kByteaArray:
      return ParameterType::kByteArray;
    case kJson:
    case kJsonb:
      return ParameterType::kJson;
    case kJsonArray:
    case kJsonbArray:
      return ParameterType::kJsonArray;
    default:
      return ParameterType::kOther;
  }
}

ParameterType array_of(ParameterType element) {
  return element == ParameterType::kBytes ? ParameterType::kByteArray : ParameterType::kJsonArray;
}

void resolve_own(Session& session, const PGresult* described, ParameterTypes& types) {
  ArrayElements asked;
  for (int i = 0; i < PQnparams(described); ++i) {
    if (PQparamtype(described, i) >= kFirstOwn)
      asked.add_integer(PQparamtype(described, i));
  }
  if (asked.size() == 0)
    return;
  Parameters parameters;
  parameters.add_text(asked.array());
  const auto found = session.exec(kResolve, parameters);
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    const auto asked_oid = static_cast<Oid>(std::stoul(PQgetvalue(found.get(), row, 0)));
    const auto made_of = type_of(static_cast<Oid>(std::stoul(PQgetvalue(found.get(), row, 1))));
    const bool is_array = *PQgetvalue(found.get(), row, 2) == 't';
    for (int i = 0; i < PQnparams(described); ++i) {
      if (PQparamtype(described, i) == asked_oid)
        types[static_cast<std::size_t>(i)] = is_array ? array_of(made_of) : made_of;
    }
  }
}

}  // namespace

ParameterTypes types_of_described(Session& session, const PGresult* described) {
  ParameterTypes types;
  for (int i = 0; i < PQnparams(described); ++i)
    types.push_back(type_of(PQparamtype(described, i)));
  resolve_own(session, described, types);
  return types;
}

ParameterTypes describe_parameters(Session& session, const Statement& statement) {
  std::vector<Result> answers;
  {
    Flight flight(session);
    flight.add_description(statement);
    answers = flight.run();
  }
  return types_of_described(session, answers.front().get());
}

}  // namespace pawl::postgres
