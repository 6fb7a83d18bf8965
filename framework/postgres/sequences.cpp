#include "postgres/sequences.hpp"

#include <fmt/format.h>

#include <string_view>

#include "postgres/array_elements.hpp"
#include "postgres/error.hpp"

namespace pawl::postgres {
namespace {

// $1: pawl's schema. $2: names of other tables. Without a row where all is readable and right.
constexpr const char* kOwned = R"sql(
  SELECT format('%I.%I', tn.nspname, t.relname), quote_ident(a.attname),
         format('%I.%I', sn.nspname, s.relname), q.seqincrement,
         has_sequence_privilege(s.oid, 'SELECT')
           AND has_column_privilege(t.oid, a.attnum, 'SELECT'),
         tn.nspname = $1::text,
         format('SELECT setval(%L, (SELECT max(%I) FROM %I.%I));',
                format('%I.%I', sn.nspname, s.relname), a.attname, tn.nspname, t.relname)
    FROM (SELECT c.oid
            FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = $1::text
           UNION
          SELECT pg_catalog.to_regclass(n.name)::oid FROM unnest($2::text[]) n (name)) w
    JOIN pg_catalog.pg_class t ON t.oid = w.oid AND t.relkind IN ('r', 'p')
    JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
    JOIN pg_catalog.pg_depend d
      ON d.classid = 'pg_catalog.pg_class'::regclass
         AND d.refclassid = 'pg_catalog.pg_class'::regclass
         AND d.refobjid = t.oid AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
    JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S'
    JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace
    JOIN pg_catalog.pg_sequence q ON q.seqrelid = s.oid
    JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
   WHERE q.seqincrement > 0 AND NOT q.seqcycle
     AND a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
     AND (tn.nspname = $1::text
          OR EXISTS (SELECT FROM pg_catalog.pg_index i
                      WHERE i.indrelid = t.oid AND i.indisvalid AND i.indpred IS NULL
                        AND i.indkey[0] = a.attnum))
   ORDER BY 1, 2
)sql";

Result run(Session& session, const std::string& sql) {
  return session.exec(Statement{"", sql});
}

Result owned(Session& session, const std::string& schema, const std::vector<std::string>& tables) {
  ArrayElements names;
  for (const auto& table : tables)
    names.add_text(table);
  Parameters parameters;
  parameters.add_text(schema);
  parameters.add_text(names.array());
  return session.exec(Statement{"", kOwned}, parameters);
}

/// The highest value of a column where its sequence is behind that, else no row. Both are read
/// under one snapshot, and a sequence is ahead of it at most.
Result highest(Session& session, const std::string& table, const std::string& column,
               const std::string& sequence, const std::string& increment) {
  run(session, "BEGIN READ ONLY");
  run(session, "SET LOCAL statement_timeout = 1000");
  run(session, "SET LOCAL lock_timeout = 100");
  auto found =
      run(session, fmt::format("SELECT max({0}) FROM {1} HAVING max({0}) > (SELECT CASE WHEN "
                               "is_called THEN last_value ELSE last_value - {3} END FROM {2})",
                               column, table, sequence, increment));
  run(session, "ROLLBACK");
  return found;
}

}  // namespace

LateSequences late_sequences(Session& session, const std::string& schema,
                             const std::vector<std::string>& tables) {
  const auto attempt = [&session](const auto& step) -> Result {
    try {
      return step();
    } catch (const Error&) {
      if (!session.alive())
        throw;
      if (session.in_transaction())
        run(session, "ROLLBACK");
      return nullptr;
    }
  };
  auto columns = attempt([&] { return owned(session, schema, tables); });
  // A name in a schema that the role may not use is an error.
  if (!columns)
    columns = attempt([&] { return owned(session, schema, {}); });
  LateSequences found;
  for (int row = 0; columns && row < PQntuples(columns.get()); ++row) {
    const auto text = [&](int column) { return PQgetvalue(columns.get(), row, column); };
    const bool readable = std::string_view(text(4)) == "t";
    if (!readable) {
      found.unreadable += std::string_view(text(5)) == "t" ? 1 : 0;
      continue;
    }
    const auto late = attempt([&] { return highest(session, text(0), text(1), text(2), text(3)); });
    if (late && PQntuples(late.get()) == 1) {
      found.late.push_back(
          {fmt::format("{}.{}", text(0), text(1)), PQgetvalue(late.get(), 0, 0), text(6)});
    }
  }
  return found;
}

}  // namespace pawl::postgres
