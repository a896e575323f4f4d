"""A relay in front of a model server that counts: for agents that do not tell what they asked for.

It passes requests on as they are, but for two things that make runs comparable: the temperature is 0, and streams end with
their usage. It knows OpenAI's chat completions, which servers on one's own machine speak.
"""

import http.client
import http.server
import json
import threading
import urllib.parse

# A model on one's own machine may take minutes for its first token.
SECONDS = 1800
# What one request may have. Agents send their whole conversation.
BODY_BYTES = 64 << 20
NOT_PASSED_ON = {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}


class Meter:
    """Listens on a port of this machine, and counts what goes through."""

    def __init__(self, upstream, port=0):
        self.upstream = urllib.parse.urlsplit(upstream)
        self.lock = threading.Lock()
        self.take()
        meter = self

        class Handler(Relay):
            pass

        Handler.meter = meter
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self):
        """What was counted since the last time: requests, tokens in and out."""
        with self.lock:
            counted = getattr(self, "counted", None)
            self.counted = {"requests": 0, "input_tokens": 0, "output_tokens": 0}
        return counted

    def count(self, usage):
        with self.lock:
            self.counted["requests"] += 1
            self.counted["input_tokens"] += usage.get("prompt_tokens") or 0
            self.counted["output_tokens"] += usage.get("completion_tokens") or 0


class Relay(http.server.BaseHTTPRequestHandler):
    meter = None
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.relay(None)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        try:
            asked = json.loads(body)
            asked["temperature"] = 0
            if asked.get("stream"):
                asked["stream_options"] = {**(asked.get("stream_options") or {}), "include_usage": True}
            body = json.dumps(asked).encode()
        except (ValueError, TypeError):
            pass
        self.relay(body)

    def relay(self, body):
        self.close_connection = True
        upstream = self.meter.upstream
        connection = http.client.HTTPConnection(upstream.hostname, upstream.port, timeout=SECONDS)
        usage = {}
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
            connection.request(self.command, upstream.path.rstrip("/") + self.path, body, headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type") or "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            for line in answer:
                self.wfile.write(line)
                self.wfile.flush()
                usage = usage_of(line) or usage
        except (OSError, http.client.HTTPException):
            # The agent left, or the server did: it is the agent's to deal with. The server stops when its reader is gone.
            pass
        finally:
            connection.close()
            if body is not None:
                self.meter.count(usage)

    def log_message(self, *_):
        """Nothing: the table tells."""


def usage_of(line):
    """The usage in a line of an answer: an event of a stream, or the whole."""
    if b'"usage"' not in line:
        return None
    try:
        usage = json.loads(line.removeprefix(b"data:")).get("usage")
    except (ValueError, AttributeError):
        return None
    return usage if isinstance(usage, dict) else None
