"""An agent on the Python SDK: asks for permission, reads a file and runs a command through the client.

A prompt of lines `read PATH`, `write PATH TEXT`, `run COMMAND` and `slowly` is done line by line. Where PORT is given, it is
served there over HTTP and WebSocket, else on stdin and stdout.
"""
import asyncio
import logging
import os
import re

import acp
from acp import schema

STEP = re.compile(r"^(?:(read|write|run) (\S+) ?(.*)|slowly)$", re.M)
OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Worker(acp.Agent):
    def __init__(self):
        self.mode = "calm"
        self.cancelled = asyncio.Event()

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        info = schema.Implementation(name="interop-py", version="1")
        return schema.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, agent_info=info)

    async def new_session(self, cwd, mcp_servers=None, **_):
        modes = [schema.SessionMode(id=name, name=name.title()) for name in ("calm", "quick")]
        state = schema.SessionModeState(current_mode_id=self.mode, available_modes=modes)
        return schema.NewSessionResponse(session_id="s1", modes=state)

    async def set_session_mode(self, mode_id, session_id, **_):
        self.mode = mode_id
        return schema.SetSessionModeResponse()

    async def cancel(self, session_id, **_):
        self.cancelled.set()

    async def prompt(self, prompt, session_id, **_):
        async def tell(update):
            await self.client.session_update(session_id=session_id, update=update)

        steps = list(STEP.finditer(prompt[0].text))
        if steps:
            return schema.PromptResponse(stop_reason=await self.work(session_id, steps, tell))
        steps = [acp.plan_entry("Read", priority="high", status="in_progress")]
        await tell(acp.update_plan(steps))
        await tell(acp.update_agent_thought_text("hm"))
        await tell(acp.start_tool_call("t1", "Read it", kind="read", status="pending"))
        call = schema.ToolCallUpdate(tool_call_id="t1", title="Read it")
        asked = await self.client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
        if asked.outcome.outcome == "cancelled":
            await self.cancelled.wait()
            return schema.PromptResponse(stop_reason="cancelled")
        if asked.outcome.option_id != "yes":
            await tell(acp.update_tool_call("t1", status="failed"))
            await tell(acp.update_agent_message_text("rejected"))
            return schema.PromptResponse(stop_reason="end_turn")
        path = prompt[0].text
        file = await self.client.read_text_file(session_id=session_id, path=path, line=2, limit=1)
        made = await self.client.create_terminal(session_id=session_id, command="echo", args=["four"])
        place = {"session_id": session_id, "terminal_id": made.terminal_id}
        ended = await self.client.wait_for_terminal_exit(**place)
        output = await self.client.terminal_output(**place)
        await self.client.release_terminal(**place)
        content = [acp.tool_content(acp.text_block(file.content))]
        await tell(acp.update_tool_call("t1", status="completed", content=content))
        words = f"read {file.content!r}, ran {output.output!r} ({ended.exit_code}) in mode {self.mode}"
        await tell(acp.update_agent_message_text(words))
        return schema.PromptResponse(stop_reason="end_turn")

    async def work(self, session_id, steps, tell):
        """Does the lines of a prompt and returns the stop reason. Writing and running are asked for first."""
        client, kinds = self.client, {"read": "read", "write": "edit", "run": "execute"}
        self.cancelled.clear()
        for number, step in enumerate(steps, 1):
            verb, first, rest = step.groups()
            if not verb:
                for word in range(300):
                    if self.cancelled.is_set():
                        return "cancelled"
                    await tell(acp.update_agent_message_text(f"word {word} "))
                    await asyncio.sleep(0.1)
                return "end_turn"
            name, line, text = f"t{number}", step.group(), rest.replace("\\n", "\n")
            about = {"locations": [schema.ToolCallLocation(path=first)]}
            if verb == "run":
                about = {"raw_input": {"command": line.removeprefix("run ")}}
            if verb == "write":
                about["content"] = [acp.tool_diff_content(first, text)]
            await tell(acp.update_agent_message_text(f"step {number}\n"))
            await tell(acp.start_tool_call(name, line, kind=kinds[verb], status="pending", **about))
            if verb != "read":
                call = schema.ToolCallUpdate(tool_call_id=name, title=line, kind=kinds[verb], **about)
                asked = await client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
                if asked.outcome.outcome == "cancelled":
                    return "cancelled"
                if asked.outcome.option_id != "yes":
                    await tell(acp.update_tool_call(name, status="failed"))
                    continue
            is_done = True
            try:
                if verb == "read":
                    is_done = bool((await client.read_text_file(session_id=session_id, path=first)).content)
                elif verb == "write":
                    await client.write_text_file(session_id=session_id, path=first, content=text)
                else:
                    words = ["-c", line.removeprefix("run ")]
                    made = await client.create_terminal(session_id=session_id, command="sh", args=words)
                    place = {"session_id": session_id, "terminal_id": made.terminal_id}
                    is_done = (await client.wait_for_terminal_exit(**place)).exit_code == 0
                    await client.release_terminal(**place)
            except acp.RequestError:
                is_done = False
            await tell(acp.update_tool_call(name, status="completed" if is_done else "failed"))
        await tell(acp.update_agent_message_text("done"))
        return "end_turn"


logging.basicConfig(level=logging.WARNING)
if "PORT" in os.environ:
    from acp.http.asgi import create_asgi_app
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{os.environ['PORT']}"]
    asyncio.run(serve(create_asgi_app(lambda connection: Worker()), config))
else:
    asyncio.run(acp.run_agent(Worker()))
