#!/usr/bin/env python3
"""A scripted stand-in for a language model, for tests: it does what the lines of the prompt say, then says "done".

    model.py PORT_FILE

It listens on a free port of 127.0.0.1, writes the port to PORT_FILE, and answers, streaming,

    POST …/chat/completions             OpenAI chat completions
    POST …/responses                    OpenAI responses
    POST …/messages                     Anthropic messages
    POST …:streamGenerateContent        Google Gemini
    GET  …/models                       a list with the model "scripted"

The last prompt that has such lines is the script:

    call NAME JSON      one step: say "step N" and call that tool
    slowly [word …]     at the end, talk for half a minute instead of saying "done"
    recall              at the end, say which words stand after `remember` in the conversation

How many steps are done is seen from the tool results that the agent sends back, so the model itself remembers nothing.
A request without tools is an agent's own (for a title, say) and has no script.
"""
import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LINE = re.compile(r"^\s*(?:(call) (\w+) (\{.*\})|(slowly|recall)(?: word.*)?)\s*$", re.M)
WORD = re.compile(r"^\s*remember (\w+)", re.M)


class Step:
    """What the model does now: `text_pieces` says something, `call` is the name and the arguments of a tool."""

    def __init__(self, turns, tools):
        """`turns` has the prompts of the conversation, and None for every tool result."""
        script, done = [], 0
        for prompt in turns:
            found = LINE.findall(prompt or "")
            if found:
                script, done = found, 0
            elif prompt is None:
                done += 1
        calls = [(name, arguments) for verb, name, arguments, _ in script if verb] if tools else []
        last = {verb for *_, verb in script} if tools else set()
        self.number = done + 1
        self.call = calls[done] if done < len(calls) else None
        self.is_slow = not self.call and "slowly" in last
        self.text = "done"
        if self.call:
            self.text = f"step {self.number}"
        elif "recall" in last:
            self.text = "remembered " + " ".join(WORD.findall("\n".join(filter(None, turns))))

    def text_pieces(self):
        if not self.is_slow:
            yield self.text[:2]
            yield self.text[2:]
            return
        for number in range(150):
            yield f"word {number} "
            time.sleep(0.2)


def text_of(content):
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def chat_events(body):
    turns = []
    for message in body.get("messages", []):
        if message.get("role") == "user":
            turns.append(text_of(message.get("content")))
        elif message.get("role") == "tool":
            turns.append(None)
    step = Step(turns, body.get("tools"))
    base = {"id": f"chat_{step.number}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}

    def chunk(delta, finish=None):
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in step.text_pieces():
        yield chunk({"content": piece})
    if step.call:
        name, arguments = step.call
        function = {"name": name, "arguments": arguments}
        call = {"index": 0, "id": f"tool_{step.number}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    _, last = chunk({}, "tool_calls" if step.call else "stop")
    yield None, {**last, "usage": usage}
    yield None, "[DONE]"


def response_events(body):
    turns = []
    for item in body.get("input", []):
        if item.get("role") == "user":
            turns.append(text_of(item.get("content")))
        elif item.get("type") == "function_call_output":
            turns.append(None)
    step = Step(turns, body.get("tools"))
    base = {"id": f"resp_{step.number}", "object": "response", "created_at": 0, "model": "scripted"}
    yield "response.created", {"response": {**base, "status": "in_progress", "output": []}}
    message = {"type": "message", "id": f"out_{step.number}", "role": "assistant"}
    started = {**message, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": 0, "item": started}
    place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    text = ""
    for piece in step.text_pieces():
        text += piece
        yield "response.output_text.delta", {**place, "delta": piece}
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {**message, "status": "completed", "content": [part]}
    yield "response.output_item.done", {"output_index": 0, "item": message}
    output = [message]
    if step.call:
        name, arguments = step.call
        item = {"type": "function_call", "id": f"item_{step.number}", "call_id": f"tool_{step.number}", "name": name}
        item = {**item, "arguments": arguments, "status": "completed"}
        yield "response.output_item.done", {"output_index": 1, "item": item}
        output.append(item)
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage["input_tokens_details"] = {"cached_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    yield "response.completed", {"response": {**base, "status": "completed", "output": output, "usage": usage}}


def message_events(body):
    turns = []
    for message in body.get("messages", []):
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if message.get("role") == "user" and block.get("type") in ("text", "tool_result"):
                turns.append(block.get("text"))
    step = Step(turns, body.get("tools"))
    message = {"id": f"msg_{step.number}", "type": "message", "role": "assistant", "model": body.get("model")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    yield "message_start", {"message": {**message, "usage": {"input_tokens": 100, "output_tokens": 1}}}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in step.text_pieces():
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"index": 0}
    if step.call:
        name, arguments = step.call
        block = {"type": "tool_use", "id": f"tool_{len(turns)}_{step.number}", "name": name, "input": {}}
        yield "content_block_start", {"index": 1, "content_block": block}
        yield "content_block_delta", {"index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}}
        yield "content_block_stop", {"index": 1}
    delta = {"stop_reason": "tool_use" if step.call else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": delta, "usage": {"output_tokens": 10}}
    yield "message_stop", {}


def gemini_events(body):
    turns = []
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "functionResponse" in part:
                turns.append(None)
            elif content.get("role") == "user" and "text" in part:
                turns.append(part["text"])
    step = Step(turns, body.get("tools"))

    def answer(part, **more):
        candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, **more}
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        return None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}

    for piece in step.text_pieces():
        yield answer({"text": piece})
    if step.call:
        name, arguments = step.call
        yield answer({"functionCall": {"name": name, "args": json.loads(arguments)}}, finishReason="STOP")
    else:
        yield answer({"text": ""}, finishReason="STOP")


APIS = {
    "/chat/completions": chat_events,
    "/responses": response_events,
    "/messages": message_events,
    ":streamGenerateContent": gemini_events,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        path = self.path.partition("?")[0]
        events = next((events for end, events in APIS.items() if path.endswith(end)), None)
        if not events:
            return self.reply({"error": {"message": "there is no such path"}}, 404)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for kind, event in events(body):
                text = f"event: {kind}\n" if kind else ""
                event = {"type": kind, **event} if kind else event
                text += f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
                self.wfile.write(text.encode())
                self.wfile.flush()
        except OSError:
            pass  # The agent was cancelled and hung up.

    def reply(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
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
