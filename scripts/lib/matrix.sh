# shellcheck shell=bash
# Runs tests on each version of a server, and keeps what came out. Sourced by scripts/test.

# What each server has its say in, chosen so that a version takes about five minutes: for PostgreSQL
# migrations, rights, pipelines, kills at every step, leases, the outbox and the commands of docs/; for
# Kafka groups, positions, logs, transactions and authentication. A program's tests, as ctest names them.
# shellcheck disable=SC2034  # by name
matrix_postgresql=(
    migrate docs pawl_postgres_connecting_tests pawl_postgres_flight_tests pawl_postgres_transaction_tests
    pawl_engine_crash_tests pawl_engine_handlers_tests pawl_engine_pipeline_tests pawl_engine_batch_tests
    pawl_engine_retention_tests pawl_leases_kills_tests pawl_outbox_publish_tests
    pawl_outbox_open_transaction_tests pawl_outbox_relay_tests pawl_cli_dlq_tests pawl_cli_security_tests
)
# shellcheck disable=SC2034
matrix_kafka=(
    docs pawl_kafka_away_tests pawl_engine_groups_tests pawl_engine_positions_tests
    pawl_engine_log_shapes_tests pawl_engine_fetch_tests pawl_outbox_relay_tests
    pawl_outbox_relay_losses_tests pawl_cli_security_tests
)
# shellcheck disable=SC2034
matrix_pgbouncer=(migrate pawl_engine_pooler_tests pawl_engine_swapped_database_tests)

# Tests of what a version cannot do, which are left out, and what the table says of it.
declare -A matrix_left_out=(
    # docs/retention.md is among those docs.
    [postgresql-13]='docs pawl_engine_retention_tests'
)
declare -A matrix_notes=(
    [postgresql-13]='without the removal of old keys, which needs 14'
    [kafka-3.9]='without kafka.group_protocol = "consumer", which needs 4.0'
)

# The tests of a version, one a line.
matrix_tests() { # NAME
    declare -n tests="matrix_${1%-*}"
    local test
    for test in "${tests[@]}"; do
        [[ " ${matrix_left_out[$1]:-} " == *" $test "* ]] || echo "$test"
    done
}

# Lines of server, version, status (tested, expected, no), release, day, tests, seconds, note; between
# tabs. A run writes those of the versions that it ran on; what is expected or refused stands there by hand.
matrix_results=$root/tests/matrix/results.tsv

# All that there are: postgresql-13 ... pgbouncer-1.24.
matrix_names() {
    local line server version
    for line in "${server_versions[@]}"; do
        read -r server version _ <<<"$line"
        echo "$server-$version"
    done
}

# What the build has to make for a server's tests.
matrix_targets() { # SERVER
    declare -n tests="matrix_$1"
    local test
    for test in "${tests[@]}"; do
        case $test in
            migrate) ;;
            docs) printf '%s\n' pawl-cli payments payments-produce ;;
            pawl_cli_security_tests) echo "$test" ;;
            pawl_cli_*) echo pawl_cli_tests ;;
            *) echo "$test" ;;
        esac
    done
}

# The environment by which scripts/services starts that server.
matrix_variable() { # SERVER
    case $1 in
        postgresql) echo PAWL_POSTGRES ;;
        kafka) echo PAWL_KAFKA ;;
        pgbouncer) echo PAWL_PGBOUNCER ;;
    esac
}

# Of what a run has started (PAWL_STARTED), the servers of a kind that were not of the asked place; fails
# when there was none at all. A folder that the servers' user cannot enter is copied before.
matrix_strangers() { # SERVER PLACE FILE
    local kind=$1
    [[ $kind != postgresql ]] || kind=postgres
    grep -q "^$kind " "$3" || return 1
    grep "^$kind " "$3" | grep -vF -e "$2" -e /programs/bin/postgres || true
}

# Replaces the line of a version, or adds it behind the others of its server.
matrix_record() { # SERVER VERSION STATUS RELEASE DAY TESTS SECONDS NOTE
    local line IFS=$'\t'
    line=$*
    awk -F'\t' -v OFS='\t' -v server="$1" -v version="$2" -v line="$line" '
        $1 == server && $2 == version { print line; done = 1; next }
        $1 != server && last == server && !done { print line; done = 1 }
        { print; last = $1 }
        END { if (!done) print line }' "$matrix_results" >"$matrix_results.new"
    mv -- "$matrix_results.new" "$matrix_results"
}

# ---- the tables ----------------------------------------------------------------------------------

matrix_title() {
    case $1 in
        postgresql) echo PostgreSQL ;;
        kafka) echo Kafka ;;
        pgbouncer) echo PgBouncer ;;
    esac
}

# docs/reference/versions.md: a row for each line.
matrix_table() {
    local server version status release day tests seconds note
    echo '| Server | Version | State | Release | Date | Test programs | Time | Note |'
    echo '|---|---|---|---|---|---|---|---|'
    while IFS='|' read -r server version status release day tests seconds note; do
        echo "| $(matrix_title "$server") | $version | $status | $release | $day | $tests | ${seconds:+$seconds s} | $note |"
    done < <(tr '\t' '|' <"$matrix_results")
}

# README.md: a row for each server, a column for each state.
matrix_summary() {
    local server
    echo '| Server | Tested | Expected | Unsupported |'
    echo '|---|---|---|---|'
    for server in postgresql kafka pgbouncer; do
        awk -F'\t' -v server="$server" -v title="$(matrix_title "$server")" '
            $1 == server { cell[$3] = cell[$3] (cell[$3] == "" ? "" : ", ") ($3 == "tested" ? $4 : $2) }
            $1 == server && $3 == "tested" { if (first == "" || $5 < first) first = $5; if ($5 > last) last = $5 }
            END {
                when = first == "" ? "" : " (" (first == last ? first : first " to " last) ")"
                printf "| %s | %s%s | %s | %s |\n", title, cell["tested"], when, cell["expected"], cell["no"]
            }' "$matrix_results"
    done
}

# A document with what stands between its two marks made anew.
with_versions() { # FILE TEXT
    awk -v text="$2" '
        /^<!-- versions: / { print; print ""; print text; print ""; inside = 1; next }
        /^<!-- \/versions -->/ { inside = 0; found = 1 }
        !inside { print }
        END { exit !found }' "$1"
}

# Into another folder than the checkout for the test that compares.
write_versions() { # FOLDER
    local file text
    mkdir -p -- "$1/docs/reference"
    for file in README.md docs/reference/versions.md; do
        if [[ $file == README.md ]]; then text=$(matrix_summary); else text=$(matrix_table); fi
        text=$(with_versions "$root/$file" "$text") ||
            fail "$file has no marks <!-- versions: ... --> and <!-- /versions -->"
        printf '%s\n' "$text" >"$1/$file"
    done
}
