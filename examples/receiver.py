#!/usr/bin/env python3
"""A receiver: verifies the signature, drops what it has seen, and answers.

    SIGNING_SECRET=whsec_… python3 examples/receiver.py 9000

Needs nothing but Python 3.9. Start the service with the same SIGNING_SECRET and register a timer for
http://127.0.0.1:9000/.
"""
import base64, hashlib, hmac, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = [base64.b64decode(secret.removeprefix("whsec_")) for secret in os.environ.get("SIGNING_SECRET", "").split(",") if secret]
TOLERANCE_SECONDS = 300
seen = set()  # a real receiver keeps these in its database, in the transaction that does the work


def is_genuine(headers, body):
    """Standard Webhooks: HMAC-SHA256 over id, timestamp and body; any of several signatures may be the right one."""
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{id}.{timestamp}.".encode() + body
    wanted = [base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()) for secret in SECRETS]
    given = [part.split(",", 1)[1].encode() for part in headers.get("webhook-signature", "").split() if part.startswith("v1,")]
    return any(hmac.compare_digest(a, b) for a in wanted for b in given)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if SECRETS and not is_genuine(self.headers, body):
            return self.answer(401)
        id = self.headers.get("webhook-id")
        if id not in seen:  # a call whose answer was lost comes again with the same webhook-id
            seen.add(id)
            print(f"{self.headers.get('X-Timer-Id')} attempt {self.headers.get('X-Timer-Attempt')}: {body.decode()}", flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    with ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
