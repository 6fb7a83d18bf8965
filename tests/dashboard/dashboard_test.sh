#!/usr/bin/env bash
# The dashboard in Chromium, on a private PostgreSQL with a halted partition and dead letters in it.
# There is no Kafka, so only what is read from Kafka is unknown on the pages.
#   dashboard_test.sh FOLDER_OF_PROGRAMS [FOLDER_FOR_SCREENSHOTS]
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$(realpath -- "$1")
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-dashboard.XXXXXX")
chmod 711 "$work"
pictures=${2:-$work/pictures}
mkdir -p -- "$pictures"
served=''

clean_up() {
    trap - EXIT
    if [[ -n $served ]]; then
        kill -s KILL "$served" 2>/dev/null || true
        { wait "$served"; } 2>/dev/null || true
    fi
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'dashboard: %s\n' "$*" >&2
    exit 1
}

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
server=$("$root/scripts/services" postgres start "$work/postgres")
PGPORT=$(sed -E 's/.*:([0-9]+).*/\1/' <<<"$server")
export PGPORT PGHOST=127.0.0.1 PGUSER=postgres
createdb shop
url=postgresql://localhost/shop
"$root/scripts/migrate" up --database "$url" >"$work/migrate" 2>&1 || { cat "$work/migrate" >&2; fail "no tables"; }
psql -XAtq -v ON_ERROR_STOP=1 -v partitions="${PAWL_DASHBOARD_PARTITIONS:-40}" \
    -v letters="${PAWL_DASHBOARD_LETTERS:-2500}" -d "$url" -f "$root/tests/dashboard/seed.sql" >"$work/seed" 2>&1 ||
    { cat "$work/seed" >&2; fail "no data"; }

cat >"$work/shop.toml" <<'TOML'
[kafka]
bootstrap_servers = "127.0.0.1:1"
group = "orders"
[postgres]
url = "postgresql://localhost/shop"
[idempotency]
key = "{header:event-id}"
[monitoring]
actions_token = "a-token-for-the-test"
[[handler]]
name = "book"
topics = ["orders"]
sql = "INSERT INTO ledger (event_id, amount) VALUES ({header:event-id}, {/amount}::bigint)"
TOML

for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 20000))
    "$programs/pawl" dashboard --config "$work/shop.toml" --listen "127.0.0.1:$port" >"$work/out" 2>"$work/err" &
    served=$!
    # It prints its address, or exits because another process has the port.
    wait_until 60 written_or_ended 'The dashboard of' "$work/out" "$served" || fail "it prints nothing"
    ! grep -q 'The dashboard of' "$work/out" || break
    wait "$served" || true
    served=''
done
[[ -n $served ]] || { cat "$work/err" >&2; fail "it does not start"; }

# Debian's python3-selenium is for Debian's Python.
/usr/bin/python3 "$root/tests/dashboard/browse.py" "http://127.0.0.1:$port" "$url" "$pictures" "$served" ||
    { cat "$work/err" >&2; fail "the browser's part failed; the reason is printed above"; }

kill -s TERM "$served"
wait "$served" || fail "it did not end with 0 on SIGTERM"
served=''
[[ ! -s $work/err ]] || { cat "$work/err" >&2; fail "it printed errors"; }
