#!/usr/bin/env python3
"""The agent in the pictures: it plays a scene for every prompt."""

import base64
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/chat"))

import agent

FIRST = """The client gives up after *one* error. I'll try again, with a growing delay:

```rust
for attempt in 1..tries {
    if let Ok(value) = call().await { return Ok(value); }
    sleep(Duration::from_millis(50 << attempt)).await;
}
```
"""

FETCH = """@@ -1,3 +1,3 @@
 pub async fn fetch(&self, url: &Url) -> Result<Page> {
-    self.get(url).await?.page()
+    retry(5, || self.get(url)).await?.page()
 }
"""

CONFIG = """@@ -8,4 +8,6 @@
 pub struct Config {
     pub base: Url,
-    pub tries: u32,
+    pub tries: NonZeroU32,
+    /// The longest time between two tries.
+    pub longest_delay: Duration,
 }
"""

OUTPUT = (
    "running 12 tests\r\n"
    "test result: \x1b[32mok\x1b[0m. 12 passed; 0 failed\r\n"
)


class Scenes(agent.Agent):
    def turn(self, id, text):
        self.send(id=id, result={"messageId": f"u{id}"})
        self.update("state_update", state="running")
        if "flaky" in text:
            self.conversation()
        elif "delay" in text:
            self.question()
        else:
            self.say("agent_message_chunk", "The changelog names every change since 0.3.0.")
        self.update("state_update", state="idle", stopReason="end_turn")

    def steps(self, *states):
        names = ["Find where requests give up", "Retry with a growing delay", "Write it into the changelog"]
        self.plan(
            [{"content": name, "priority": "medium", "status": state} for name, state in zip(names, states, strict=True)]
        )

    def change(self, file, hunk):
        path = f"{self.directory}/{file}"
        change = {"operation": "modify", "path": path, "fileType": "text"}
        text = f"diff --git {path} {path}\n--- {path}\n+++ {path}\n{hunk}"
        return [{"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": text}}]

    def conversation(self):
        self.update("session_info_update", title="Flaky requests")
        self.update("usage_update", used=24_300, size=200_000, cost={"amount": 0.08, "currency": "USD"})
        self.say("agent_thought_chunk", "The tests fail only now and then, so it is the network.")
        self.say("agent_message_chunk", FIRST)
        content = self.change("src/client.rs", FETCH)
        locations = [{"path": f"{self.directory}/src/client.rs", "line": 2}]
        self.tool("e1", title="Edit client.rs", kind="edit", status="completed", content=content, locations=locations)
        self.update("terminal_update", terminalId="t1", command="cargo test --quiet")
        shown = [{"type": "terminal", "terminalId": "t1"}]
        self.tool("c1", title="cargo test --quiet", kind="execute", status="in_progress", content=shown)
        self.update("terminal_output_chunk", terminalId="t1", data=base64.b64encode(OUTPUT.encode()).decode())
        self.update("terminal_update", terminalId="t1", exitStatus={"exitCode": 0})
        self.tool("c1", status="completed")
        self.steps("completed", "completed", "in_progress")

    def question(self):
        self.say("agent_message_chunk", "The longest delay should be a setting. I'll add it to `Config`, with **2 s** as before:\n")
        content = self.change("src/config.rs", CONFIG)
        self.tool("e2", title="Edit config.rs", kind="edit", status="pending", content=content)
        call = {"toolCallId": "e2", "title": "Edit config.rs", "kind": "edit", "content": content}
        options = [
            {"optionId": "once", "name": "Allow", "kind": "allow_once"},
            {"optionId": "always", "name": "Allow edits for this session", "kind": "allow_always"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
        ]
        subject = {"type": "tool_call", "toolCall": call}
        params = {"sessionId": agent.SESSION, "title": "Add a setting for the longest delay", "subject": subject, "options": options}
        self.next_id += 1
        self.send(id=self.next_id, method="session/request_permission", params=params)
        while self.line().get("id") != self.next_id:
            pass


if __name__ == "__main__":
    Scenes("demo").serve()
