"""What the handlers of tests/chaos do: tables, functions, a remote API, and their part of the configuration."""
import collections
import contextlib
import http.server
import json
import os
import socket
import socketserver
import threading

import psycopg

KINDS = ("sql", "batch", "function", "http", "concurrency", "code", "publish")
# Messages of a batch share a transaction, which cannot be side by side with others' of the topic.
REFUSED = {("batch", "concurrency")}
PARTITIONS = 3
KEYS = 21
# Faults of messages and of what they use hit the second topic alone. Each record key begins with its topic's letter.
TOPICS = HEALTHY, ILL = "h", "i"
# C++ handlers of apps/payments: one per topic.
CODE = {HEALTHY: "payment", ILL: "payment_without_receipt"}

SCHEMA = """
CREATE SEQUENCE effects_n;
CREATE TABLE effects_h (n bigint PRIMARY KEY DEFAULT nextval('effects_n'), id text, key text, sequence bigint,
    at timestamptz DEFAULT clock_timestamp());
CREATE TABLE effects_i (LIKE effects_h INCLUDING ALL);
-- Of the remote API, for which PostgreSQL's locks on the others are nothing.
CREATE TABLE effects_api (LIKE effects_h INCLUDING ALL, UNIQUE (id));
CREATE VIEW effects AS SELECT * FROM effects_h UNION ALL SELECT * FROM effects_i UNION ALL SELECT * FROM effects_api;
CREATE TABLE accounts (id text PRIMARY KEY, balance bigint DEFAULT 0, entries bigint DEFAULT 0);
INSERT INTO accounts SELECT t || g FROM unnest('{h,i}'::text[]) t, generate_series(0, 99) g;
CREATE TABLE failures AS SELECT true AS happen;
-- What follows "~" in an ID is the percentage of its attempts that fail.
CREATE FUNCTION app_fails(p_id text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT happen AND random() * 100 < coalesce(nullif(split_part(p_id, '~', 2), '')::integer, 0) FROM failures
$$;
-- Messages of a key take effect in the order of n: the key's lock comes before it.
CREATE FUNCTION app_apply(p_id text, p_key text, p_sequence bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM accounts WHERE id = p_key FOR UPDATE;
  IF app_fails(p_id) THEN RAISE EXCEPTION 'bad %', p_id; END IF;
  PERFORM pg_sleep(random() * 0.01);
  IF p_key LIKE 'h%' THEN
    INSERT INTO effects_h (id, key, sequence) VALUES (p_id, p_key, p_sequence);
  ELSE
    INSERT INTO effects_i (id, key, sequence) VALUES (p_id, p_key, p_sequence);
  END IF;
END $$;
CREATE FUNCTION app_function(topic text, "partition" integer, "offset" bigint, key bytea, value bytea, headers jsonb,
    timestamp_ms bigint) RETURNS void LANGUAGE sql AS $$
  SELECT app_apply(v->>'u', v->>'k', (v->>'s')::bigint) FROM (SELECT convert_from(value, 'UTF8')::jsonb AS v) x
$$;
-- What apps/payments writes to.
CREATE VIEW ledger AS SELECT ''::text AS event_id, ''::text AS account, 0::bigint AS amount WHERE false;
CREATE FUNCTION app_enter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM app_apply(NEW.event_id, NEW.account, NEW.amount);
  RETURN NEW;
END $$;
CREATE TRIGGER enter INSTEAD OF INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION app_enter();
-- What the remote API does for one request: it knows what it did already.
CREATE FUNCTION app_call(p_id text, p_key text, p_sequence bigint) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(p_key, 0));
  IF EXISTS (SELECT FROM effects_api WHERE id = p_id) THEN RETURN 200; END IF;
  IF app_fails(p_id) THEN RETURN CASE WHEN p_id LIKE '%~100' THEN 422 ELSE 503 END; END IF;
  INSERT INTO effects_api (id, key, sequence) VALUES (p_id, p_key, p_sequence);
  RETURN 200;
END $$;
"""


def partition_of(key):
    return int(key[1:]) % PARTITIONS


class RemoteApi:
    """An API that knows idempotency keys, and notices two calls of one key at once."""

    def __init__(self, database):
        """database: a URL."""
        self.under_way, self.at_once, self.lock = collections.Counter(), set(), threading.Lock()
        self.connections = set()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                self.session = None
                with api.lock:
                    api.connections.add(self.connection)

            def finish(self):
                with api.lock:
                    api.connections.discard(self.connection)
                if self.session:
                    self.session.close()
                super().finish()

            def log_message(self, *_):
                pass

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with api.noted(message, self.headers["Idempotency-Key"]):
                    status = self.apply(message)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def apply(self, message):
                try:
                    if self.session is None or self.session.closed:
                        self.session = psycopg.connect(database, autocommit=True, connect_timeout=2)
                    values = message["u"], message["k"], int(message["s"])
                    return self.session.execute("SELECT app_call(%s, %s, %s)", values).fetchone()[0]
                except psycopg.OperationalError:
                    self.session = None
                    return 504

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 100

            def handle_error(self, *_):  # a process was killed in the middle of its request
                pass

        self.make_server = lambda port: Server(("127.0.0.1", port), Handler)
        self.port = 0
        self.server = None
        self.accept()

    def accept(self):
        self.server = self.make_server(self.port)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True).start()

    def refuse(self):
        """Connections are refused from now on, and those that are open are reset, until accept()."""
        if self.server is None:
            return
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # closed by the other side
                    pass

    @contextlib.contextmanager
    def noted(self, message, key):
        """A call, while it runs."""
        with self.lock:
            self.under_way[key] += 1
            if self.under_way[key] > 1:
                self.at_once.add(message["u"])
        try:
            yield
        finally:
            with self.lock:
                self.under_way[key] -= 1


def handler(kind, letter, topic, published_to, port):
    """A part of a configuration."""
    name = CODE[letter] if kind == "code" else f"{kind}_{letter}"
    text = f'[[handler]]\nname = "{name}"\ntopics = ["{topic}"]\nwhen = \'{{/h}} == "{kind}"\'\n'
    apply = '"SELECT app_apply({/u}, {/k}, {/s}::bigint)"'
    if kind == "code":
        return text
    if kind == "batch":
        return text + ('batch = true\nsql = "SELECT app_apply(u, k, s)'
                       ' FROM unnest({/u}::text[], {/k}::text[], {/s}::bigint[]) WITH ORDINALITY AS x (u, k, s, o) ORDER BY o"\n')
    if kind == "function":
        return text + 'function = "app_function"\n'
    if kind == "http":
        # Leases and keys of others do not share a scope. 504: the API has no database, which is nobody's message's fault.
        return text + (f'scope = "calls"\nhttp = {{ url = "http://127.0.0.1:{port}/calls", timeout = "3s", outage = "504",'
                       ' not_done = "425,429,504", json = { u = "{/u}", k = "{/k}", s = "{/s}" } }\n')
    if kind == "publish":
        return text + f"sql = [{apply}, \"SELECT pawl.publish('{published_to}', {{/k}}, {{value}})\"]\n"
    if kind == "concurrency":
        text += 'concurrency = 8\norder_by = "{key}"\nconcurrency_window = 100\n'
    return text + f"sql = {apply}\n"


def program(pair):
    """The program that has the handlers of a pair. Each has all commands of pawl."""
    pawl = os.environ["PAWL"]
    return os.path.join(os.path.dirname(pawl), "payments") if "code" in pair else pawl
