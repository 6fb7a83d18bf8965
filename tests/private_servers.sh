# shellcheck shell=bash
# A PostgreSQL, a Kafka and a PgBouncer for a Python program that runs pawl. Sourced by tests/cases/run and tests/chaos/run,
# which set `root`, `bin` and `keep`, and have a `fail`.

check_programs() {
    [[ -x $bin/pawl ]] || fail "there is no pawl in $bin: scripts/test builds it"
    bin=$(realpath -- "$bin")
    # Debian's libraries are for Debian's Python.
    /usr/bin/python3 -c 'import psycopg, confluent_kafka' 2>/dev/null ||
        fail "needs python3-psycopg and python3-confluent-kafka; run: scripts/setup --dev"
}

# Sets `work`, and removes it in the end with all that runs there, unless it is to be kept.
make_work() { # NAME
    work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-$1.XXXXXX")
    chmod 711 "$work"
    mkdir -- "$work/scratch"
    group=
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}
clean_up() {
    trap - EXIT
    [[ ! $group ]] || kill -s KILL -- "-$group" 2>/dev/null || true
    if [[ $keep == yes ]]; then
        printf 'kept in %s; end and remove all with\n  %q stop-all %q && rm -r %q\n' "$work" \
            "$root/scripts/services" "$work" "$work" >&2
        return
    fi
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
}

port_of() { sed -E 's/.*:([0-9]+).*/\1/' <<<"$1"; } # URL

# Starts the servers, and runs the program with all that it needs to know in its environment. Sets `code`.
run_on_servers() { # PROGRAM ARGUMENTS...
    local services=$root/scripts/services url kafka bouncer
    unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS PGPORT
    url=$("$services" postgres start "$work/postgres" --conf max_connections=400)
    kafka=$("$services" kafka start "$work/kafka")
    bouncer=$("$services" pgbouncer start "$work/pgbouncer" --mode transaction --postgres "$work/postgres")
    # In a session of its own: what it started ends with it.
    setsid env PAWL="$bin/pawl" PAWL_MIGRATE="$root/scripts/migrate" PGHOST=127.0.0.1 PGUSER=postgres PYTHONDONTWRITEBYTECODE=1 \
        SITE_POSTGRES="postgresql://postgres@127.0.0.1:$(port_of "$url")/postgres" SITE_POSTGRES_FOLDER="$work/postgres" \
        SITE_KAFKA="$kafka" SITE_KAFKA_FOLDER="$work/kafka" SITE_PGBOUNCER_PORT="$(port_of "$bouncer")" \
        SITE_SERVICES="$services" SITE_SCRATCH="$work/scratch" SITE_KEEP="$keep" \
        /usr/bin/python3 "$@" &
    group=$!
    code=0
    wait "$group" || code=$?
}
