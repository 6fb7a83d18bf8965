#!/usr/bin/env bash
# Measures the cost of removing idempotency keys for a consumer at full speed, and whether table and
# index stop growing. docs/retention.md contains the figures.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"

usage() {
    cat <<'TEXT'
bench/retention.sh [--keys N] [--old N] [--payments N] [--runs N] [--cycles N] [--bin DIR]

Starts a private PostgreSQL and Kafka, and fills pawl.idempotency_keys with random keys, some of them
older than the retention. Then it applies payments from 8 partitions with `pawl run --drain`, in turn
without and with a concurrent removal of old keys. One in ten payments has an old key, so that claims
meet keys that are being removed. Prints messages per second of both, their ratio, the number of
removed keys, and the longest wait of a claim (log_lock_waits, from 5 ms).
Then it inserts and removes the number of old keys in cycles, with a VACUUM like autovacuum, and
prints the sizes.

  --keys N       number of keys (default: 10000000)
  --old N        keys older than the retention (default: 1000000)
  --payments N   number of payments (default: 200000)
  --runs N       number of runs (default: 3)
  --cycles N     number of cycles, 0 for none (default: 8)
  --bin DIR      folder of the programs (default: build/release/bin, which must be built)
TEXT
}

keys=10000000 old=1000000 payments=200000 runs=3 cycles=8 bin=$root/build/release/bin
while (($#)); do
    case $1 in
        --keys | --old | --payments | --runs | --cycles | --bin)
            (($# > 1)) || fail "$1 requires a value"
            printf -v "${1#--}" '%s' "$2"
            shift
            ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; fail "unknown option '$1'. The options are listed above" ;;
    esac
    shift
done
for number in "$keys" "$old" "$payments" "$runs" "$cycles"; do
    [[ $number =~ ^[0-9]{1,9}$ ]] || fail "whole numbers are required, not '$number'"
done

readonly partitions=8 accounts=1000
work=$(mktemp -d "${TMPDIR:-/tmp}/pawl-bench.XXXXXX")
chmod 755 "$work"
clean_up() {
    local status=$?
    trap '' INT TERM EXIT
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

server=$("$root/scripts/services" postgres start "$work/postgres" --conf shared_buffers=1GB \
    --conf max_wal_size=4GB --conf log_lock_waits=on --conf deadlock_timeout=5ms)
bootstrap=$("$root/scripts/services" kafka start "$work/kafka")
"$bin/payments-produce" --bootstrap-servers "$bootstrap" --partitions $partitions \
    --payments "$payments" --accounts $accounts >"$work/produced"
messages=$(sed -n 's/^messages=//p' "$work/produced")

sql() { psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }

config() { # NAME URL INTERVAL_OF_RETENTION
    cat <<TOML
[kafka]
bootstrap_servers = "$bootstrap"
group = "bench"
[postgres]
url = "$2"
[idempotency]
key = "{header:event-id}"
conflict = "ignore"
[[handler]]
topics = ["payments"]
sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
]
[log]
level = "warn"
[retention]
interval = "$3"
TOML
}

say "retention: $keys keys, $old of them old; $messages messages, $runs runs"
template=${server%/*}/filled
sql "$server" "CREATE DATABASE filled"
"$root/scripts/migrate" up --database "$template" >/dev/null
"$root/scripts/migrate" up --database "$template" --name payments --dir "$root/apps/payments/migrations" >/dev/null
sql "$template" "INSERT INTO accounts (id) SELECT 'account-' || lpad(n::text, 4, '0')
                 FROM generate_series(0, $accounts - 1) AS n"
# The state that the consumer would have stored: its first assignment creates these rows.
config filled "$template" 0s >"$work/filled.toml"
"$bin/pawl" offsets set --config "$work/filled.toml" --topic payments --all --to earliest >/dev/null
sql "$template" "
INSERT INTO pawl.idempotency_scopes (name) VALUES ('default/bench/payments');
INSERT INTO pawl.scope_sources SELECT s.scope_id, t.source_id FROM pawl.idempotency_scopes s, pawl.consumer_topics t;
ALTER TABLE pawl.idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;
INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset, created_at)
SELECT 1, CASE WHEN claimed THEN 'payment-1-' || lpad((g - 1)::text, 8, '0') ELSE gen_random_uuid()::text END,
       0, 1, 0, g, now() - CASE WHEN claimed OR old THEN interval '30 days' ELSE interval '1 hour' END
  FROM (SELECT g, random() < $old / $keys.0 AS old, g <= $payments AND g % 10 = 0 AS claimed
          FROM generate_series(1, $keys) g) keys;
ALTER TABLE pawl.idempotency_keys ADD PRIMARY KEY (scope_id, key)"
sql "$template" "VACUUM (ANALYZE) pawl.idempotency_keys"
size() { # URL RELATION
    sql "$1" "SELECT pg_size_pretty(pg_relation_size('pawl.$2'))"
}
say "  filled: $(size "$template" idempotency_keys) and $(size "$template" idempotency_keys_pkey)"

run_one() { # MODE RUN
    local name=$1_$2 url=${server%/*}/$1_$2 begun ended
    sql "$server" "CREATE DATABASE $name TEMPLATE filled"
    sql "$server" "CHECKPOINT"
    config "$name" "$url" "$([[ $1 == removal ]] && echo 100ms || echo 0s)" >"$work/$name.toml"
    begun=$(date +%s%N)
    "$bin/pawl" run --config "$work/$name.toml" --drain >"$work/$name.log" 2>&1 </dev/null ||
        { tail -n 20 "$work/$name.log" >&2; fail "$name failed, see above"; }
    ended=$(date +%s%N)
    echo "$((messages * 1000000000 / (ended - begun)))" >>"$work/$1.rates"
    say "  $name: $(tail -n 1 "$work/$1.rates") messages/s, $(sql "$url" "
        SELECT count(*) FROM pawl.idempotency_keys WHERE created_at < now() - interval '7 days'") old keys left, $(sql "$url" "
        SELECT coalesce(sum(duplicate_count), 0) FROM pawl.processed_kafka_offsets") duplicates"
    sql "$server" "DROP DATABASE $name"
}
for ((run = 1; run <= runs; ++run)); do
    run_one alone "$run"
    run_one removal "$run"
done
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
alone=$(median "$work/alone.rates") removal=$(median "$work/removal.rates")
printf '%-28s %s\n' 'messages/s without removal' "$alone" 'messages/s with removal' "$removal" \
    'ratio' "$(awk -v a="$removal" -v b="$alone" 'BEGIN { printf "%.3f", a / b }')"
# "process 1 acquired ShareLock on transaction 2 after 12.3 ms", and in its CONTEXT the index of what
# the claim met; payments that meet on one account name another relation.
claim_waits() {
    awk '/ acquired .* after [0-9.]+ ms/ { waited = $0; sub(/.* after /, "", waited); sub(/ ms.*/, "", waited) }
         /CONTEXT: .*idempotency_keys/ && waited != "" { print waited; waited = "" }' "$work/postgres/service.log"
}
printf '%-28s %s\n' 'claims that waited over 5 ms' "$(claim_waits | wc -l)" \
    'longest of them, ms' "$(claim_waits | sort -n | tail -n 1 | grep . || echo none)"

((cycles > 0)) || exit 0
url=${server%/*}/cycles
sql "$server" "CREATE DATABASE cycles TEMPLATE filled"
config cycles "$url" 0s >"$work/cycles.toml"
printf '\n%5s %10s %12s %12s %12s %14s\n' cycle removed 'prune s' table index 'WAL per key'
for ((cycle = 1; cycle <= cycles; ++cycle)); do
    sql "$url" "UPDATE pawl.processed_kafka_offsets SET last_timestamp_ms = extract(epoch FROM now()) * 1000"
    before=$(sql "$url" "SELECT pg_current_wal_lsn()") begun=$(date +%s)
    removed=$("$bin/pawl" prune --config "$work/cycles.toml" --set retention.load=100 --json | sed -nE 's/^ *"keys": ([0-9]+).*/\1/p')
    sql "$url" "VACUUM pawl.idempotency_keys"
    wal=$(sql "$url" "SELECT (pg_current_wal_lsn() - '$before'::pg_lsn)::bigint / greatest($removed, 1)")
    ended=$(date +%s)
    printf '%5s %10s %12s %12s %12s %14s\n' "$cycle" "$removed" $((ended - begun)) \
        "$(size "$url" idempotency_keys)" "$(size "$url" idempotency_keys_pkey)" "$wal"
    sql "$url" "
    INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset, created_at)
    SELECT 1, gen_random_uuid()::text, 0, 1, 0, g, now() - interval '30 days' FROM generate_series(1, $old) g"
done
