#!/usr/bin/env python3
"""An agent for measuring terminal clients: it sends what the prompt says, in protocol version 1 or 2, as it is asked.

    stream RATE SECONDS   so many text chunks a second, by the clock
    mixed COUNT           so many updates: text, thoughts, tool calls, diffs, plans, output of commands
    hostile [ask]         texts.HOSTILE in every field that a client may show; some as questions
    anything else         is said back

`--log FILE` writes what it has really sent there, as JSON; `--name NAME` is what it calls itself.
"""

import argparse
import base64
import json
import os
import sys
import time

import texts

SESSION = "s1"


class Agent:
    def __init__(self, name="bench", log=None):
        self.name, self.log_file = name, log
        self.version = 1
        self.unread = b""
        self.next_id = 1000
        self.messages = 0
        self.directory = "/"

    def line(self):
        while b"\n" not in self.unread:
            piece = os.read(0, 65536)
            if not piece:
                sys.exit(0)
            self.unread += piece
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data):
        while data:
            data = data[os.write(1, data) :]

    @staticmethod
    def encode(update):
        params = {"sessionId": SESSION, "update": update}
        return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"

    def update(self, name, /, **fields):
        self.write(self.encode({"sessionUpdate": name, **fields}))

    def serve(self):
        while True:
            message = self.line()
            method, id = message.get("method"), message.get("id")
            params = message.get("params") or {}
            if method == "initialize":
                self.version = 2 if params.get("protocolVersion", 1) >= 2 else 1
                info = {"name": self.name, "version": "1.0"}
                if self.version == 2:
                    result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
                else:
                    result = {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}, "authMethods": []}
                self.send(id=id, result=result)
            elif method == "session/new":
                self.directory = params["cwd"]
                self.send(id=id, result={"sessionId": SESSION})
            elif method == "session/prompt":
                text = "".join(block.get("text", "") for block in params["prompt"])
                self.turn(id, text)
            elif method and id is not None:
                self.send(id=id, error={"code": -32601, "message": "Method not found"})

    def turn(self, id, text):
        words = text.split()
        if self.version == 2:
            self.send(id=id, result={"messageId": f"u{id}"})
            self.update("state_update", state="running")
        match words:
            case ["stream", rate, seconds]:
                self.stream(int(rate), float(seconds))
            case ["mixed", count]:
                self.mixed(int(count))
            case ["hostile", *words]:
                self.hostile(asks="ask" in words)
            case _:
                self.say("agent_message_chunk", text)
        if self.version == 2:
            self.update("state_update", state="idle", stopReason="end_turn")
        else:
            self.send(id=id, result={"stopReason": "end_turn"})

    def log(self, **figures):
        if self.log_file:
            with open(self.log_file, "w") as file:
                json.dump(figures, file)

    def say(self, kind, text):
        self.messages += 1
        self.update(kind, messageId=f"m{self.messages}", content={"type": "text", "text": text})

    def stream(self, rate, seconds):
        # Made before the clock runs, so that sending is all that is left to do.
        lines = []
        for index, word in enumerate(texts.WORDS * 20):
            text = word + ("\n\n" if index % 40 == 39 else " ")
            content = {"type": "text", "text": text}
            lines.append(
                self.encode({"sessionUpdate": "agent_message_chunk", "messageId": "m0", "content": content})
            )
        began = time.monotonic()
        sent, most_late = 0, 0
        while (now := time.monotonic() - began) < seconds:
            due = int(now * rate)
            most_late = max(most_late, due - sent)
            if due > sent:
                self.write(b"".join(lines[index % len(lines)] for index in range(sent, due)))
                sent = due
            time.sleep(0.001)
        taken = time.monotonic() - began
        self.log(sent=sent, seconds=taken, rate=sent / taken, most_late=most_late)

    def tool(self, id, **fields):
        kind = "tool_call_update"
        if self.version == 1 and fields.get("title"):
            kind = "tool_call"
        self.update(kind, toolCallId=id, **fields)

    def diff(self, path, old, new):
        if self.version == 1:
            return {"type": "diff", "path": path, "oldText": old, "newText": new}
        before, after = old.splitlines(), new.splitlines()
        patch = [f"diff --git {path} {path}", f"--- {path}", f"+++ {path}", f"@@ -1,{len(before)} +1,{len(after)} @@"]
        patch += ["-" + line for line in before] + ["+" + line for line in after]
        change = {"operation": "modify", "path": path, "fileType": "text"}
        text = "\n".join(patch) + "\n"
        return {"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": text}}

    def plan(self, entries):
        if self.version == 1:
            self.update("plan", entries=entries)
        else:
            self.update("plan_update", plan={"type": "items", "planId": "p", "entries": entries})

    def mixed(self, count):
        """Rounds of a hundred updates, as an agent at work sends them."""
        began = time.monotonic()
        self.say("agent_message_chunk", "the very first words\n\n")
        sent = 1
        number = 0
        while sent < count - 1:
            number += 1
            self.messages += 1
            plan = [
                {"content": f"step {index}", "priority": "medium", "status": status}
                for index, status in enumerate(["completed", "in_progress", "pending"])
            ]
            steps = [lambda: self.plan(plan)]
            for index in range(8):
                steps.append(lambda index=index: self.chunk("agent_thought_chunk", "t", index))
            for index in range(60):
                steps.append(lambda index=index: self.chunk("agent_message_chunk", "m", index))
            path = f"/project/src/file{number % 50}.rs"
            old = "\n".join(f"let value{index} = {index};" for index in range(12)) + "\n"
            new = old.replace("value3 = 3", f"value3 = {number}")
            location = [{"path": path, "line": number}]
            edit, command = f"e{number}", f"c{number}"
            steps += [
                lambda: self.tool(edit, title=f"Edit file{number % 50}.rs", kind="edit", status="pending"),
                lambda: self.tool(edit, status="in_progress", locations=location),
                lambda: self.tool(edit, content=[self.diff(path, old, new)]),
                lambda: self.tool(edit, status="completed"),
                lambda: self.tool(command, title="cargo test", kind="execute", status="in_progress"),
            ]
            if self.version == 2:
                terminal = f"t{number}"
                shown = [{"type": "terminal", "terminalId": terminal}]
                steps += [
                    lambda: self.update("terminal_update", terminalId=terminal, command="cargo test"),
                    lambda: self.tool(command, content=shown),
                ]
                for index in range(22):
                    line = f"\x1b[32mtest\x1b[0m number {index} of round {number} ... ok\r\n"
                    data = base64.b64encode(line.encode()).decode()
                    steps.append(
                        lambda data=data: self.update("terminal_output_chunk", terminalId=terminal, data=data)
                    )
                steps.append(lambda: self.update("terminal_update", terminalId=terminal, exitStatus={"exitCode": 0}))
            else:
                for index in range(24):
                    text = "\n".join(f"test number {line} of round {number} ... ok" for line in range(index + 1))
                    content = [{"type": "content", "content": {"type": "text", "text": text}}]
                    steps.append(lambda content=content: self.tool(command, content=content))
            steps.append(lambda: self.tool(command, status="completed"))
            for step in steps[: count - 1 - sent]:
                step()
                sent += 1
        self.say("agent_message_chunk", "the very last words")
        self.log(sent=sent + 1, seconds=time.monotonic() - began)

    def chunk(self, kind, name, index):
        text = texts.WORDS[(index * 7) % len(texts.WORDS)] + (" " if index % 10 else "\n\n")
        self.update(kind, messageId=f"{name}{self.messages}", content={"type": "text", "text": text})

    def hostile(self, asks):
        for index, text in enumerate(texts.HOSTILE):
            path = f"/project/{text}"
            self.say("agent_message_chunk", f"{text}\n\n`{text}`\n\n```{text}\n{text}\n```\n\n- [{text}](http://{text})\n")
            self.say("agent_thought_chunk", text)
            self.say("user_message_chunk", text)
            edit = f"e{index}"
            self.tool(edit, title=text, kind="edit", status="in_progress", rawInput={text: text})
            content = [
                self.diff(path, text + "\n", text + "!\n"),
                {"type": "content", "content": {"type": "text", "text": text}},
                {"type": "content", "content": {"type": "resource_link", "name": text, "uri": text}},
            ]
            self.tool(edit, status="failed", locations=[{"path": path, "line": 1}], content=content, rawOutput=text)
            if self.version == 2:
                terminal = f"h{index}"
                self.update("terminal_update", terminalId=terminal, command=text, cwd=path)
                self.tool(f"c{index}", title=text, kind="execute", content=[{"type": "terminal", "terminalId": terminal}])
                data = base64.b64encode(f"{text}\r\n".encode()).decode()
                self.update("terminal_output_chunk", terminalId=terminal, data=data)
                self.update("notice", severity="warning", title=text, description=text)
            self.plan([{"content": text, "priority": "high", "status": "in_progress"}])
            self.update("session_info_update", title=text)
            commands = [{"name": f"c{index}{text}", "description": text, "input": {"hint": text}}]
            self.update("available_commands_update", availableCommands=commands)
            # A real client draws at its own pace; without a pause it would draw the last text only.
            time.sleep(0.03)
            if asks and index % 20 == 0:
                self.ask(text)
        self.say("agent_message_chunk", "the very last words")

    def ask(self, text):
        """Asks with the text in the title, the command and the options, and waits for the answer."""
        call = {"toolCallId": f"q{text}", "title": text, "kind": "execute", "rawInput": {"command": text}}
        options = [
            {"optionId": "y", "name": text, "kind": "allow_once"},
            {"optionId": "n", "name": text, "kind": "reject_once"},
        ]
        self.next_id += 1
        params = {"sessionId": SESSION, "options": options}
        if self.version == 2:
            params |= {"title": text, "description": text, "subject": {"type": "tool_call", "toolCall": call}}
        else:
            params |= {"toolCall": call}
        self.send(id=self.next_id, method="session/request_permission", params=params)
        while self.line().get("id") != self.next_id:
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="bench")
    parser.add_argument("--log")
    Agent(**vars(parser.parse_args())).serve()
