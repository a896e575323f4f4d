#!/usr/bin/env python3
"""A scripted stand-in for a language model, for tests: it calls the tools that the prompt names, then says "done".

    model.py PORT_FILE

It listens on a free port of 127.0.0.1, writes the port to PORT_FILE, and answers, streaming,

    POST …/chat/completions     OpenAI chat completions
    POST …/responses            OpenAI responses
    GET  …/models               a list with the model "scripted"

Each line `call NAME JSON` of the last prompt that has one is one step; the model says "step N" and calls that tool.
How many steps are done is seen from the tool results that the agent sends back, so the model itself remembers nothing.
"""
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALL = re.compile(r"^\s*call (\w+) (\{.*\})\s*$", re.M)


def text_of(content):
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def next_step(messages):
    """The number of the next step and its call; None for the call when all are done."""
    calls, done = [], 0
    for message in messages:
        if message.get("role") == "user":
            found = CALL.findall(text_of(message.get("content")))
            if found:
                calls, done = found, 0
        if message.get("role") == "tool" or message.get("type") == "function_call_output":
            done += 1
    return done + 1, calls[done] if done < len(calls) else None


def chat_events(body):
    number, call = next_step(body.get("messages", []))
    base = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}

    def chunk(delta, finish=None):
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in ["step ", str(number)] if call else ["do", "ne"]:
        yield chunk({"content": piece})
    if call:
        name, arguments = call
        function = {"name": name, "arguments": arguments}
        yield chunk({"tool_calls": [{"index": 0, "id": f"tool_{number}", "type": "function", "function": function}]})
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    _, last = chunk({}, "tool_calls" if call else "stop")
    yield None, {**last, "usage": usage}


def response_events(body):
    number, call = next_step(body.get("input", []))
    base = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": "scripted"}
    yield "response.created", {"response": {**base, "status": "in_progress", "output": []}}
    text = f"step {number}" if call else "done"
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": f"out_{number}", "role": "assistant", "status": "completed", "content": [part]}
    started = {**message, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": 0, "item": started}
    place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    for piece in (text[:2], text[2:]):
        yield "response.output_text.delta", {**place, "delta": piece}
    yield "response.output_item.done", {"output_index": 0, "item": message}
    output = [message]
    if call:
        name, arguments = call
        item = {"type": "function_call", "id": f"item_{number}", "call_id": f"tool_{number}", "name": name}
        item = {**item, "arguments": arguments, "status": "completed"}
        yield "response.output_item.done", {"output_index": 1, "item": item}
        output.append(item)
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage["input_tokens_details"] = {"cached_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    yield "response.completed", {"response": {**base, "status": "completed", "output": output, "usage": usage}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        is_chat = self.path.endswith("/chat/completions")
        if not is_chat and not self.path.endswith("/responses"):
            return self.reply("application/json", '{"error":{"message":"there is no such path"}}', 404)
        text = ""
        for kind, event in (chat_events if is_chat else response_events)(body):
            if kind:
                text += f"event: {kind}\n"
                event = {"type": kind, **event}
            text += f"data: {json.dumps(event)}\n\n"
        if is_chat:
            text += "data: [DONE]\n\n"
        self.reply("text/event-stream", text)

    def reply(self, kind, text, status=200):
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Whoever waits for the file must find the whole port in it.
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_port))
    os.replace(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()


if __name__ == "__main__":
    main()
