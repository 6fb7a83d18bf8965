#!/usr/bin/env bash
# Tests of scripts/migrate on a private PostgreSQL, from a copy in a folder with spaces in its name.
# Runs the cases whose names contain the first argument, or all. PAWL_TEST_POSTGRES: major version.
# shellcheck disable=SC2016 # dollar signs in single quotes are SQL's
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
only=${1:-}
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl migrate.XXXXXX")
chmod 711 "$work"
postgres=$work/postgres
home="$work/an installed pawl"
migrate=$home/scripts/migrate

clean_up() {
    trap - EXIT
    jobs -p | xargs -r kill -KILL 2>/dev/null || true
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
unset DATABASE_URL PGDATABASE PGHOST PGPORT PGUSER PGPASSWORD PGSERVICE PGOPTIONS

# ---- what the cases are written with -------------------------------------------------------------

failures=0 cases=0
fail() {
    printf '    FAILED: %s\n' "$*" | head -c 3000
    failures=$((failures + 1))
}

# Runs a command; its exit code, stdout and stderr are in $code, $out and $err.
run() {
    code=0
    "$@" >"$work/out" 2>"$work/err" || code=$?
    out=$(<"$work/out") err=$(<"$work/err")
}
exits() { [[ $code == "$1" ]] || fail "${BASH_LINENO[0]}: exit code $code, not $1; out: $out; err: $err"; }
says() { [[ "$out$err" == *"$1"* ]] || fail "${BASH_LINENO[0]}: does not say '$1': out: $out; err: $err"; }
says_not() { [[ "$out$err" != *"$1"* ]] || fail "${BASH_LINENO[0]}: says '$1': out: $out; err: $err"; }
is() {
    [[ $1 != "$2" ]] || return 0
    # Of many lines only those that differ tell anything.
    [[ $1$2 != *$'\n'* ]] || fail "${BASH_LINENO[0]}: < is, > should be"$'\n'"$(diff <(echo "$1") <(echo "$2"))"
    [[ $1$2 == *$'\n'* ]] || fail "${BASH_LINENO[0]}: '$1' is not '$2'"
}

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }
exists() { sql "SELECT to_regclass('$1') IS NOT NULL"; }

# Sets $url: a new database, and $dir: a new folder of migrations.
databases=0
new_database() {
    databases=$((databases + 1))
    psql -X -q -d "$server" -c "CREATE DATABASE test_$databases"
    url=${server%/*}/test_$databases
    dir="$work/migrations of $databases"
    mkdir -- "$dir"
}
write() { cat >"$dir/$1"; }
app() { # COMMAND OPTIONS...: on the application's own set in $dir
    local command=$1
    shift
    "$migrate" "$command" --database "$url" --dir "$dir" --name app "$@"
}
# Starts `up` beside the test; its process is $pid. SIGINT works: a shell starts what runs in its
# background with SIGINT ignored, and env undoes that.
start_up() { # OUTPUT
    env --default-signal=INT "$migrate" up --database "$url" --dir "$dir" --name app >"$1" 2>&1 &
    pid=$!
}
says_t() { [[ $("$@" 2>/dev/null) == t ]]; }
await() { # DESCRIPTION COMMAND...
    local what=$1
    shift
    wait_until 60 says_t "$@" || { fail "waited 60 s for $what" && return 1; }
}
# Everything that migrations can make, as lines, and the version rows without what differs from run
# to run. Not pg_dump: it is missing beside some servers.
describe() { # URL [SCHEMA OF THE VERSION ROWS]
    psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" <<SQL || fail "describing $1"
CREATE TEMP VIEW mine AS SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema';
SELECT n.nspname, c.relname, c.relkind, c.reloptions, obj_description(c.oid), a.attnum, a.attname,
       format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attcollation::regcollation,
       pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
  FROM mine n JOIN pg_class c ON c.relnamespace = n.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relkind IN ('r', 'v', 'S') ORDER BY n.nspname, c.relname, a.attnum;
SELECT n.nspname, r.conrelid::regclass, r.conname, pg_get_constraintdef(r.oid)
  FROM mine n JOIN pg_constraint r ON r.connamespace = n.oid ORDER BY 1, 2::text, 3;
SELECT pg_get_indexdef(i.indexrelid), i.indisvalid FROM mine n JOIN pg_class c ON c.relnamespace = n.oid
  JOIN pg_index i ON i.indexrelid = c.oid ORDER BY 1;
SELECT pg_get_functiondef(p.oid) FROM mine n JOIN pg_proc p ON p.pronamespace = n.oid
 ORDER BY n.nspname, p.proname, pg_get_function_identity_arguments(p.oid);
SELECT set_name, version, file, checksum, applied_by FROM ${2:-pawl}.schema_migrations ORDER BY 1, 2;
SQL
}

# ---- cases ---------------------------------------------------------------------------------------

case_up_applies_pawls_own_files_and_says_so() {
    run "$migrate" up --database "$url"
    exits 0
    says 'applied 0001_consumers.sql'
    says 'up to date'
    is "$(sql "SELECT file, checksum, applied_by, applied_at > now() - interval '1 hour' FROM pawl.schema_migrations WHERE set_name = 'pawl' AND version = 1")" \
        "0001_consumers.sql|$(sha256sum <"$root/migrations/0001_consumers.sql" | cut -d ' ' -f 1)|postgres|t"
    run "$migrate" up --database "$url"
    exits 0
    says_not applied
}

case_each_table_and_column_has_a_comment() {
    run "$migrate" up --database "$url" && exits 0
    is "$(sql "SELECT string_agg(format('%s.%s', c.relname, a.attname), ' ')
                 FROM pg_class c
                CROSS JOIN LATERAL (SELECT 0 AS attnum, '' AS attname
                                    UNION ALL
                                    SELECT attnum, attname FROM pg_attribute
                                     WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a
                WHERE c.relnamespace = 'pawl'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_migrations'
                  AND col_description(c.oid, a.attnum) IS NULL")" ''
}

case_an_applications_files_live_beside_pawls_under_their_own_name() {
    write 0001_ledger.sql <<<'CREATE TABLE ledger (id bigint);'
    write 0002_more.sql <<<'CREATE TABLE more (id bigint);'
    run app up && exits 0
    run "$migrate" up --database "$url" && exits 0
    is "$(sql "SELECT string_agg(set_name || version, ' ' ORDER BY set_name, version) FROM pawl.schema_migrations WHERE version <= 2 AND set_name = 'app'")" 'app1 app2'
    is "$(exists ledger)$(exists more)$(exists pawl.consumers)" ttt
}

case_status_tells_and_its_exit_code_is_for_scripts() {
    write 0001_a.sql <<<'SELECT 1;'
    run app status && exits 0 && says 'pending  0001_a.sql'
    run app status --exit-code && exits 3
    is "$(sql "SELECT to_regnamespace('pawl') IS NULL")" t
    run app up && exits 0
    run app status --exit-code && exits 0 && says 'applied  0001_a.sql' && says 'up to date'
    write 0002_b.sql <<<'SELECT 1;'
    run app status --exit-code && exits 3 && says 'pending  0002_b.sql'
    echo 'SELECT 2;' >"$dir/0001_a.sql"
    run app status --exit-code && exits 4 && says edited
    run app status --json && exits 0
    is "$(python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(s["pending"], [f["file"] for f in s["files"]], [f["applied_at"] is None for f in s["files"]], "edited" in s["problems"][0])' "$work/out")" \
        "1 ['0001_a.sql', '0002_b.sql'] [False, True] True"
    run app status && exits 0
}

case_plan_lists_and_changes_nothing() {
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    write 0002_b.sql <<<$'-- pawl: no-transaction\nCREATE INDEX CONCURRENTLY b ON a (n);'
    run app plan && exits 0
    is "$out" $'0001_a.sql\n0002_b.sql (outside a transaction)'
    is "$(sql "SELECT to_regnamespace('pawl') IS NULL")" t
    run app up && exits 0
    run app plan && exits 0 && says 'nothing to apply'
    run app plan --sql && exits 0 && says_not INSERT
}

case_the_printed_plan_gives_the_same_database() {
    write 0001_a.sql <<<$'CREATE TABLE a (n int);\nSET search_path = pg_temp;\nINSERT INTO public.a VALUES (1)'
    write 0002_b.sql <<<$'-- pawl: no-transaction\nCREATE INDEX CONCURRENTLY b ON a (n);'
    local body='LANGUAGE sql AS $$ SELECT 1; SELECT CASE WHEN true THEN 1 END; $$'
    # A body without quotation marks is PostgreSQL 14's.
    (($(sql 'SHOW server_version_num') < 140000)) || body='BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END'
    write 0003_c.sql <<<"CREATE FUNCTION one() RETURNS int $body;"$'\n-- the end, without a newline'
    local first=$url files=$dir
    run app up && exits 0
    run "$migrate" up --database "$url" && exits 0
    new_database
    dir=$files
    app plan --sql >"$work/plan.sql"
    run psql -X -q -o /dev/null -v ON_ERROR_STOP=1 -d "$url" -f "$work/plan.sql" && exits 0
    "$migrate" plan --sql --database "$url" >"$work/plan.sql"
    run psql -X -q -o /dev/null -v ON_ERROR_STOP=1 -d "$url" -f "$work/plan.sql" && exits 0
    is "$(describe "$url")" "$(describe "$first")"
    is "$(describe "$url" | grep -c 'FUNCTION public.one\|pawl.acquire(\|^CREATE INDEX b ')" 3
    is "$(sql 'SELECT n FROM a')" 1
    run app status --exit-code && exits 0
    run "$migrate" status --exit-code --database "$url" && exits 0
}

case_a_plan_for_a_half_migrated_database_holds_only_the_rest() {
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    run app up && exits 0
    write 0002_b.sql <<<'CREATE TABLE b (n int);'
    app plan --sql >"$work/plan.sql"
    run psql -X -q -o /dev/null -v ON_ERROR_STOP=1 -d "$url" -f "$work/plan.sql" && exits 0
    run app status --exit-code && exits 0
}

case_a_failing_file_leaves_nothing_and_the_ones_before_it_stay() {
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    write 0002_b.sql <<<$'CREATE TABLE b (n int);\nINSERT INTO b VALUES (1);\nSELECT no_such_column FROM b;\n'
    write 0003_c.sql <<<'CREATE TABLE c (n int);'
    run app up
    exits 1
    says '0002_b.sql:3: ERROR:  column "no_such_column" does not exist'
    says 'the file was rolled back'
    is "$(exists a)$(exists b)$(exists c)" tff
    is "$(sql 'SELECT max(version) FROM pawl.schema_migrations')" 1
    write 0002_b.sql <<<'CREATE TABLE b (n int);'
    run app up && exits 0
    is "$(exists b)$(exists c)" tt
}

case_a_file_that_fails_at_commit_leaves_nothing() {
    write 0001_a.sql <<<'CREATE TABLE a (n int PRIMARY KEY);
        CREATE TABLE b (n int REFERENCES a DEFERRABLE INITIALLY DEFERRED); INSERT INTO b VALUES (1);'
    run app up
    exits 1
    says 'violates foreign key'
    is "$(exists a)" f
    is "$(sql 'SELECT count(*) FROM pawl.schema_migrations')" 0
}

case_an_edited_file_is_refused() {
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    run app up && exits 0
    echo '-- a comment, later' >>"$dir/0001_a.sql"
    write 0002_b.sql <<<'CREATE TABLE b (n int);'
    for command in up plan; do
        run app "$command"
        exits 4
        says '0001_a.sql was edited after it was applied: restore its original content'
    done
    is "$(exists b)" f
}

case_a_missing_file_is_refused() {
    write 0001_a.sql <<<'SELECT 1;'
    write 0002_b.sql <<<'SELECT 1;'
    run app up && exits 0
    rm "$dir/0002_b.sql"
    run app up
    exits 4
    says '0002_b.sql is applied, but'
    says 'use the release that contains the file'
}

case_two_branches_with_the_same_number_are_told_apart() {
    write 0001_a.sql <<<'SELECT 1;'
    write 0002_theirs.sql <<<'SELECT 1;'
    run app up && exits 0
    mv "$dir/0002_theirs.sql" "$dir/0002_ours.sql"
    run app up
    exits 4
    says 'has applied 0002_theirs.sql under this number: restore that file, and rename 0002_ours.sql to the next free number'
}

case_a_file_that_comes_late_is_refused() {
    write 0001_a.sql <<<'SELECT 1;'
    write 0002_b.sql <<<'CREATE TABLE b (n int);'
    write 0003_c.sql <<<'SELECT 1;'
    run app up && exits 0
    sql "DELETE FROM pawl.schema_migrations WHERE version = 2"
    run app up
    exits 4
    says '0002_b.sql is out of order'
    says 'next free number'
}

case_gaps_duplicates_and_other_names_are_refused() {
    run app up && exits 4 && says 'has no file'
    write 0001_a.sql <<<'SELECT 1;'
    write 0003_c.sql <<<'SELECT 1;'
    run app up && exits 4 && says '0002 is missing before 0003_c.sql'
    rm "$dir/0003_c.sql"
    write 0001_b.sql <<<'SELECT 1;'
    run app up && exits 4 && says '0001_b.sql and 0001_a.sql have the same number'
    rm "$dir/0001_b.sql"
    write '2_b.sql' <<<'SELECT 1;'
    run app up && exits 4 && says 'not of the form NNNN_name.sql'
    rm "$dir/2_b.sql"
    write '0002_with space.sql' <<<'SELECT 1;'
    run app up && exits 4 && says 'rename it'
    rm "$dir/0002_with space.sql"
    write README.md <<<'other files are nobody'\''s business'
    run app up && exits 0
}

refused_text() { # WHAT IT SAYS; the file on stdin
    write 0001_a.sql
    run app up
    exits 4
    says "$1"
    says '0001_a.sql:'
    is "$(sql "SELECT to_regnamespace('pawl') IS NULL")" t
}

case_a_file_cannot_break_out_of_its_transaction() {
    local statement
    for statement in BEGIN 'begin;' COMMIT 'Rollback' END ABORT 'START TRANSACTION' "PREPARE TRANSACTION 'x'"; do
        refused_text "migrate runs the file in its own transaction" <<<"CREATE TABLE a (n int); /* so */ $statement ; SELECT 1;"
    done
    refused_text "migrate runs the file in its own transaction" <<<$'SELECT \'a\'\'b\', E\'it\\\'s\', "c""d", $$e$$, $f$g$f$ -- h\n; /* i /* j */ **/ COMMIT;'
    # Allowed: these words elsewhere.
    write 0001_a.sql <<<$'DO $$ BEGIN PERFORM 1; END $$; DO $x$ BEGIN PERFORM \'; COMMIT;\'; END $x$;
        SELECT \'; COMMIT;\', E\'\\\'; COMMIT;\', "; ROLLBACK;" FROM (SELECT 1 AS "; ROLLBACK;") x; -- ; COMMIT;
        SAVEPOINT s; RELEASE s; PREPARE p AS SELECT 1; DEALLOCATE p;
        SELECT CASE WHEN true THEN 1 END AS "end", (ARRAY[1,2])[1:2], 1::int; /* ; COMMIT; /* ; */ COMMIT; **/
        CREATE TABLE a (n int);'
    run app up && exits 0
    is "$(exists a)" t
}

case_a_file_that_ends_its_transaction_unseen_is_reported() {
    write 0001_a.sql <<<$'CREATE TABLE a (n int); SET standard_conforming_strings = off;\nSELECT \'\\\'\'; COMMIT; --\';'
    run app up
    exits 1
    says 'ended its own transaction'
    is "$(sql 'SELECT count(*) FROM pawl.schema_migrations')" 0
}

case_a_file_cannot_reach_psql() {
    refused_text 'a psql command' <<<"\\! touch '$work/reached'"
    refused_text 'a psql command' <<<"SELECT 'touch $work/reached' \\g | sh"
    refused_text '0001_a.sql:2: a psql command' <<<$'SELECT 1;\n  \\connect other'
    refused_text 'a psql variable' <<<"SELECT :'HOST';"
    refused_text 'a psql variable' <<<'SELECT :USER;'
    refused_text 'a psql variable' <<<'SELECT :{?x};'
    [[ ! -e $work/reached ]] || fail 'a file ran a shell command'
}

case_a_file_that_does_not_end_is_refused() {
    refused_text '0001_a.sql:2: the quoted text or comment that starts here is not closed' <<<$'SELECT 1;\nSELECT \'a;\nb'
    refused_text 'is not closed' <<<'SELECT $x$ $$ $y$;'
    refused_text 'is not closed' <<<'SELECT 1; /* /* */'
    refused_text 'is not closed' <<<'SELECT "a;'
    refused_text 'inside parentheses' <<<'CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2;'
    refused_text 'byte order mark' <<<$'\xef\xbb\xbfSELECT 1;'
    printf 'SELECT 1;\0' | refused_text 'NUL byte'
}

case_no_transaction_files_run_outside_and_can_run_again() {
    write 0001_a.sql <<<'CREATE TABLE a (n int); INSERT INTO a VALUES (1), (1);'
    write 0002_i.sql <<<$'-- Why: no lock on a busy table.\n-- pawl: no-transaction\nDROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE UNIQUE INDEX CONCURRENTLY i ON a (n);'
    run app up
    exits 1
    says '0002_i.sql:4: ERROR'
    says 'The file starts from its first line'
    is "$(sql "SELECT max(version) FROM pawl.schema_migrations")" 1
    is "$(sql "SELECT indisvalid FROM pg_index WHERE indexrelid = 'i'::regclass")" f
    sql 'DELETE FROM a'
    run app up && exits 0
    is "$(sql "SELECT indisvalid FROM pg_index WHERE indexrelid = 'i'::regclass")" t
    is "$(sql "SELECT max(version) FROM pawl.schema_migrations")" 2
    # Without the marker PostgreSQL refuses.
    write 0003_j.sql <<<'CREATE INDEX CONCURRENTLY j ON a (n);'
    run app up && exits 1 && says 'cannot run inside a transaction block'
}

case_role_and_settings_of_a_file_do_not_reach_the_next() {
    sql 'CREATE ROLE weak'
    sql 'GRANT CREATE ON SCHEMA public TO weak'
    write 0001_a.sql <<<$'SET ROLE weak; SET search_path = nowhere; SET work_mem = 5432; CREATE TABLE public.a (n int);'
    write 0002_b.sql <<<'CREATE TABLE b AS SELECT current_user::text AS u, current_setting('\''search_path'\'') AS s, current_setting('\''work_mem'\'') AS m;'
    run app up && exits 0
    is "$(sql 'SELECT u, s, m FROM b')" "postgres|\"\$user\", public|$(sql 'SHOW work_mem')"
    is "$(sql "SELECT applied_by FROM pawl.schema_migrations WHERE version = 1")" postgres
}

case_runs_at_once_serialise_and_each_file_is_applied_once() {
    write 0001_slow.sql <<<'CREATE TABLE a (n int); SELECT pg_advisory_xact_lock(99);'
    # Waits for every older snapshot: a run that waited inside PostgreSQL for the lock would hold one.
    write 0002_index.sql <<<$'-- pawl: no-transaction\nCREATE INDEX CONCURRENTLY i ON a (n);'
    write 0003_more.sql <<<'CREATE TABLE b (n int);'
    local pids=() n failed=0 holder
    local held="locktype = 'advisory' AND objid = 99 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    sql 'SELECT pg_advisory_lock(99), pg_sleep(600)' >/dev/null 2>&1 &
    holder=$!
    await 'the holder' sql "SELECT EXISTS (SELECT FROM pg_locks WHERE $held)"
    for n in 1 2 3; do
        start_up "$work/out $n"
        pids+=("$pid")
    done
    await 'two of them to wait' two_wait
    sql "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE $held" >/dev/null
    wait "$holder" || true
    for n in "${pids[@]}"; do wait "$n" || failed=$?; done
    is "$failed" 0
    is "$(cat "$work/out "? | grep -c '^applied')" 3
    is "$(cat "$work/out "? | grep -c '^up to date')" 3
}
two_wait() { (($(cat "$work/out "? | grep -c 'waiting for another run of migrate (server process [0-9]') == 2)) && echo t; }

case_waiting_for_the_lock_ends_at_its_timeout() {
    write 0001_slow.sql <<<"SELECT pg_sleep(30);"
    start_up "$work/out 1"
    local first=$pid
    await 'the first run' sql "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted)"
    run app up --lock-timeout 1
    exits 5
    says 'still holds the lock after 1 s'
    kill -TERM "$first"
    wait "$first" || true
}

case_terminating_a_run_rolls_back_at_once() {
    local signal expected
    for signal in INT TERM; do
        expected=143
        [[ $signal == TERM ]] || expected=130
        write 0001_slow.sql <<<'CREATE TABLE a (n int); SELECT pg_sleep(600);'
        local code=0
        start_up "$work/out 1"
        await 'the slow file' sql "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600)%')"
        kill "-$signal" "$pid"
        wait "$pid" || code=$?
        is "$code" "$expected"
        await 'the end of the slow file' sql "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid())"
        is "$(exists a)" f
        grep -q 'rolled back' "$work/out 1" || fail "does not say what became of it: $(<"$work/out 1")"
    done
    write 0001_slow.sql <<<'CREATE TABLE a (n int);'
    run app up && exits 0
}

case_a_killed_run_leaves_nothing_half_and_the_next_one_completes() {
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    write 0002_slow.sql <<<'CREATE TABLE b (n int); SELECT pg_sleep(3); CREATE TABLE c (n int);'
    local client
    start_up "$work/out 1"
    await 'the slow file' sql "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(3)%')"
    client=$(pgrep -P "$pid" -x psql)
    kill -KILL "$pid" "$client"
    wait "$pid" 2>/dev/null || true
    is "$(exists b)" f
    run app up # waits for what is left of the first one's session
    exits 0
    is "$(exists a)$(exists b)$(exists c)" ttt
    is "$(sql 'SELECT count(*) FROM pawl.schema_migrations')" 2
}

case_a_server_that_stops_meanwhile_is_reported() {
    write 0001_slow.sql <<<'CREATE TABLE a (n int); SELECT pg_sleep(600);'
    local code=0
    start_up "$work/out 1"
    await 'the slow file' sql "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600)%')"
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)%'" >/dev/null
    wait "$pid" || code=$?
    is "$code" 1
    grep -q 'terminating connection' "$work/out 1" || fail "does not say why: $(<"$work/out 1")"
}

# Sessions of programs that stay until they are ended; as a role that the one who migrates sees little of.
connect_as() { # APPLICATION_NAME [URL]
    local seen="SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$1' AND query LIKE '%pg_sleep(600)%')"
    PGAPPNAME=$1 psql -X -q -d "${2:-${url/postgres@/consumer@}}" -c 'SELECT pg_sleep(600)' >/dev/null 2>&1 &
    await "the session of $1" sql "$seen"
}
disconnect_all() {
    local sleeping="FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)%' AND pid <> pg_backend_pid()"
    sql "SELECT pg_terminate_backend(pid) $sleeping" >/dev/null
    await 'the end of the sessions' sql "SELECT NOT EXISTS (SELECT $sleeping)"
}
as_migrator() { # COMMAND OPTIONS...: on pawl's own set
    local command=$1
    shift
    "$migrate" "$command" --database "${url/postgres@/migrator@}" "$@"
}

case_what_needs_stopped_programs_is_not_applied_beside_them() {
    local application newest beside alone other=$url
    new_database
    sql 'CREATE ROLE consumer LOGIN; CREATE ROLE migrator LOGIN' 2>/dev/null || true
    sql 'CREATE SCHEMA pawl AUTHORIZATION migrator'
    cp -R -- "$home/migrations" "$work/older"
    cp -R -- "$home/migrations" "$work/newer"
    newest=$(find "$home/migrations" -name '[0-9]*.sql' | wc -l)
    beside=$(printf '%04d_beside.sql' $((newest + 1)))
    alone=$(printf '%04d_alone.sql' $((newest + 2)))
    printf 'CREATE TABLE pawl.beside (n int);\n' >"$work/newer/$beside"
    printf -- '-- pawl: stop-programs\nCREATE TABLE pawl.alone (n int);\n' >"$work/newer/$alone"
    newer() { # COMMAND OPTIONS...
        as_migrator "$@" --name pawl --dir "$work/newer"
    }
    # Where nothing is applied nobody works.
    connect_as 'pawl early'
    run as_migrator up --name pawl --dir "$work/older" && exits 0
    disconnect_all

    run newer plan && exits 0 && says "$alone (stop all programs first)"
    says_not "$beside (stop"
    run newer plan --sql && exits 0 && says '-- Stop all programs of pawl first'
    for application in 'pawl payments' 'pawl dead letters' 'pawl retention' 'pawl alerts'; do
        connect_as "$application"
        run newer up && exits 6
        says "$alone"
        says "\"$application\" of consumer"
        says "$(sql "SELECT pid FROM pg_stat_activity WHERE application_name = '$application'")"
        says 'run this again: scripts/migrate up'
        is "$(sql 'SELECT max(version) FROM pawl.schema_migrations')" "$newest"
        disconnect_all
    done
    # A name that the URL of the configuration gives: the register knows whose session it is.
    connect_as renamed
    sql "INSERT INTO pawl.consumers (cluster, group_id) VALUES ('c', 'g');
         INSERT INTO pawl.processed_kafka_offsets (consumer_id, topic, partition, last_processed_offset, base_offset, released, owner_pid, owner_backend_start)
         SELECT 1, 't', 0, -1, 0, false, pid, backend_start FROM pg_stat_activity WHERE application_name = 'renamed'"
    run newer up && exits 6 && says '"renamed" of consumer'
    disconnect_all

    # Not in the way: other databases' programs, a short command, what only looks alike, and files
    # that need nobody to stop.
    connect_as 'pawl payments' "$other"
    connect_as 'pawl command'
    connect_as pawling
    run newer up && exits 0 && says "applied $alone"
    connect_as 'pawl beside'
    write 0001_a.sql <<<'CREATE TABLE a (n int);'
    run app up && exits 0
    write 0002_b.sql <<<$'-- pawl: stop-programs\nCREATE TABLE b (n int);'
    run app up && exits 6 && says 0002_b.sql
    is "$(exists b)" f
    disconnect_all
    run app up && exits 0
}

# What a build from before 0.1.0 left in a schema: its own files under the numbers that ours have.
unreleased() { # SCHEMA
    mkdir -p "$work/unreleased"
    printf 'CREATE TABLE pawl.consumers (consumer_id int);\n' >"$work/unreleased/0001_core.sql"
    printf 'CREATE TABLE pawl.of_before (n int);\n' >"$work/unreleased/0002_dead_letters.sql"
    run "$migrate" up --database "$url" --schema "$1" --name pawl --dir "$work/unreleased" && exits 0
}

refused_unreleased_case() { # SCHEMA
    local schema=$1 before command again
    local -a renamed=()
    [[ $schema == pawl ]] || renamed=(--schema "$schema")
    unreleased "$schema"
    write 0001_ledger.sql <<<'CREATE TABLE ledger (id bigint);'
    run app up "${renamed[@]}" && exits 0
    before=$(describe "$url" "$schema")
    for command in up plan 'plan --sql' 'status --exit-code'; do
        # shellcheck disable=SC2086 # words of a command
        run "$migrate" $command --database "$url" "${renamed[@]}" && exits 4
        says "the schema \"$schema\" was created by a build before 0.1.0 (it has 0001_core.sql)"
        says 'use the build that created it'
        says_not 'next free number'
        says_not 'applied  0001_consumers.sql'
    done
    is "$(describe "$url" "$schema")" "$before"
    # Nothing is in the way of the build that made it, or of the application's files.
    run "$migrate" status --exit-code --database "$url" --schema "$schema" --name pawl --dir "$work/unreleased" && exits 0
    run app status --exit-code "${renamed[@]}" && exits 0

    # What is printed can be pasted, and keeps what is not pawl's own.
    run "$migrate" up --database "$url" "${renamed[@]}" && exits 4
    again=$(grep -E '^ +psql ' <<<"$err")
    run bash -c "$again" && exits 0
    is "$(exists "$schema.of_before")$(exists public.ledger)" ft
    run "$migrate" up --database "$url" "${renamed[@]}" && exits 0 && says 'applied 0001_consumers.sql'
    is "$(exists "$schema.processed_kafka_offsets")" t
    run "$migrate" status --exit-code --database "$url" "${renamed[@]}" && exits 0
    run app status --exit-code "${renamed[@]}" && exits 0
    is "$(sql "SELECT to_regnamespace('pawl_unreleased') IS NULL")" t
}

case_a_schema_of_a_build_before_the_first_release_is_refused_with_what_to_do() { refused_unreleased_case pawl; }
case_another_schema_of_a_build_before_the_first_release_is_refused_too() { refused_unreleased_case other; }

case_an_unreleased_schema_that_has_only_the_first_file_is_refused() {
    mkdir "$work/first only"
    printf 'CREATE TABLE pawl.consumers (consumer_id int);\n' >"$work/first only/0001_core.sql"
    run "$migrate" up --database "$url" --name pawl --dir "$work/first only" && exits 0
    run "$migrate" up --database "$url" && exits 4 && says 'before 0.1.0'
    # An application may call its files so.
    write 0001_core.sql <<<'SELECT 1;'
    run app up && exits 0
    mv "$dir/0001_core.sql" "$dir/0001_other.sql"
    run app up && exits 4 && says 'has applied 0001_core.sql under this number' && says_not 'before 0.1.0'
}

case_another_schema_gets_the_same_tables() {
    local first=$url
    run "$migrate" up --database "$url" && exits 0
    new_database
    run "$migrate" up --database "$url" --schema other_1 && exits 0
    is "$(sql "SELECT to_regnamespace('pawl') IS NULL")" t
    is "$(describe "$url" other_1 | sed 's/other_1/pawl/g')" "$(describe "$first")"
    run "$migrate" status --exit-code --database "$url" --schema other_1 && exits 0
    "$migrate" plan --sql --database "$url" --schema third >"$work/plan.sql"
    run psql -X -q -o /dev/null -v ON_ERROR_STOP=1 -d "$url" -f "$work/plan.sql" && exits 0
    is "$(describe "$url" third | grep -c third)" "$(describe "$url" other_1 | grep -c other_1)"
    # Two in one database work side by side.
    is "$(sql "SELECT count(*) FROM other_1.acquire(1, 't', 0, 'me', 1, now())")" 0
    is "$(sql "SELECT count(*) FROM third.acquire(1, 't', 0, 'me', 1, now())")" 0
}

case_only_pawls_own_files_are_renamed_and_only_the_schemas_name() {
    write 0001_a.sql <<<$'CREATE SCHEMA pawl; CREATE TABLE pawl.mine (n int);'
    run app up --schema other && exits 0
    is "$(exists pawl.mine)$(exists other.schema_migrations)" tt
    mkdir "$home/renamed"
    cat >"$home/renamed/0001_a.sql" <<<$'CREATE TABLE pawl.a (x text DEFAULT \'unpawl.x my.pawl.x pawl.b, pawl.c pawl. and pawl\');\nCOMMENT ON TABLE pawl.a IS \'pawl.a\';'
    run "$migrate" up --database "$url" --schema third --name pawl --dir "$home/renamed" && exits 0
    is "$(sql "SELECT column_default FROM information_schema.columns WHERE table_schema = 'third' AND table_name = 'a'")" \
        "'unpawl.x my.pawl.x third.b, third.c pawl. and pawl'::text"
    is "$(sql "SELECT obj_description('third.a'::regclass)")" third.a
}

# Our own files must stay what the renaming understands.
case_our_files_name_the_schema_only_in_the_form_that_is_renamed() {
    is "$(grep -nE '"pawl"|SCHEMA pawl|search_path|[A-Za-z0-9_$.]pawl\.[a-z_]' "$root"/migrations/*.sql |
        grep -vF ':SET search_path = pg_catalog, pg_temp AS' || true)" ''
}

case_a_password_is_seen_nowhere() {
    psql -X -q -d "$server" -c "CREATE ROLE reader LOGIN PASSWORD 'p%@s :w''x'" 2>/dev/null || true
    psql -X -q -d "$server" -c 'GRANT ALL ON DATABASE '"${url##*/}"' TO reader'
    write 0001_slow.sql <<<"SELECT pg_sleep(600);"
    local address=${server#*@} secret form host port
    address=${address%/*} host=${address%:*} port=${address##*:}
    for form in "postgresql://reader:p%25%40s%20%3Aw%27x@$address/${url##*/}?application_name=shown" \
        "postgres://reader@$address/${url##*/}?password=p%25%40s%20%3Aw%27x&application_name=shown" \
        "host=$host port = $port user=reader password='p%@s :w\\'x' dbname=${url##*/} application_name='shown'"; do
        for secret in argument environment; do
            if [[ $secret == argument ]]; then
                "$migrate" up --database "$form" --dir "$dir" --name app >"$work/out 1" 2>&1 &
            else
                DATABASE_URL=$form "$migrate" up --dir "$dir" --name app >"$work/out 1" 2>&1 &
            fi
            pid=$!
            await 'the slow file' sql "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'reader' AND application_name = 'shown' AND query LIKE 'SELECT pg_sleep(600)%')"
            # shellcheck disable=SC2009 # the whole command lines matter, of every process
            ps -ww -eo args | grep -F shown | grep -E 'w.?.?.?x' | grep -v grep && fail "the process list shows it ($secret, $form)"
            # shellcheck disable=SC2009
            is "$(ps -ww -o args= --ppid "$pid" | grep -c shown)" 1
            kill -TERM "$pid"
            wait "$pid" || true
            grep -E 'w.?.?.?x' "$work/out 1" && fail "the output shows it ($form)"
            await 'the end of the slow file' sql "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'reader')"
        done
    done
}

case_a_password_arrives_as_it_was_meant() {
    # The server trusts everybody, so a psql in front of the real one shows what it was given.
    mkdir -p "$work/fake"
    cat >"$work/fake/psql" <<<$'#!/bin/sh\nprintf "%s|%s\\n" "$PGPASSWORD" "$*" >"$FAKE_SEEN"\nexit 2'
    chmod +x "$work/fake/psql"
    seen() { # URL
        PATH="$work/fake:$PATH" FAKE_SEEN="$work/seen" run "$migrate" status --database "$1"
        sed 's/ -X .* -d / /' "$work/seen"
    }
    is "$(seen 'postgresql://u:p%25%40s%5C%2F%20x@h:1/d?sslmode=require')" 'p%@s\/ x|-X -q -A -t -F '$'\x1f'' -v ON_ERROR_STOP=1 -d postgresql://u@h:1/d?sslmode=require'
    is "$(seen 'postgresql://u@h/d?a=b&password=q&c=d')" 'q|-X -q -A -t -F '$'\x1f'' -v ON_ERROR_STOP=1 -d postgresql://u@h/d?a=b&c=d'
    is "$(seen "host=h password='it\\'s \\\\ x' user=u")" "it's \\ x|-X -q -A -t -F "$'\x1f'" -v ON_ERROR_STOP=1 -d host=h  user=u "
    is "$(seen 'password=a\ b dbname=d')" 'a b|-X -q -A -t -F '$'\x1f'' -v ON_ERROR_STOP=1 -d  dbname=d '
    run "$migrate" status --database 'postgresql://u:%zz@h/d' && exits 2 && says '%25'
    run "$migrate" status --database 'host=h sslpassword=secret' && exits 2 && says_not secret && says 'service file'
    run "$migrate" status --database "host=h password='open" && exits 2 && says_not open
}

case_what_libpq_cannot_read_is_not_shown() {
    local form
    for form in 'postgresql://u:p%zzhidden@127.0.0.1:9/d' 'postgresql://u:pw@[::1hidden/d' \
        'postgresql://u:pa ss@word:hidden@127.0.0.1:9/d' 'postgresql://u:pa/hidden@127.0.0.1:9/d' \
        'postgresql://u:12/hidden@127.0.0.1:9/d' 'postgresql://u:pw@127.0.0.1:hidden/d' \
        'postgresql://127.0.0.1:9/d?hidden=x' 'postgresql://127.0.0.1:9/d?password=a&hidden' \
        'postgresql://127.0.0.1:9/d?sslmode=hidden' 'host=127.0.0.1 port=9 password=pa hidden=x' \
        'host=127.0.0.1 port=hidden' 'host=127.0.0.1 port=9 sslmode=hidden' "host=h password='hidden"; do
        run "$migrate" status --database "$form" && exits 2 && says_not hidden
    done
    run "$migrate" status --database 'postgresql://u@127.0.0.1:9/d?pass%77ord=hidden' && exits 1 && says_not hidden
}

case_the_database_is_found_in_the_environment() {
    write 0001_a.sql <<<'SELECT 1;'
    export DATABASE_URL=$url PGDATABASE=postgresql://nobody@127.0.0.1:1/nothing
    run "$migrate" up --dir "$dir" --name app && exits 0
    unset DATABASE_URL
    PGDATABASE=$url run "$migrate" status --exit-code --dir "$dir" --name app && exits 0
    local address=${server#*@}
    address=${address%/*}
    export PGDATABASE=${url##*/} PGHOST=${address%:*} PGPORT=${address##*:} PGUSER=postgres
    run "$migrate" status --exit-code --dir "$dir" --name app && exits 0
    run "$migrate" status --exit-code --dir "$dir" --name app --database "${url##*/}" && exits 0
    unset PGDATABASE PGHOST PGPORT PGUSER
}

case_an_unreachable_server_is_reported_with_what_to_do() {
    run "$migrate" up --database postgresql://postgres@127.0.0.1:1/nothing
    exits 1
    says refused
    says 'fix --database'
    run "$migrate" up --database "${server%/*}/no_such_database"
    exits 1
    says 'does not exist'
    says 'createdb'
}

case_a_pooler_is_refused() {
    local mode pooler
    for mode in session transaction; do
        pooler=$("$root/scripts/services" pgbouncer start "$work/pooler $mode" --mode "$mode" --postgres "$postgres")
        run "$migrate" up --database "${pooler%/*}/${url##*/}"
        exits 1
        says pooler
        says 'the address of the PostgreSQL server itself'
        "$root/scripts/services" pgbouncer stop "$work/pooler $mode"
        pooler=$("$root/scripts/services" pgbouncer start "$work/pooler $mode" --mode "$mode" --postgres "$postgres" --conf ignore_startup_parameters=options,extra_float_digits)
        run "$migrate" up --database "${pooler%/*}/${url##*/}"
        exits 1
        says pooler
        "$root/scripts/services" pgbouncer stop "$work/pooler $mode"
    done
    is "$(sql "SELECT to_regnamespace('pawl') IS NULL")" t
}

case_other_encodings_are_refused() {
    psql -X -q -d "$server" -c "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    run "$migrate" up --database "${server%/*}/latin"
    exits 1
    says LATIN1
    says "ENCODING 'UTF8'"
}

case_wrong_usage_says_what_is_right() {
    run "$migrate" && exits 2 && says 'usage: scripts/migrate'
    run "$migrate" --help && exits 0 && says 'exit codes'
    run "$migrate" down && exits 2 && says 'use up, status, plan, or grants'
    run "$migrate" up --databse x && exits 2 && says '--databse: unknown option'
    run "$migrate" up --database && exits 2 && says 'value is missing'
    run "$migrate" up status && exits 2 && says 'only one command'
    run "$migrate" up --dir "$dir" --database "$url" && exits 2 && says '--dir without --name'
    run "$migrate" up --name app --database "$url" && exits 2 && says '--name app without --dir'
    run "$migrate" up --name 'a;b' --dir "$dir" && exits 2
    run "$migrate" up --schema 'Robert"; DROP' && exits 2
    run "$migrate" up --schema pg_mine && exits 2
    run "$migrate" up --schema user --database "$url" && exits 2 && says 'keyword'
    run "$migrate" up --lock-timeout soon && exits 2 && says 'whole seconds'
    run "$migrate" up --dir "$dir/none" --name app && exits 2 && says 'not a folder'
    run "$migrate" grants && exits 2 && says '--role'
    run "$migrate" plan --sql --json && exits 2 && says 'exclude each other'
    run "$migrate" grants --role 'a"b' --json && exits 0
    is "$(python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(s["role"], s["sql"].count("TO \"a\"\"b\";") > 5)' "$work/out")" 'a"b True'
}

case_the_default_folder_is_found_from_everywhere() {
    ln -s "$migrate" "$work/a link"
    cd /
    run "$work/a link" up "--database=$url" && exits 0 && says 0001_consumers.sql
    cd -- "$work"
}

as_consumer() { # SQL; its result, or the error's SQLSTATE
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=sqlstate -d "${url/postgres@/worker@}" -c "$1" 2>&1 | sed 's/^ERROR:  //'
}

grants_case() { # SCHEMA
    local s=$1 statement
    run "$migrate" up --database "$url" --schema "$s" && exits 0
    sql 'DROP ROLE IF EXISTS worker' 2>/dev/null || true
    sql 'CREATE ROLE worker LOGIN'
    is "$(as_consumer "SELECT * FROM $s.consumers")" 42501
    "$migrate" grants --role worker --schema "$s" >"$work/grants.sql"
    run psql -X -q -v ON_ERROR_STOP=1 -d "$url" -f "$work/grants.sql" && exits 0

    # What a consumer does.
    is "$(as_consumer "SELECT max(version) >= 1 FROM $s.schema_migrations WHERE set_name = 'pawl'")" t
    is "$(as_consumer "SELECT count(database_id) FROM $s.database_identity")" 1
    is "$(as_consumer "INSERT INTO $s.consumers (cluster, group_id) VALUES ('c', 'g') ON CONFLICT (cluster, group_id) DO NOTHING RETURNING consumer_id")" 1
    is "$(as_consumer "INSERT INTO $s.consumer_topics (consumer_id, topic, partitions, start_policy) VALUES (1, 't', 1, 'earliest') ON CONFLICT (consumer_id, topic) DO NOTHING RETURNING source_id")" 1
    is "$(as_consumer "INSERT INTO $s.processed_kafka_offsets (consumer_id, topic, partition, last_processed_offset, base_offset) VALUES (1, 't', 0, -1, 0) ON CONFLICT DO NOTHING")" ''
    is "$(as_consumer "INSERT INTO $s.idempotency_scopes (name) VALUES ('s') ON CONFLICT (name) DO NOTHING RETURNING scope_id")" 1
    is "$(as_consumer "SELECT epoch >> 24, stored_offset, state FROM $s.acquire(1, 't', 0, 'me', 1, now())")" '1|-1|running'
    is "$(as_consumer "WITH claimed AS (INSERT INTO $s.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset) VALUES (1, 'k', 0, 1, 0, 0) ON CONFLICT (scope_id, key) DO NOTHING RETURNING pg_current_xact_id() AS x) UPDATE $s.processed_kafka_offsets r SET last_processed_offset = 0 FROM claimed WHERE r.consumer_id = 1 AND x IS NOT NULL RETURNING r.topic")" t
    is "$(as_consumer "INSERT INTO $s.processes (consumer_id, owner, topic, handlers, conditions, keys, policies) VALUES (1, 'me', 't', '', '', '', '') ON CONFLICT (consumer_id, owner, topic) DO UPDATE SET seen_at = now() RETURNING topic")" t
    is "$(as_consumer "DELETE FROM $s.processes WHERE owner = 'me' RETURNING topic")" t
    is "$(as_consumer "SELECT count(*) FROM $s.renew_keys(1, ARRAY['k'])")" 1
    is "$(as_consumer "UPDATE $s.idempotency_keys SET response = 'done' WHERE scope_id = 1 AND key = 'k' RETURNING key")" k
    is "$(as_consumer "SELECT $s.reject_advance(r, 7, 0, 1, NULL) FROM $s.processed_kafka_offsets r")" PW001
    is "$(as_consumer "SELECT $s.reject_advance(r, r.owner_epoch, 5, 6, NULL) FROM $s.processed_kafka_offsets r")" PW002
    is "$(as_consumer "INSERT INTO $s.skipped_messages (consumer_id, topic, partition, kafka_offset, reason) VALUES (1, 't', 0, 1, 'tombstone')")" ''
    is "$(as_consumer "SELECT $s.halt(1, 't', 0, r.owner_epoch, 'message', 'message_failed', 1, 'h', 'why', '{\"attempts\": 1}') FROM $s.processed_kafka_offsets r")" t
    is "$(as_consumer "SELECT $s.operator_change(1, 't', 0, NULL, 'running', 'resume', NULL)")" 0
    is "$(as_consumer "SELECT epoch >> 24 FROM $s.acquire(1, 't', 0, 'me', 1, now())")" 3
    is "$(as_consumer "SELECT $s.release(1, 't', 0, r.owner_epoch) FROM $s.processed_kafka_offsets r")" t
    is "$(as_consumer "INSERT INTO $s.dead_letter_feed (consumer_id, holder) VALUES (1, 'me') ON CONFLICT (consumer_id) DO UPDATE SET holder = excluded.holder RETURNING holder")" me
    is "$(as_consumer "SELECT string_agg(concat_ws(' ', action, from_offset, to_offset), ' ' ORDER BY history_id) FROM $s.offset_history")" 'halt 1 1 resume 1 1'
    # Retention, which one consumer of a group does.
    is "$(as_consumer "DELETE FROM $s.idempotency_keys WHERE scope_id = 1 AND key = 'k' RETURNING key")" k
    is "$(as_consumer "DELETE FROM $s.skipped_messages RETURNING kafka_offset")" 1
    is "$(as_consumer "UPDATE $s.idempotency_scopes SET pruned_to = now() RETURNING name")" s

    # What it does not do.
    while IFS= read -r statement; do
        is "$statement: $(as_consumer "$statement")" "$statement: 42501"
    done <<SQL
UPDATE $s.idempotency_keys SET payload_hash = 1
TRUNCATE $s.idempotency_keys
DELETE FROM $s.processed_kafka_offsets
DELETE FROM $s.offset_history
UPDATE $s.offset_history SET reason = 'another'
UPDATE $s.idempotency_scopes SET name = 'x'
UPDATE $s.skipped_messages SET reason = 'another'
DELETE FROM $s.consumers
UPDATE $s.consumers SET kafka_cluster_id = 'x'
UPDATE $s.database_identity SET created_at = now()
INSERT INTO $s.schema_migrations (set_name, version, file, checksum) VALUES ('pawl', 9999, 'f', 'c')
CREATE TABLE $s.mine (n int)
CREATE FUNCTION $s.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'
DROP TABLE $s.idempotency_keys
ALTER TABLE $s.processed_kafka_offsets ADD COLUMN mine int
DROP FUNCTION $s.release(integer, text, integer, bigint)
SQL
    # Nothing that the migrations bring is forgotten.
    is "$(sql "SELECT string_agg(c.relname, ' ') FROM pg_class c WHERE c.relnamespace = '$s'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT has_table_privilege('worker', c.oid, 'SELECT')")" ''
    sql 'DROP OWNED BY worker'
    sql 'DROP ROLE worker'
}

case_the_granted_rights_are_what_a_consumer_needs_and_no_more() { grants_case pawl; }
case_the_granted_rights_hold_in_another_schema() { grants_case other; }

case_a_role_name_is_quoted_in_grants() {
    run "$migrate" grants --role 'a "b"; DROP TABLE x'
    exits 0
    says 'TO "a ""b""; DROP TABLE x";'
}

case_a_role_without_the_right_to_create_schemas_can_migrate_into_an_existing_one() {
    sql 'DROP ROLE IF EXISTS owner' 2>/dev/null || true
    sql 'CREATE ROLE owner LOGIN'
    write 0001_a.sql <<<'SELECT 1;'
    run "$migrate" up --database "${url/postgres@/owner@}"
    exits 1
    says 'permission denied for database'
    says 'create the schema for this role'
    sql 'CREATE SCHEMA pawl AUTHORIZATION owner'
    run "$migrate" up --database "${url/postgres@/owner@}" && exits 0
    is "$(sql 'SELECT DISTINCT applied_by FROM pawl.schema_migrations')" owner
}

# ---- all of them ---------------------------------------------------------------------------------

mkdir -p -- "$home/scripts"
cp -- "$root/scripts/migrate" "$home/scripts/"
cp -R -- "$root/migrations" "$home/"
server=$("$root/scripts/services" postgres start "$postgres" --conf fsync=off ${PAWL_TEST_POSTGRES:+--version "$PAWL_TEST_POSTGRES"})

for name in $(compgen -A function case_); do
    [[ $name == *"$only"* ]] || continue
    before=$failures
    new_database
    cd -- "$work"
    "$name"
    cases=$((cases + 1))
    result=ok
    ((failures == before)) || result=FAILED
    printf '%-6s %s\n' "$result" "${name#case_}"
done
printf '%d cases, %d failures\n' "$cases" "$failures"
((cases > 0 && failures == 0))
