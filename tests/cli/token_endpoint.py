"""A token endpoint (RFC 6749, sections 4.4 and 5.1), whose tokens are unsecured JWS (RFC 7515, "none").

token_endpoint.py CLIENT SECRET SECONDS RENEWED_AFTER: prints "PORT n", then GRANTED or REFUSED for each request. A
token ends after SECONDS, and says that it is to be renewed after RENEWED_AFTER.
"""

import base64
import http.server
import json
import sys
import time

CLIENT, SECRET = sys.argv[1:3]
SECONDS, RENEWED_AFTER = (int(text) for text in sys.argv[3:5])


def part(claims):
    return base64.urlsafe_b64encode(json.dumps(claims, separators=(",", ":")).encode()).rstrip(b"=").decode()


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        known = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        granted = self.headers.get("Authorization") == known and "grant_type=client_credentials" in asked
        print("GRANTED" if granted else "REFUSED", flush=True)
        if granted:
            now = int(time.time())
            token = part({"alg": "none"}) + "." + part({"sub": CLIENT, "iat": now, "exp": now + SECONDS}) + "."
            answer = {"access_token": token, "token_type": "Bearer", "expires_in": RENEWED_AFTER}
        else:
            answer = {"error": "invalid_client"}
        body = json.dumps(answer).encode()
        self.send_response(200 if granted else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print("PORT", server.server_address[1], flush=True)
server.serve_forever()
