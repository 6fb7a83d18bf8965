"""An HTTPS API that answers whoever shows a certificate of its authority.

tls_api.py CA CERTIFICATE KEY: prints "PORT n", then each request's path and the client's name, and
"CONNECTION" for each connection before its first request. The answer to /surplus is followed by
another one, in the same TLS record as its body.
"""

import http.server
import ssl
import sys

authority, certificate, key = sys.argv[1:]


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    connection_told = False

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        subject = dict(pair[0] for pair in self.connection.getpeercert()["subject"])
        if not self.connection_told:
            print("CONNECTION", self.connection.version(), flush=True)
            self.connection_told = True
        print("REQUEST", self.path, "of", subject["commonName"], flush=True)
        body = b'{"charge":"over TLS"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.path == "/surplus":
            body += b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nWRONG!"
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
context.load_verify_locations(authority)
context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
server.socket = context.wrap_socket(
    server.socket, server_side=True, do_handshake_on_connect=False
)
print("PORT", server.server_address[1], flush=True)
server.serve_forever()
