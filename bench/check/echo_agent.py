"""An agent for measurements: answers each line at once, or sends as much as it is told to."""
import json
import sys

CHUNK = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
    "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 400}}}}

out = sys.stdout.buffer
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message.get("method") == "_flood":
        block = (json.dumps(CHUNK) + "\n").encode() * 1000
        left = message["params"]["bytes"]
        while left > 0:
            out.write(block)
            left -= len(block)
    if "id" in message:
        out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode() + b"\n")
        out.flush()
