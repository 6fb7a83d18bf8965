#!/usr/bin/env bash
# Does what README.md and the pages for operators tell the reader, on private servers: the commands as
# they stand there, in their order. Only Kafka's address is another one; PostgreSQL's port and user
# come from libpq's environment.
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

# ---- links and names -----------------------------------------------------------------------------

# shellcheck disable=SC2016 # backticks are Markdown's
# Relative links outside of code lead to files and headings that are there, and paths in backticks exist.
check_references() { # MARKDOWN
    local file=$1 folder target heading
    folder=$(dirname -- "$file")
    while IFS= read -r target; do
        heading=''
        [[ $target != *'#'* ]] || heading=${target#*#}
        target=${target%%#*}
        [[ -z $target || -e $folder/$target ]] || fail "${file#"$root/"}: there is no $target"
        [[ -z $heading ]] || headings "$folder/${target:-$(basename -- "$file")}" | grep -qxF -- "$heading" ||
            fail "${file#"$root/"}: ${target:-it} has no heading #$heading"
    done < <(awk '/^```/ { code = !code } !code' "$file" |
        grep -oE '\]\([^)]*\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^[a-z]+:' || true)
    while IFS= read -r target; do
        [[ -e $root/$target ]] || fail "${file#"$root/"}: there is no $target"
    done < <(grep -oE '`(framework|tests|scripts|conf|apps|migrations|docs|bench|cmake)/[A-Za-z0-9_./-]*`' "$file" |
        tr -d '`' | sort -u || true)
}

# As GitHub makes anchors of headings.
headings() { # MARKDOWN
    sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for document in "$root/README.md" "$root/CONTRIBUTING.md" "$root"/docs/*.md; do check_references "$document"; done

# The README's config is the one in conf/, which adds only comments.
diff <("$root/tests/docs/blocks" "$root/README.md" payments.toml) \
    <(sed '/^#/d' "$root/conf/payments.toml" | sed '/./,$!d') ||
    fail "the config in README.md is not conf/payments.toml"

# ---- the commands --------------------------------------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
url=$("$root/scripts/services" postgres start "$work/postgres")
bootstrap=$("$root/scripts/services" kafka start "$work/kafka")
PGPORT=${url##*:}
export PGPORT=${PGPORT%/*} PGHOST=127.0.0.1 PGUSER=postgres PATH="$programs:$PATH"

# A checkout as the reader has it, with Kafka's address in its config.
here="$work/a checkout"
mkdir -p -- "$here/conf"
ln -s -- "$root/scripts" "$root/migrations" "$root/apps" "$here"
sed "s/127.0.0.1:9092/$bootstrap/" "$root/conf/payments.toml" >"$here/conf/payments.toml"
cd -- "$here"

run_blocks() { # MARKDOWN
    "$root/tests/docs/blocks" "$1" run | sed "s/127.0.0.1:9092/$bootstrap/g" >"$work/commands"
    bash -o pipefail -e -x "$work/commands" </dev/null >"$work/output" 2>&1 ||
        { tail -n 60 "$work/output" >&2; fail "a command of ${1#"$root/"} failed; what they said stands above"; }
}
query() { psql -XAtq -v ON_ERROR_STOP=1 -d postgresql://localhost/payments -c "$1"; }
require() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] || { tail -n 60 "$work/output" >&2; fail "$1: expected $2, found $3"; }
}

run_blocks "$root/README.md"
while IFS= read -r line; do
    # How long it took differs, and whether the log's end was known at that moment.
    text=${line% in [0-9]*}
    grep -qF -- "${text%, lag [0-9]*}" "$work/output" || fail "README.md: nothing says '$line'"
done < <("$root/tests/docs/blocks" "$root/README.md" run.log)
require "payments in the ledger after the README" 1000 "$(query 'SELECT count(*) FROM ledger')"
require "entries of the accounts" 1000 "$(query 'SELECT sum(entries) FROM accounts')"
require "duplicates" 10 "$(query 'SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets')"

# Handlers of other pages in the same config, against what stands in the database.
check_handler() { # MARKDOWN BLOCK
    {
        sed '/^\[\[handler/,$d' conf/payments.toml
        "$root/tests/docs/blocks" "$root/$1" "$2"
    } >"$work/$2"
    pawl check --config "$work/$2" >"$work/output" 2>&1 ||
        { cat "$work/output" >&2; fail "check refuses $2 of $1"; }
    grep -q 'payments' "$work/output" || fail "check did not look at $2 of $1"
}
check_handler docs/batches.md handler.toml
for block in response.toml statement.toml batch.toml; do check_handler docs/responses.md "$block"; done

echo secret >"$work/token"
check_handler docs/effects.md http.toml
check_handler docs/configuration.md pattern.toml

# Leases in Redis, with the right that docs/effects.md gives.
if "$programs/pawl" version | grep -q hiredis; then
    redis=$("$root/scripts/services" redis start "$work/redis" --mode server)
    read -ra user < <(sed -n 's/^user pawl /pawl /p' "$root/docs/effects.md")
    redis-cli -p "${redis##*:}" ACL SETUSER "${user[@]}" >/dev/null
    echo secret >"$work/redis-password"
    {
        cat conf/payments.toml
        "$root/tests/docs/blocks" "$root/docs/effects.md" redis.toml | sed "s/redis.example:6379/$redis/"
    } >"$work/redis.toml"
    pawl check --config "$work/redis.toml" >"$work/output" 2>&1 ||
        { cat "$work/output" >&2; fail "check refuses redis.toml of docs/effects.md"; }
    grep -q 'a lease was taken there' "$work/output" || fail "check did not look at Redis"
fi

# What docs/observe.md and docs/dashboard.md have a process serve.
echo 0123456789abcdef >"$work/actions-token"
while read -r page block; do
    {
        cat conf/payments.toml
        "$root/tests/docs/blocks" "$root/docs/$page" "$block"
    } >"$work/$block"
    pawl check --config "$work/$block" >"$work/output" 2>&1 </dev/null ||
        { cat "$work/output" >&2; fail "check refuses $block of docs/$page"; }
done <<'TEXT'
observe.md monitoring.toml
dashboard.md dashboard.toml
dashboard.md dashboard_proxy.toml
TEXT

# The config of docs/outbox.md that only relays.
"$root/tests/docs/blocks" "$root/docs/outbox.md" relay.toml | sed "s/127.0.0.1:9092/$bootstrap/" >"$work/relay.toml"
pawl relay --drain --config "$work/relay.toml" >"$work/output" 2>&1 ||
    { cat "$work/output" >&2; fail "relay refuses the config of docs/outbox.md"; }

# The manual's commands are for a running consumer, and leave it running and caught up.
pawl run --config conf/payments.toml >"$work/consumer.log" 2>&1 </dev/null &
consumer=$!
run_blocks "$root/docs/deploy.md"
run_blocks "$root/docs/upgrading.md"
run_blocks "$root/docs/observe.md"
run_blocks "$root/docs/runbook.md"
grep -q '"partitions"' "$work/output" || fail "offsets show --json printed no JSON"
run_blocks "$root/docs/retention.md"
run_blocks "$root/docs/responses.md"
caught_up() {
    [[ $(query "SELECT count(*), sum(last_processed_offset + 1) FROM pawl.processed_kafka_offsets
                 WHERE state = 'running'") == '8|1010' ]]
}
wait_until 60 caught_up || { tail -n 30 "$work/consumer.log" >&2; fail "the consumer did not catch up again"; }
require "payments in the ledger after the manual" 1000 "$(query 'SELECT count(*) FROM ledger')"
require "recorded changes of positions" 1 \
    "$(query "SELECT count(*) FROM pawl.offset_history WHERE action = 'offsets set'")"

kill -s TERM "$consumer"
code=0
wait "$consumer" || code=$?
consumer=''
require "exit code after SIGTERM" 0 "$code"

# A call whose process died.
query "INSERT INTO pawl.leases (scope_id, key, owner, token, lease_until, payload_hash, source_id, partition, kafka_offset)
       SELECT scope_id, 'payment-4711', 'a process that is gone', 1, now() - interval '1 minute', 0, source_id, 0, 17
         FROM pawl.scope_sources LIMIT 1"
run_blocks "$root/docs/effects.md"
require "the call that was resolved" 't|ch_123' \
    "$(query "SELECT done, convert_from(response, 'UTF8') FROM pawl.leases WHERE key = 'payment-4711'")"
query "DELETE FROM pawl.leases"

run_blocks "$root/docs/outbox.md"
grep -q 'does not exist in Kafka' "$work/output" || fail "docs/outbox.md: no message was set apart"
require "messages that are given up" 1 "$(query "SELECT count(*) FROM pawl.outbox_failed WHERE status = 'discarded'")"

run_blocks "$root/docs/failures.md"
require "payments in the ledger after replay" 2000 "$(query 'SELECT count(*) FROM ledger')"
require "letters that are not replayed" 0 "$(query "SELECT count(*) FROM pawl.dead_letters WHERE status <> 'replayed'")"
[[ $(query 'SELECT count(*) FROM pawl.dead_letters') -gt 3 ]] || fail "docs/failures.md: nothing died"
