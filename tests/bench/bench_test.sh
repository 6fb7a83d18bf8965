#!/usr/bin/env bash
# The bench with a few payments: its table is complete, its results can be read again, usage errors are
# rejected, and it leaves nothing behind, also if it is interrupted.
#   bench_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$1
TMPDIR=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-bench-test.XXXXXX")
export TMPDIR
chmod 711 "$TMPDIR"
trap '"$root/scripts/services" stop-all "$TMPDIR" || true; rm -rf -- "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}
require_clean() {
    local left
    left=$(find "$TMPDIR" -mindepth 1 -maxdepth 1 -name 'pawl-bench.*')
    [[ ! $left ]] || fail "$1 left $left behind"
}
refuse() { # ARGUMENTS...
    local code=0
    "$root/scripts/bench" "$@" >"$TMPDIR/screen" 2>&1 || code=$?
    ((code == 2)) || { cat "$TMPDIR/screen" >&2; fail "exit code $code instead of 2 of: $*"; }
}

refuse nonsense
refuse --payments 0
refuse --runs two
refuse --bin "$TMPDIR/nowhere"
refuse --migrations "$TMPDIR/nowhere"
refuse --write --output "$TMPDIR/results"

results=$TMPDIR/results
"$root/scripts/bench" throughput cpu --quick --payments 2000 --bin "$programs" --output "$results" >"$TMPDIR/table"
cat "$TMPDIR/table"
require_clean "the bench"

# A row for each mode and way to commit, with figures in all columns but those that it cannot have.
for mode in naive code sql; do
    reading='-'
    [[ $mode != code ]] || reading='[0-9]+ %'
    for commit in synchronous 'asynchronous|replayable'; do
        grep -qE "^$mode +($commit)  +[0-9.,]+ +[0-9]+\.[0-9]+ +[0-9]+ % +$reading +[0-9]" "$TMPDIR/table" ||
            fail "the table lacks a complete row of $mode, $commit"
    done
done
for limit in 'one transaction per message' 'one transaction per message, with a read' 'batches of'; do
    grep -qE "^limit, $limit.* (synchronous|asynchronous) +[0-9.,]+ " "$TMPDIR/table" ||
        fail "the table lacks the limit with $limit"
done
grep -q '^# Measured' "$results/results.md" || fail "results.md was not written"
! command -v gnuplot >/dev/null || grep -q '</svg>' "$results/throughput.svg" || fail "the plot was not drawn"
# Tables can be created again from the raw results, without servers.
cp -- "$results/results.md" "$TMPDIR/before"
"$root/scripts/bench" --report --output "$results" >"$TMPDIR/again"
diff "$TMPDIR/before" "$results/results.md" || fail "--report creates other tables from the same results"
diff "$TMPDIR/table" "$TMPDIR/again" || fail "--report prints other tables from the same results"

"$root/scripts/bench" outbox publish outbox-table --quick --modes sql --bin "$programs" \
    --output "$TMPDIR/outbox" >"$TMPDIR/table"
cat "$TMPDIR/table"
require_clean "the bench of the outbox"
for row in 'pawl, [14] shards?  +[0-9.,]+ +[0-9.]+' 'by hand, 1000? at once  +[0-9.,]+ +[0-9.]+' \
    'pawl, 4 shards, at 500/s .*[0-9] +[0-9.,]+$' 'sql +[0-9.,]+ +[0-9.,]+ +[0-9.]+' '50,000 +[0-9.]+ +[0-9.]+'; do
    grep -qE "^$row" "$TMPDIR/table" || fail "the tables of the outbox lack '$row'"
done

"$root/scripts/bench" calls leases --quick --bin "$programs" --output "$TMPDIR/leases" >"$TMPDIR/table"
cat "$TMPDIR/table"
require_clean "the bench of leases"
# Rows with HTTP contain the number of concurrent calls and the cost of the API.
for row in 'pawl, C\+\+' 'pawl, http' 'by hand, HTTP'; do
    heard='-'
    [[ $row == 'pawl, C\+\+' ]] || heard='[0-9.]+'
    for partitions in '1 partition' '8 partitions'; do
        grep -qE "^$row, $partitions +[0-9.,]+ +[0-9]+ % +[0-9.]+ +$heard +$heard +[0-9.,]+ +[0-9.,]+ +$heard +[0-9.,]+$" \
            "$TMPDIR/table" || fail "the table lacks a complete row of $row, $partitions"
    done
done
for row in 'pawl, C\+\+, postgres' 'pawl, C\+\+, redis' 'by hand, no leases'; do
    grep -qE "^$row, 8 partitions( +[0-9.,]+){6}$" "$TMPDIR/table" || fail "the table lacks a complete row of $row"
done

"$root/scripts/bench" concurrency --quick --modes sql --bin "$programs" --output "$TMPDIR/side" >"$TMPDIR/table"
cat "$TMPDIR/table"
require_clean "the bench of concurrent messages"
grep -qE '^sql( +[0-9.,]+){3} +[0-9]+ %$' "$TMPDIR/table" || fail "the table lacks a complete row of sql"

"$root/scripts/bench" monitoring --quick --modes sql --bin "$programs" --output "$TMPDIR/watched" >"$TMPDIR/table"
cat "$TMPDIR/table"
require_clean "the bench of [monitoring]"
grep -qE '^sql( +[0-9.,]+){5} +- +- +-$' "$TMPDIR/table" || fail "the table lacks a complete row of sql"

# Ctrl-C in the middle of a measurement.
interrupt_at ' messages/s$' "$TMPDIR/screen" \
    "$root/scripts/bench" --quick --bin "$programs" --output "$results"
require_clean "the interrupted bench"
