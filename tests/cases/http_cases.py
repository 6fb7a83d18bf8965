"""HTTP handlers (calls under a lease) against servers as they are."""
import http.server
import json
import socketserver
import threading

from harness import case
from payloads import LETTERS


class Server:
    """answers: path prefix -> function(handler, body). Records (method, path, headers, body)."""

    def __init__(self, answer):
        seen = self.seen = []

        class H(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def handle_any(self):
                n = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(n)
                seen.append((self.command, self.path, dict(self.headers), body))
                answer(self, body)
            do_POST = do_GET = do_PUT = do_PATCH = do_DELETE = handle_any

        class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
        self.s = S(("127.0.0.1", 0), H)
        self.port = self.s.server_address[1]
        threading.Thread(target=self.s.serve_forever, daemon=True).start()

    def close(self):
        self.s.shutdown()
        self.s.server_close()


def ok(h, body, status=200, headers=(), text=b"ok"):
    h.send_response(status)
    for k, v in headers:
        h.send_header(k, v)
    h.send_header("Content-Length", str(len(text)))
    h.end_headers()
    h.wfile.write(text)


@case("http", "webhook relays: values with quotes, line breaks, CRLF, unicode and NUL in JSON, headers and URLs", "hostile values into json, headers, path and query", "escaped for their place; what cannot be sent is a letter; nothing is injected")
def http_hostile_values(site):
    srv = Server(ok)
    try:
        s = site()
        s.write(f"""[[handler]]
topics = ["{s.topic}"]
http = {{ url = "http://127.0.0.1:{srv.port}/a/{{/p}}?q={{/q}}&fixed=1", headers = {{ "X-V" = "v{{/h}}" }}, json = {{ name = "{{/name}}", n = "{{/n}}", doc = "{{/doc}}", text = "a {{/name}} b" }} }}
""", head=LETTERS)
        base = {"p": "x", "q": "y", "h": "z", "name": "N", "n": 1.10, "doc": {"a": [1, None]}}
        s.send(dict(base, name='q"\\\n\u2028\U0001F600\x01'), id="0")
        s.send(dict(base, p="../../admin?x=1#f", q="a&fixed=2#f b+%41"), id="1")
        s.send(dict(base, h="a\r\nX-Evil: 1"), id="2")
        s.send(b'{"p":"x","q":"y","h":"z","name":"N","n":12345678901234567890.10,"doc":"\\u0000"}', id="3")
        s.send(dict(base, p=""), id="4")
        s.send(dict(base, p=".."), id="5")
        s.send(dict(base, q=""), id="6")
        s.send(dict(base, h="\u00e9"), id="7")
        done = s.drain(timeout=40)
        s.same(done.code, 0, "exit code: " + done.tail(2, 300))
        letters = {o: e for o, e in s.rows("SELECT kafka_offset, error FROM pawl.dead_letters")}
        s.note("letters: " + str({o: e[:110] for o, e in letters.items()}))
        for m, path, h, body in srv.seen:
            s.expect("X-Evil" not in h, "a header was injected")
            s.expect(path.startswith("/a/") and path.count("?") == 1 and "fixed=1" in path and "/admin?" not in path, f"path {path}")
            json.loads(body)
        bodies = [json.loads(b) for _, _, _, b in srv.seen]
        s.expect(bodies and bodies[0]["name"] == 'q"\\\n\u2028\U0001F600\x01' and bodies[0]["doc"] == {"a": [1, None]}, f"first body {srv.seen[0][3][:200] if srv.seen else None}")
        s.expect(any(b'12345678901234567890.10' in b for _, _, _, b in srv.seen), "digits of the big number")
        s.note("paths: " + str([p for _, p, _, _ in srv.seen]))
    finally:
        srv.close()


