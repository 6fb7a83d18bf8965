#!/usr/bin/env bash
# Runs the recipes of docs/ on private servers: tables, configurations, and commands as the pages contain
# them, with another address of Kafka. The rows of a recipe must stay the same when all messages are sent
# again, and when the log is read again from its start.
#   recipes_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/waiting.sh
source "$root/tests/waiting.sh"
programs=$(realpath -- "$1")
pages=("$root"/docs/recipes-{upserts,events,debezium,calls,outbox}.md "$root"/docs/{move-a-consumer,backfill}.md)
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl-recipes.XXXXXX")
chmod 711 "$work"
producer='' consumer='' courier=''

clean_up() {
    local process
    trap - EXIT
    for process in $producer $consumer $courier; do
        kill -s KILL "$process" 2>/dev/null || true
        { wait "$process"; } 2>/dev/null || true
    done
    "$root/scripts/services" stop-all "$work" || true
    rm -rf -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    printf 'recipes: %s\n' "$*" >&2
    exit 1
}

# ---- servers, topics and messages ----------------------------------------------------------------

unset DATABASE_URL PGDATABASE PGPASSWORD PGSERVICE PGOPTIONS
"$root/scripts/services" postgres start "$work/postgres" >"$work/url" &
postgres=$!
bootstrap=$("$root/scripts/services" kafka start "$work/kafka")
wait "$postgres" || fail "PostgreSQL did not start"
PGPORT=$(sed -E 's/.*:([0-9]+).*/\1/' "$work/url")
export PGPORT PGHOST=127.0.0.1 PGUSER=postgres PATH="$programs:$PATH"
mkdir -- "$work/here" "$work/sent"
cd -- "$work/here"

query() { psql -XAtq -v ON_ERROR_STOP=1 -d postgresql://localhost/shop -c "$1"; }
said() { # COMMAND...; what it says is shown when it fails
    "$@" >"$work/output" 2>&1 </dev/null || { tail -n 60 "$work/output" >&2; fail "failed: $*"; }
}
require() { # WHAT EXPECTED ACTUAL
    [[ $2 == "$3" ]] || { tail -n 30 "$work/output" >&2; fail "$1: expected"$'\n'"$2"$'\n'"found"$'\n'"$3"; }
}
require_said() { # TEXT
    grep -qF -- "$1" "$work/output" || { cat "$work/output" >&2; fail "nothing of '$1' stands above"; }
}

# The producer's side: the outbox of a database of its own.
for database in producer shop; do
    said createdb "$database"
    said "$root/scripts/migrate" up --database "postgresql://localhost/$database"
done
cat >"$work/producer.toml" <<TOML
[kafka]
bootstrap_servers = "$bootstrap"
[postgres]
url = "postgresql://localhost/producer"
[outbox]
transactions = false
TOML
pawl relay --config "$work/producer.toml" >"$work/producer.log" 2>&1 </dev/null &
producer=$!

topic() { # NAME PARTITIONS
    said payments-produce --bootstrap-servers "$bootstrap" --topic "$1" --partitions "$2" --payments 0
}
# Messages from stdin, one a line: headers, key and value with tabs between, \N for null. Those of one
# key keep their order, others need not.
send() { # TOPIC
    tee -a "$work/sent/$1" >"$work/messages"
    publish "$1" "$work/messages"
}
send_all_again() { publish "$1" "$work/sent/$1"; } # TOPIC
publish() { # TOPIC FILE
    {
        echo 'CREATE TEMP TABLE message (n serial, headers jsonb, key text, value text);'
        echo 'COPY message (headers, key, value) FROM stdin;'
        cat -- "$2"
        echo '\.'
        echo "SELECT pawl.publish('$1', key, value, headers) FROM message ORDER BY n;"
    } >"$work/publish.sql"
    said psql -Xq -v ON_ERROR_STOP=1 -d postgresql://localhost/producer -f "$work/publish.sql"
    wait_until 60 all_is_published || { tail -n 30 "$work/producer.log" >&2; fail "the messages for $1 were not published"; }
}
all_is_published() {
    [[ ! $(psql -XAtq -d postgresql://localhost/producer -c 'SELECT 1 FROM pawl.outbox LIMIT 1') ]]
}

# ---- recipes -------------------------------------------------------------------------------------

block() { # NAME, which the file gets as well
    "$root/tests/docs/blocks" <(cat -- "${pages[@]}") "$1" | sed "s/127.0.0.1:9092/$bootstrap/" >"./$1"
}
tables() { # NAME
    block "$1.sql"
    said psql -Xq -v ON_ERROR_STOP=1 -d postgresql://localhost/shop -f "$1.sql"
}
config() { # NAME
    block "$1.toml"
    grep -q '^\[kafka\]' "$1.toml" || { cat connection.toml "$1.toml" >"$work/whole" && mv -- "$work/whole" "$1.toml"; }
}
check() { # NAME
    said pawl check --config "$1.toml"
}
run_block() { # NAME
    block "$1.run"
    bash -o pipefail -e -x "$1.run" </dev/null >"$work/output" 2>&1 ||
        { tail -n 60 "$work/output" >&2; fail "a command of $1.run failed; what they said stands above"; }
}
drain() { # NAME
    said pawl run --drain --config "$1.toml"
}
from_the_start() { # NAME TOPIC
    said pawl offsets set --config "$1.toml" --topic "$2" --all --to earliest --because "the log is read again"
    drain "$1"
}
# NAME TOPIC QUERY EXPECTED: what is there; and is still there when all messages were sent again and the
# log is read again from its start.
settle() {
    drain "$1"
    require "$1" "$4" "$(query "$3")"
    send_all_again "$2"
    from_the_start "$1" "$2"
    require "$1, all messages sent again, and the log read again" "$4" "$(query "$3")"
}
duplicates() { # TOPIC
    query "SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets WHERE topic = '$1'"
}
stored_keys() { # TOPIC
    query "SELECT count(*) FROM pawl.idempotency_keys JOIN pawl.consumer_topics USING (source_id) WHERE topic = '$1'"
}

block connection.toml

upsert() {
    topic products 2
    tables upsert
    config upsert
    check upsert
    send products <<'MESSAGES'
{"event-id": "e1"}	p1	{"name": "lamp", "version": 1}
{"event-id": "e2"}	p2	{"name": "chair", "version": 7}
{"event-id": "e3"}	p1	{"name": "lamp, green", "version": 3}
{"event-id": "e2"}	p2	{"name": "chair", "version": 7}
{"event-id": "e4"}	p1	{"name": "lamp, red", "version": 2}
MESSAGES
    settle upsert products 'SELECT id, name, version FROM products ORDER BY id' \
        $'p1|lamp, green|3\np2|chair|7'
    require "keys of products" 4 "$(stored_keys products)"

    topic prices 2
    tables upsert_offset
    config upsert_offset
    check upsert_offset
    send prices <<'MESSAGES'
\N	s1	{"price": 1.50}
\N	s2	{"price": 2}
\N	s1	{"price": 1.75}
MESSAGES
    settle upsert_offset prices 'SELECT sku, price FROM prices ORDER BY sku' $'s1|1.75\ns2|2'
    # Only the guard keeps a price while old messages are applied again.
    query "UPDATE prices SET price = 5, log_offset = 1000000 WHERE sku = 's1';
           UPDATE prices SET price = 5, log_offset = 1000000, log = 'a partition that it left' WHERE sku = 's2'"
    from_the_start upsert_offset prices
    require "prices of a later offset, and of another log" $'s1|5\ns2|2' \
        "$(query 'SELECT sku, price FROM prices ORDER BY sku')"
    require "keys of prices" 0 "$(stored_keys prices)"
}

tombstone() {
    topic addresses 2
    tables tombstone
    config tombstone
    check tombstone
    send addresses <<'MESSAGES'
\N	a1	{"street": "Elm 1", "city": "Bern"}
\N	a2	{"street": "Oak 2", "city": "Graz"}
\N	a1	\N
\N	a1	{"street": "Elm 5", "city": "Bern"}
\N	a3	{"street": "Fir 3", "city": "Linz"}
\N	a1	\N
\N	a3	{"street": "Fir 4", "city": "Linz"}
\N	a9	\N
MESSAGES
    settle tombstone addresses 'SELECT id, street FROM addresses ORDER BY id' $'a2|Oak 2\na3|Fir 4'
    require "messages of addresses, each an event" 16 "$(stored_keys addresses)"
    require "records that were read again" 8 "$(duplicates addresses)"
    # In place of a tombstone.
    sed -i "s/^when = .*/when = '!has({value}) || {value} in [\"\", \"null\"]'/" tombstone.toml
    grep -qF "$(grep -oE '^when = .*' tombstone.toml)" "${pages[@]}" || fail "the page has another condition"
    send addresses <<'MESSAGES'
\N	a2	null
\N	a3	
MESSAGES
    drain tombstone
    require "addresses after texts that mean none" '' "$(query 'SELECT * FROM addresses')"
    # The key that the page warns of takes the second deletion for the first.
    said pawl run --drain --config tombstone.toml --set kafka.group=other --set 'kafka.known_consumers=["shop"]' \
        --set 'idempotency.key={key}:{sha256:value?}'
    require "an address that is gone, under a key by content" 'Elm 5' \
        "$(query "SELECT street FROM addresses WHERE id = 'a1'")"
}

debezium() {
    topic crm.public.customers 2
    tables debezium
    config debezium
    check debezium
    # The first with their schema, as JsonConverter writes it.
    send crm.public.customers <<'MESSAGES'
\N	{"payload":{"id":1}}	{"schema":{"type":"struct"},"payload":{"before":null,"after":{"id":1,"name":"Ann","email":"ann@example","profile":"[1]"},"source":{"lsn":100,"table":"customers"},"op":"r","ts_ms":1}}
\N	{"payload":{"id":2}}	{"schema":{"type":"struct"},"payload":{"before":null,"after":{"id":2,"name":"Bob","email":null},"source":{"lsn":100},"op":"r","ts_ms":1}}
\N	{"payload":{"id":1}}	{"schema":{"type":"struct"},"payload":{"before":{"id":1},"after":{"id":1,"name":"Anna","email":null,"profile":"__debezium_unavailable_value"},"source":{"lsn":120},"op":"u","ts_ms":2}}
\N	{"payload":{"id":2}}	{"schema":{"type":"struct"},"payload":{"before":{"id":2},"after":null,"source":{"lsn":130},"op":"d","ts_ms":3}}
\N	{"payload":{"id":2}}	\N
\N	{"id":3}	{"before":null,"after":{"id":3,"name":"Cid","email":"cid@example"},"source":{"lsn":140},"op":"c","ts_ms":4}
\N	{"id":3}	{"before":{"id":3},"after":{"id":3,"name":"Cyd","email":"cid@example","profile":"[3]"},"source":{"lsn":150},"op":"u","ts_ms":5}
\N	{"id":4}	{"before":null,"after":{"id":4,"name":"Dan"},"source":{"lsn":160},"op":"c","ts_ms":6}
\N	{"id":4}	{"before":{"id":4},"after":null,"source":{"lsn":170},"op":"d","ts_ms":7}
\N	{"id":4}	\N
\N	{"id":3}	{"before":null,"after":{"id":3,"name":"Cid","email":"cid@example"},"source":{"lsn":140},"op":"c","ts_ms":8}
MESSAGES
    settle debezium crm.public.customers \
        "SELECT id, name, coalesce(email, 'none'), profile, lsn FROM customers ORDER BY id" \
        $'1|Anna|none|[1]|120\n3|Cyd|cid@example|[3]|150'
    require "keys of customers" 0 "$(stored_keys crm.public.customers)"
}

wide() {
    topic articles 2
    tables wide
    config wide
    check wide
    send articles <<'MESSAGES'
{"event-id": "e1"}	1	{"id": 1, "version": 1, "title": "pen", "weight": 0.10, "tags": ["a", "b"], "changed_at": "2026-01-02T03:04:05Z", "prices": [{"currency": "EUR", "amount": 1.10}, {"currency": "CHF", "amount": 1.20}]}
{"event-id": "e2"}	2	{"id": 2, "version": 5, "title": "ink", "colour": "blue", "prices": []}
{"event-id": "e3"}	1	{"id": 1, "version": 3, "title": "pen, blue", "tags": null, "prices": [{"currency": "EUR", "amount": 12345678901234567.89}]}
{"event-id": "e4"}	1	{"id": 1, "version": 2, "title": "pen, old", "weight": 9, "prices": [{"currency": "USD", "amount": 9}]}
MESSAGES
    settle wide articles \
        "SELECT a.id, version, title, weight, tags IS NULL, changed_at AT TIME ZONE 'UTC', currency, amount
           FROM articles a LEFT JOIN article_prices p ON p.article_id = a.id ORDER BY a.id, currency" \
        $'1|3|pen, blue|0.10|t|2026-01-02 03:04:05|EUR|12345678901234567.89\n2|5|ink||t|||'
}

types() {
    local rows="SELECT id, status, parcel FROM orders LEFT JOIN shipments ON order_id = id ORDER BY id, parcel" code=0
    topic order-events 1
    tables types
    config types
    check types
    send order-events <<'MESSAGES'
{"event-id": "e1", "type": "OrderPlaced"}	o1	{"order": "o1", "customer": "Ann"}
{"event-id": "e2", "type": "OrderPlaced"}	o2	{"order": "o2", "customer": "Bob"}
{"event-id": "e3", "type": "OrderViewed"}	o1	{"order": "o1", "page": 4}
{"event-id": "e4", "type": "OrderShipped"}	o1	{"order": "o1", "parcel": "x7"}
{"event-id": "e5", "type": "OrderCancelled"}	o2	{"order": "o2"}
MESSAGES
    # By default a type that nobody handles halts.
    pawl run --drain --config types.toml --set failures.unmatched=fail >"$work/output" 2>&1 </dev/null || code=$?
    require "exit code at a type that nobody handles" 4 "$code"
    require "the order before that type" placed "$(query "SELECT status FROM orders WHERE id = 'o1'")"
    settle types order-events "$rows" $'o1|shipped|x7\no2|cancelled|'
    run_block types
    require_said order-events
    block types_rest.toml
    cat types_rest.toml >>types.toml
    query 'DELETE FROM pawl.skipped_messages'
    from_the_start types order-events
    require "messages that the last handler passed over" 0 "$(query 'SELECT count(*) FROM pawl.skipped_messages')"
    require "keys of order-events" 4 "$(stored_keys order-events)"
}

money() {
    topic bookings 2
    tables money
    config money
    check money
    send bookings <<'MESSAGES'
{"event-id": "e1"}	a1	{"account": "a1", "currency": "EUR", "amount": 0.1}
{"event-id": "e2"}	a1	{"account": "a1", "currency": "EUR", "amount": 0.20}
{"event-id": "e3"}	a2	{"account": "a2", "currency": "EUR", "amount": 900719925474099.3}
{"event-id": "e4"}	a2	{"account": "a2", "currency": "EUR", "amount": -0.01}
{"event-id": "e5"}	a3	{"account": "a3", "currency": "CHF", "amount": "19.99"}
{"event-id": "e1"}	a1	{"account": "a1", "currency": "EUR", "amount": 0.1}
{"event-id": "bad1"}	a4	{"account": "a1", "currency": "EUR", "amount": 1.005}
{"event-id": "bad2"}	a5	{"account": "a1", "currency": "EUR", "amount": 0.30000000000000004}
{"event-id": "bad3"}	a6	{"account": "a1", "currency": "EUR", "amount": "NaN"}
{"event-id": "bad4"}	a7	\N
MESSAGES
    # Each refused amount is waited for, so what is sent again is only what was good.
    drain money
    require "amounts that are none" $'bad1\nbad2\nbad3\nbad4' \
        "$(query "SELECT idempotency_key FROM pawl.dead_letters WHERE topic = 'bookings' ORDER BY 1")"
    sed -i '/"bad/d' "$work/sent/bookings"
    settle money bookings 'SELECT account, currency, balance FROM balances ORDER BY 1' \
        $'a1|EUR|0.30\na2|EUR|900719925474099.29\na3|CHF|19.99'
}

late() {
    topic buyers 1
    topic purchases 2
    tables late
    config late
    check late
    send purchases <<'MESSAGES'
{"event-id": "e1"}	p1	{"buyer": "b1", "status": "paid"}
{"event-id": "e2"}	p1	{"buyer": "b1", "status": "sent"}
{"event-id": "e1"}	p1	{"buyer": "b1", "status": "paid"}
MESSAGES
    drain late
    require "purchases without a buyer" '' "$(query 'SELECT * FROM purchases')"
    run_block late
    require_said p1
    require "purchases that wait" 3 "$(query "SELECT count(*) FROM pawl.dead_letters WHERE topic = 'purchases' AND status <> 'replayed'")"
    pawl run --config late.toml >"$work/consumer.log" 2>&1 </dev/null &
    consumer=$!
    send buyers <<'MESSAGES'
{"event-id": "e1"}	b1	{"name": "Ann"}
MESSAGES
    wait_until 60 purchases_followed || { tail -n 30 "$work/consumer.log" >&2; fail "late: the purchase did not follow its buyer"; }
    kill -s TERM "$consumer"
    wait "$consumer" || fail "late: the consumer ended badly"
    consumer=''
    settle late purchases 'SELECT * FROM purchases' 'p1|b1|sent'
}
purchases_followed() {
    [[ $(query "SELECT count(*) FROM pawl.dead_letters WHERE topic = 'purchases' AND status = 'replayed'") == 3 ]]
}

call() {
    local answers="SELECT convert_from(response, 'UTF8') FROM pawl.idempotency_keys
                     JOIN pawl.consumer_topics USING (source_id) WHERE topic = 'deliveries' ORDER BY 1"
    topic orders-paid 2
    topic deliveries 2
    tables call
    config call
    python3 - "$work/calls" >"$work/courier.port" 2>"$work/courier.log" <<'PYTHON' &
import http.server
import sys


class Courier(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open(sys.argv[1], "a", encoding="utf-8") as calls:
            print(self.path, body, self.headers["Idempotency-Key"], file=calls)
        answer = f"coming to {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Courier)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
    courier=$!
    wait_until 60 test -s "$work/courier.port" || { cat "$work/courier.log" >&2; fail "call: the courier did not start"; }
    sed -i "s|https://courier.example|http://127.0.0.1:$(<"$work/courier.port")|" call.toml
    check call
    send orders-paid <<'MESSAGES'
{"event-id": "e1"}	o1	{"order": "o1", "address": "Elm 1"}
{"event-id": "e2"}	o2	{"order": "o2", "address": "Oak 2"}
{"event-id": "e1"}	o1	{"order": "o1", "address": "Elm 1"}
MESSAGES
    drain call # publishes
    require "deliveries" $'o1|Elm 1\no2|Oak 2' "$(query 'SELECT * FROM deliveries ORDER BY 1')"
    settle call orders-paid "$answers" $'coming to /deliveries/o1\ncoming to /deliveries/o2'
    drain call
    from_the_start call deliveries
    require "calls of the courier" $'/deliveries/o1 {"address":"Elm 1"}\n/deliveries/o2 {"address":"Oak 2"}' \
        "$(cut -d' ' -f1-3 "$work/calls" | sort)"
    require "keys of the calls" 2 "$(grep -oE ' [0-9a-f]{64}$' "$work/calls" | sort -u | wc -l)"
    kill -s TERM "$courier"
    wait "$courier" || true
    courier=''
}

stock() {
    topic stock 2
    tables stock
    tables stock_copy
    config stock
    check stock
    query "INSERT INTO stock VALUES ('s1', 3), ('s2', 5), ('s3', 7); UPDATE stock SET quantity = 2 WHERE sku = 's1'"
    query "DELETE FROM stock WHERE sku = 's2'"
    run_block stock
    drain stock
    require "copy of the stock" $'s1|2\ns3|7' "$(query 'SELECT * FROM stock_copy ORDER BY 1')"
    from_the_start stock stock
    require "copy of the stock, the log read again" $'s1|2\ns3|7' "$(query 'SELECT * FROM stock_copy ORDER BY 1')"
    require "keys of stock" 5 "$(stored_keys stock)"
}

# What a sink connector has written, and committed in Kafka: the first three invoices; of the fourth only
# the row.
moving() {
    local rows='SELECT id, amount FROM invoices ORDER BY id'
    topic invoices 1
    tables moving
    config moving
    send invoices <<'MESSAGES'
\N	one	{"schema": {}, "payload": {"id": "i1", "amount": 1}}
\N	one	{"schema": {}, "payload": {"id": "i2", "amount": 2}}
\N	one	{"schema": {}, "payload": {"id": "i3", "amount": 3}}
\N	one	{"schema": {}, "payload": {"id": "i4", "amount": 4}}
\N	one	{"schema": {}, "payload": {"id": "i5", "amount": 5}}
MESSAGES
    query "INSERT INTO invoices VALUES ('i2', 2), ('i3', 3), ('i4', 4)" # i1 was deleted since
    check moving
    require_said 'the group has committed nothing here'
    commit_as_the_old_consumer connect-invoices-sink invoices 3
    check moving
    require_said 'starts at offset 3: committed by the group'
    run_block moving
    drain moving
    require "invoices after the move" $'i2|2\ni3|3\ni4|4\ni5|5' "$(query "$rows")"
    # The place that a sink's table has.
    query 'TRUNCATE invoices'
    run_block moving_exact
    drain moving
    require "invoices behind the sink's table" 'i5|5' "$(query "$rows")"
}

# What a Spring application has done, and committed in Kafka: the first three messages; of the fourth
# only the effect.
spring() {
    local rows="SELECT id, courier, lost FROM parcels ORDER BY id" counts='SELECT name, sent FROM couriers ORDER BY name'
    topic parcels 1
    topic parcels-dlt 1
    tables spring
    config spring
    send parcels <<'MESSAGES'
{"__TypeId__": "com.example.ParcelSent"}	one	{"eventId": "e1", "id": "p1", "courier": "Ann"}
{"__TypeId__": "com.example.ParcelSent"}	one	{"eventId": "e2", "id": "p2", "courier": "Bob"}
{"__TypeId__": "com.example.ParcelLost"}	one	{"eventId": "e3", "id": "p1"}
{"__TypeId__": "com.example.ParcelSent"}	one	{"eventId": "e4", "id": "p3", "courier": "Ann"}
{"__TypeId__": "com.example.ParcelSent"}	one	no JSON
{"__TypeId__": "com.example.ParcelSent"}	one	{"eventId": "e5", "id": "p4", "courier": "Ann"}
{"__TypeId__": "com.example.ParcelLost"}	one	{"eventId": "e6", "id": "p3"}
MESSAGES
    query "INSERT INTO parcels VALUES ('p1', 'Ann', true), ('p2', 'Bob', false), ('p3', 'Ann', false);
           INSERT INTO couriers VALUES ('Ann', 2), ('Bob', 1)"
    if pawl offsets set --config spring.toml --topic parcels --all --to committed >"$work/output" 2>&1 </dev/null; then
        fail "spring: a group that has committed nothing was given a place"
    fi
    require_said 'group shipping has no committed offset in Kafka for parcels[0]'
    commit_as_the_old_consumer shipping parcels 3
    check spring
    require_said 'starts at offset 3: committed by the group'
    run_block spring
    require "parcels after the move" $'p1|Ann|t\np2|Bob|f\np3|Ann|t\np4|Ann|f' "$(query "$rows")"
    require "couriers after the move" $'Ann|3\nBob|1' "$(query "$counts")"
    require "messages that were applied: behind the place, without the one that is no JSON" 3 "$(stored_keys parcels)"
    require "the letter, which is in Kafka as well" 'undecodable|t' \
        "$(query "SELECT reason, published_at IS NOT NULL FROM pawl.dead_letters WHERE topic = 'parcels'")"
    settle spring parcels "$counts" $'Ann|3\nBob|1'
    require "parcels, all messages sent again, and the log read again" $'p1|Ann|t\np2|Bob|f\np3|Ann|t\np4|Ann|f' \
        "$(query "$rows")"
}
commit_as_the_old_consumer() { # GROUP TOPIC OFFSET
    local kafka=("$root"/.deps/kafka-*/)
    said java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "${kafka[-1]}libs/*" \
        -Dlog4j2.configurationFile="$work/kafka/kafka-log4j2.properties" \
        org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "$bootstrap" \
        --group "$1" --reset-offsets --topic "$2" --to-offset "$3" --execute
}

backfill() {
    topic points 1
    tables backfill
    config live
    send points <<'MESSAGES'
{"event-id": "e1"}	a1	{"points": 1}
{"event-id": "e2"}	a2	{"points": 10}
{"event-id": "e3"}	a1	{"points": 2}
MESSAGES
    drain live # meets the topic at its end
    require "points of the past" '' "$(query 'SELECT * FROM points')"
    send points <<'MESSAGES'
{"event-id": "e4"}	a1	{"points": 4}
{"event-id": "e5"}	a2	{"points": 20}
MESSAGES
    drain live
    require "points of the live consumer" $'a1|4\na2|20' "$(query 'SELECT * FROM points ORDER BY 1')"
    pawl run --config live.toml >"$work/consumer.log" 2>&1 </dev/null &
    consumer=$!
    run_block backfill
    require_said points
    require "points after the backfill" $'a1|7\na2|30' "$(query 'SELECT * FROM points ORDER BY 1')"
    drain backfill
    send points <<'MESSAGES'
{"event-id": "e6"}	a2	{"points": 40}
MESSAGES
    wait_until 60 live_goes_on || { tail -n 30 "$work/consumer.log" >&2; fail "backfill: the live consumer did not go on"; }
    run_block backfill_end
    kill -s TERM "$consumer"
    wait "$consumer" || fail "backfill: the live consumer ended badly"
    consumer=''
    require "consumers whose reading holds keys" points \
        "$(query "SELECT group_id FROM pawl.scope_sources JOIN pawl.consumer_topics USING (source_id)
                    JOIN pawl.consumers USING (consumer_id) WHERE topic = 'points'")"
    settle live points 'SELECT * FROM points ORDER BY 1' $'a1|7\na2|70'
}
live_goes_on() { [[ $(query "SELECT points FROM points WHERE account = 'a2'") == 70 ]]; }

for recipe in upsert tombstone debezium wide types money late call stock moving spring backfill; do
    begun=$SECONDS
    "$recipe"
    echo "$recipe: $((SECONDS - begun)) s"
done

# Every block was used. tests/outbox/pipeline_of_two_test.cpp runs those of the pipeline.
while IFS= read -r name; do
    [[ -e $name || $name == @(end-to-end|orders.toml|books.toml) ]] || fail "nothing ran the block $name"
done < <(sed -nE 's/^<!-- tested: (.*) -->$/\1/p' "${pages[@]}")
