#!/usr/bin/env bash
# Runs the commands of README.md and of the pages for operators on private servers, unchanged and in the order of the pages.
# Only Kafka's address differs; PostgreSQL's port and user come from libpq's environment. The tutorial, which needs kcat and
# the package, is run by tests/package/debian_test.sh. Its end is the start of these pages: the database payments, and the
# topic payments with the account alice.
#   docs_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$(realpath -- "$1")
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl docs.XXXXXX")
chmod 711 "$work"
consumer=''

clean_up() {
    trap - EXIT
    [[ ! $consumer ]] || kill -s KILL "$consumer" 2>/dev/null || true
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'docs: %s\n' "$*" >&2
    exit 1
}

# The README's configuration is that of conf/payments.toml without its comments.
diff <("$root/tests/docs/blocks" "$root/README.md" payments.toml) \
    <(sed '/^#/d' "$root/conf/payments.toml" | sed '/./,$!d') ||
    fail "the configuration in README.md is not conf/payments.toml"

# ---- the commands --------------------------------------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
url=$("$root/scripts/services" postgres start "$work/postgres")
bootstrap=$("$root/scripts/services" kafka start "$work/kafka")
PGPORT=${url##*:}
export PGPORT=${PGPORT%/*} PGHOST=127.0.0.1 PGUSER=postgres PATH="$programs:$PATH"

# The reader's folder.
here="$work/a folder"
mkdir -p -- "$here"
ln -s -- "$root/scripts" "$root/migrations" "$root/apps" "$here"
sed "s/127.0.0.1:9092/$bootstrap/" "$root/conf/payments.toml" >"$here/payments.toml"
cd -- "$here"

run_blocks() { # MARKDOWN
    "$root/tests/docs/blocks" "$root/$1" run | sed "s/127.0.0.1:9092/$bootstrap/g" >"$work/commands"
    bash -o pipefail -e -x "$work/commands" </dev/null >"$work/output" 2>&1 ||
        { tail -n 60 "$work/output" >&2; fail "a command of $1 failed; its output is above"; }
}
query() { psql -XAtq -v ON_ERROR_STOP=1 -d "postgresql://localhost/${2:-payments}" -c "$1"; }
require() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] || { tail -n 60 "$work/output" >&2; fail "$1: expected $2, found $3"; }
}
quietly() { # COMMAND...
    "$@" >"$work/output" 2>&1 </dev/null || { tail -n 60 "$work/output" >&2; fail "failed: $*"; }
}
publish() { # TOPIC VALUE HEADERS
    query "SELECT pawl.publish('$1', 'alice', '$2', '$3')" >/dev/null
    quietly pawl relay --config payments.toml --drain
}

quietly createdb payments
quietly pawl migrate up --config payments.toml
quietly pawl migrate up --database postgresql://localhost/payments --name payments --dir apps/payments/migrations
query "INSERT INTO accounts (id) SELECT 'account-' || lpad(n::text, 4, '0') FROM generate_series(0, 999) AS n;
       INSERT INTO accounts (id) VALUES ('alice')"
quietly payments-produce --bootstrap-servers "$bootstrap" --payments 1000
quietly "$root/scripts/services" kafka create-topic "$work/kafka" orders 1
publish payments '{"account": "alice", "amount": 10}' '{"event-id": "p-1"}'
publish orders '{"event_id": "o-1", "customer": "alice", "total": 19.90}' '{}'
quietly pawl run --config payments.toml --drain
offsets() { query "SELECT partition, last_processed_offset FROM pawl.processed_kafka_offsets WHERE topic = 'payments' ORDER BY 1"; }
drained=$(offsets)
require "payments in the ledger" 1001 "$(query 'SELECT count(*) FROM ledger')"
require "duplicates" 10 "$(query 'SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets')"

run_blocks README.md
require "orders after the README" 'o-1' "$(query 'SELECT event_id FROM orders' orders)"

# Handlers of other pages in the same configuration.
check_config() { # PAGE BLOCK, after a configuration on stdin
    { cat && "$root/tests/docs/blocks" "$root/docs/$1" "$2"; } >"$work/$2"
    pawl check --config "$work/$2" >"$work/output" 2>&1 </dev/null ||
        { cat "$work/output" >&2; fail "check fails for $2 of docs/$1"; }
}
check_handler() { # PAGE BLOCK
    sed '/^\[\[handler/,$d' payments.toml | check_config "$1" "$2"
}
check_handler batches.md handler.toml
for block in response.toml statement.toml batch.toml; do check_handler stored-responses.md "$block"; done
echo secret >"$work/token"
check_handler external-calls-http.md http.toml
check_handler reference/configuration.md pattern.toml

# Leases in Redis, with the privileges that the page lists.
if "$programs/pawl" version | grep -q hiredis; then
    redis=$("$root/scripts/services" redis start "$work/redis" --mode server)
    read -ra user < <(sed -n 's/^user pawl /pawl /p' "$root/docs/external-calls-redis.md")
    redis-cli -p "${redis##*:}" ACL SETUSER "${user[@]}" >/dev/null
    echo secret >"$work/redis-password"
    {
        cat payments.toml
        "$root/tests/docs/blocks" "$root/docs/external-calls-redis.md" redis.toml | sed "s/redis.example:6379/$redis/"
    } >"$work/redis.toml"
    quietly pawl check --config "$work/redis.toml"
    grep -q 'a lease was acquired and released' "$work/output" || fail "check did not use Redis"
fi

echo 0123456789abcdef >"$work/actions-token"
check_config observe.md monitoring.toml <payments.toml
check_config dashboard.md dashboard.toml <payments.toml
check_config dashboard.md dashboard_proxy.toml <payments.toml

# The configuration of docs/outbox.md that only publishes.
"$root/tests/docs/blocks" "$root/docs/outbox.md" relay.toml | sed "s/127.0.0.1:9092/$bootstrap/" >"$work/relay.toml"
quietly pawl relay --drain --config "$work/relay.toml"

run_blocks docs/deploy.md

# The other pages are for a running consumer, which continues and catches up.
pawl run --config payments.toml >"$work/consumer.log" 2>&1 </dev/null &
consumer=$!
caught_up() {
    [[ $(offsets) == "$drained" &&
        $(query "SELECT count(*) FROM pawl.processed_kafka_offsets WHERE topic = 'payments' AND state = 'running' AND owner IS NOT NULL") == 8 ]]
}
wait_until 60 caught_up || { tail -n 30 "$work/consumer.log" >&2; fail "the consumer did not start"; }
for page in upgrade observe runbook/incidents runbook/progress runbook/halts runbook/offsets; do
    run_blocks "docs/$page.md"
    wait_until 60 caught_up || { tail -n 30 "$work/consumer.log" >&2; fail "the consumer did not continue after docs/$page.md"; }
done
for page in audit keys retention stored-responses; do run_blocks "docs/$page.md"; done
require "payments in the ledger after these pages" 1001 "$(query 'SELECT count(*) FROM ledger')"
require "recorded changes of offsets" 1 \
    "$(query "SELECT count(*) FROM pawl.offset_history WHERE action = 'offsets set'")"

kill -s TERM "$consumer"
code=0
wait "$consumer" || code=$?
consumer=''
require "exit code after SIGTERM" 0 "$code"

# A call whose process crashed.
query "INSERT INTO pawl.leases (scope_id, key, owner, token, lease_until, payload_hash, source_id, partition, kafka_offset)
       SELECT scope_id, 'payment-4711', 'a process that crashed', 1, now() - interval '1 minute', 0, source_id, 0, 17
         FROM pawl.scope_sources JOIN pawl.consumer_topics USING (source_id) WHERE topic = 'payments' LIMIT 1"
run_blocks docs/external-calls.md
require "the call whose outcome was recorded" 't|ch_123' \
    "$(query "SELECT done, convert_from(response, 'UTF8') FROM pawl.leases WHERE key = 'payment-4711'")"
query "DELETE FROM pawl.leases"

run_blocks docs/outbox.md
require "discarded messages" 1 "$(query "SELECT count(*) FROM pawl.outbox_failed WHERE status = 'discarded'")"

run_blocks docs/dead-letters.md
require "payments in the ledger after the replay" 2001 "$(query 'SELECT count(*) FROM ledger')"
require "dead letters after the replay" '10|10' \
    "$(query "SELECT count(*), count(*) FILTER (WHERE status = 'replayed') FROM pawl.dead_letters")"

# A message that halts its partition. The page names the reader's topic, partition, offset, and reason.
skip_as_in() { # PAGE, with a block `skip`
    local code=0 partition offset
    publish payments '{"account": "no such account", "amount": 1}' "{\"event-id\": \"halt-$1\"}"
    pawl run --config payments.toml --drain --set failures.retry_for=0s >"$work/output" 2>&1 </dev/null || code=$?
    require "exit code of a drain with a halted partition" 4 "$code"
    IFS='|' read -r partition offset < <(query "SELECT partition, halt_offset FROM pawl.processed_kafka_offsets WHERE state = 'halted'")
    "$root/tests/docs/blocks" "$root/docs/$1" skip |
        sed "s/\bTOPIC\b/payments/; s/\bPARTITION\b/$partition/; s/\bOFFSET\b/$offset/; s/\bTEXT\b/'no such account'/" >"$work/commands"
    PAWL_CONFIG=payments.toml quietly bash -e -x "$work/commands"
    require "the reason of the skipped message in docs/$1" "no such account" \
        "$(query "SELECT reason FROM pawl.skipped_messages WHERE topic = 'payments' AND partition = $partition AND kafka_offset = $offset")"
    require "halted partitions after docs/$1" 0 "$(query "SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'halted'")"
}
skip_as_in runbook/halts.md
skip_as_in runbook/offsets.md
