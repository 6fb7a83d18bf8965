#include "postgres/schema_version.hpp"

#include <atomic>

#include "postgres/flight.hpp"
#include "postgres/session.hpp"

namespace pawl::postgres {
namespace {

std::atomic<std::chrono::milliseconds::rep> interval_of_new{SchemaVersion::kInterval.count()};

/// A handler's own may be shorter than a large catalog takes.
const Statement kLimit{"pawl_schema_limit", "SELECT set_config('statement_timeout', '10s', true)"};

/// Whatever gives a statement's parameters, a function's variables or a name its meaning. Rows that
/// only DDL writes count by xmin; pg_class, which TRUNCATE, VACUUM FULL and CREATE INDEX write as
/// well, by what its columns say. Temporary objects are left out, for applications create them all
/// the time, and so are indexes and TOAST tables, which no statement names. Of settings all roles'
/// count, so that the answer does not depend on who asks. Every fact is hashed by itself and the
/// hashes are added up: no order is needed, and the sum is a numeric.
const Statement kFingerprint{"pawl_schema_version", R"sql(
  WITH hidden AS MATERIALIZED (
    SELECT oid FROM pg_catalog.pg_namespace WHERE nspname::text ~ '^pg_(temp|toast)'
  ), relations AS MATERIALIZED (
    SELECT oid, relname, relnamespace FROM pg_catalog.pg_class
     WHERE oid >= 16384 AND relpersistence <> 't' AND relkind NOT IN ('i', 'I', 't')
  ), facts (what, fact) AS (
    SELECT 1, oid || ' ' || relnamespace || ' ' || relname FROM relations
    UNION ALL
    SELECT 2, a.attrelid || ' ' || a.attnum || ' ' || a.xmin
      FROM pg_catalog.pg_attribute a JOIN relations r ON r.oid = a.attrelid WHERE a.attnum > 0
    UNION ALL
    SELECT 3, oid || ' ' || xmin FROM pg_catalog.pg_type
     WHERE oid >= 16384 AND typnamespace NOT IN (SELECT oid FROM hidden)
    UNION ALL
    SELECT 4, oid || ' ' || xmin FROM pg_catalog.pg_proc
     WHERE oid >= 16384 AND pronamespace NOT IN (SELECT oid FROM hidden)
    UNION ALL
    SELECT 5, oid || ' ' || xmin FROM pg_catalog.pg_operator
     WHERE oid >= 16384 AND oprnamespace NOT IN (SELECT oid FROM hidden)
    UNION ALL
    SELECT 6, oid || ' ' || xmin FROM pg_catalog.pg_cast WHERE oid >= 16384
    UNION ALL
    SELECT 7, oid || ' ' || xmin FROM pg_catalog.pg_constraint
     WHERE contypid <> 0 AND oid >= 16384
    UNION ALL
    SELECT 8, oid || ' ' || nspname FROM pg_catalog.pg_namespace
     WHERE oid NOT IN (SELECT oid FROM hidden)
    UNION ALL
    SELECT 9, setdatabase || ' ' || setrole || ' ' || setconfig::text
      FROM pg_catalog.pg_db_role_setting
     WHERE setdatabase = 0 OR setdatabase = (SELECT oid FROM pg_catalog.pg_database
                                              WHERE datname = pg_catalog.current_database())
    UNION ALL
    SELECT 10, oid::text FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
  )
  SELECT pg_catalog.count(*) || ' ' || pg_catalog.sum(pg_catalog.hashtextextended(fact, what))
    FROM facts
)sql"};

/// Whether anything that a statement may run without naming it takes an advisory lock of the
/// session. Functions are known by their text, and by the numbers of the functions that they call
/// where PostgreSQL keeps them parsed, as it does defaults, views and rules.
const Statement kSessionLocks{"pawl_session_locks", R"sql(
  WITH locking (pattern) AS (
    SELECT ':funcid (' || pg_catalog.string_agg(oid::text, '|') || ') ' FROM pg_catalog.pg_proc
     WHERE oid < 16384 AND proname ~ '^pg_(try_)?advisory_lock'
  )
  SELECT EXISTS (SELECT FROM pg_catalog.pg_proc p
                  WHERE p.oid >= 16384
                    AND (p.prosrc ~* 'pg_(try_)?advisory_lock'
                         OR (p.prosrc = ''
                             AND pg_catalog.to_jsonb(p) ->> 'prosqlbody' ~ locking.pattern)))
      OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adbin::text ~ locking.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_rewrite r
                  WHERE r.ev_class >= 16384 AND r.ev_action::text ~ locking.pattern)
    FROM locking
)sql"};

/// Whether anything that a statement may run without naming it changes settings of the session.
/// Every function of the application counts, because its text may build the SQL that it executes.
/// Functions of PostgreSQL that execute a text count too, and an UPDATE of pg_settings sets
/// (PostgreSQL manual, 54.24).
const Statement kSettings{"pawl_session_settings", R"sql(
  WITH setting (pattern) AS (
    SELECT ':funcid (' || pg_catalog.string_agg(oid::text, '|') || ') |:relid '
           || 'pg_catalog.pg_settings'::pg_catalog.regclass::oid || ' '
      FROM pg_catalog.pg_proc
     WHERE oid < 16384 AND proname ~ '^(set_config|query_to_xml.*|ts_stat|ts_rewrite)$'
  )
  SELECT EXISTS (SELECT FROM pg_catalog.pg_proc p
                   JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                  WHERE p.oid >= 16384 AND n.nspname <> 'pawl')
      OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d WHERE d.adbin::text ~ setting.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.typdefaultbin::text ~ setting.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_constraint c WHERE c.conbin::text ~ setting.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgqual::text ~ setting.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_policy y
                  WHERE y.polqual::text ~ setting.pattern OR y.polwithcheck::text ~ setting.pattern)
      OR EXISTS (SELECT FROM pg_catalog.pg_rewrite r
                  WHERE r.ev_class >= 16384 AND r.ev_action::text ~ setting.pattern)
    FROM setting
)sql"};

/// In one implicit transaction, in which the limit holds.
std::string ask(Session& session, const Statement& statement) {
  Flight flight(session);
  flight.add(kLimit);
  flight.add(statement);
  const auto answers = flight.run();
  return PQgetvalue(answers.back().get(), 0, 0);
}

}  // namespace

void SchemaVersion::set_default_interval(std::chrono::milliseconds interval) {
  interval_of_new = interval.count();
}

std::chrono::milliseconds SchemaVersion::default_interval() {
  return std::chrono::milliseconds(interval_of_new);
}

SchemaVersion::Number SchemaVersion::current() const {
  const std::scoped_lock lock(mutex_);
  return number_;
}

SchemaVersion::Reading SchemaVersion::reading_due(std::optional<Clock::duration> age,
                                                  std::chrono::milliseconds interval) {
  if (!age || *age >= 2 * interval)
    return Reading::kEveryone;
  return *age < interval ? Reading::kNone : Reading::kOne;
}

bool SchemaVersion::may_begin(Session& session) {
  {
    const std::scoped_lock lock(mutex_);
    if (session.schema_version() != number_)
      return false;
    std::optional<Clock::duration> age;
    if (confirmed_at_)
      age = Clock::now() - *confirmed_at_;
    const auto due = reading_due(age, interval_);
    if (due == Reading::kNone || (due == Reading::kOne && is_read_))
      return true;
    is_read_ = true;
  }
  try {
    confirm(session);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    is_read_ = false;
    throw;
  }
  return session.schema_version() == current();
}

void SchemaVersion::confirm(Session& session) {
  const auto asked_at = Clock::now();
  const auto fingerprint = ask(session, kFingerprint);
  const bool known = is_known(fingerprint);
  SessionEffects effects{has_session_locks_, may_change_settings_};
  if (!known)
    effects.locks = ask(session, kSessionLocks) == "t";
  // A rule, a policy or a check can be new without another version of the schema. True is kept
  // until the next version, for asking costs more where more is there.
  if (!known || !effects.settings)
    effects.settings = ask(session, kSettings) == "t";
  learn(fingerprint, effects, asked_at);
}

bool SchemaVersion::is_known(const std::string& fingerprint) const {
  const std::scoped_lock lock(mutex_);
  return number_ != 0 && fingerprint == fingerprint_;
}

bool SchemaVersion::has_changed_since(Session& session) {
  try {
    confirm(session);
  } catch (const Error&) {
    return true;
  }
  return session.schema_version() != current();
}

void SchemaVersion::learn(const std::string& fingerprint, const SessionEffects& effects,
                          Clock::time_point asked_at) {
  const std::scoped_lock lock(mutex_);
  is_read_ = false;
  if (confirmed_at_ && asked_at < *confirmed_at_)
    return;
  confirmed_at_ = asked_at;
  has_session_locks_ = effects.locks;
  may_change_settings_ = effects.settings;
  if (number_ != 0 && fingerprint == fingerprint_)
    return;
  fingerprint_ = fingerprint;
  ++number_;
}

}  // namespace pawl::postgres
