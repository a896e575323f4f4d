"""A small agent on the Python SDK, for `attache check agent --script brackets`: what its author decides keeps to the protocol as
far as that is easy, so that what is found is mostly the SDK's.

It does what stands in brackets: `[[say T]]`, `[[read P]]`, `[[write P T]]`, `[[shell C]]`, `[[slow N S]]`, `[[refuse]]`, `[[maxtokens]]`.
"""
import asyncio
import os
import pathlib
import re
import uuid
from asyncio.subprocess import DEVNULL

import acp
from acp import schema

STEP = re.compile(r"\[\[(\w+)(?:\s+(.*?))?\]\]", re.S)
OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]
KINDS = {"read": "read", "write": "edit", "shell": "execute"}
STOPS = {"refuse": "refusal", "maxtokens": "max_tokens"}


class Small:
    """Only what it serves is there: a base class would answer the rest with nothing."""

    def __init__(self):
        self.turns = {}
        self.stopped = set()

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        self.files = client_capabilities.fs if client_capabilities else None
        info = schema.Implementation(name="small-py", version="0.12.1")
        return schema.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, agent_info=info)

    async def new_session(self, cwd, mcp_servers=None, **_):
        if not os.path.isabs(cwd):
            raise acp.RequestError(-32602, "`cwd` is not absolute")
        session_id = str(uuid.uuid4())
        self.turns[session_id] = set()
        return schema.NewSessionResponse(session_id=session_id)

    async def cancel(self, session_id, **_):
        for turn in self.turns.get(session_id, ()):
            self.stopped.add(turn)
            turn.cancel()

    async def prompt(self, prompt, session_id, **_):
        if session_id not in self.turns:
            raise acp.RequestError(-32002, "There is no such session", {"sessionId": session_id})
        text = "\n".join(getattr(block, "text", None) or "" for block in prompt)
        turn = asyncio.ensure_future(self.work(session_id, STEP.findall(text)))
        self.turns[session_id].add(turn)
        try:
            return schema.PromptResponse(stop_reason=await turn)
        except asyncio.CancelledError:
            if turn not in self.stopped:
                raise
            return schema.PromptResponse(stop_reason="cancelled")
        finally:
            self.turns[session_id].discard(turn)

    async def work(self, session_id, steps):
        async def tell(update):
            await self.client.session_update(session_id=session_id, update=update)

        stop = "end_turn"
        for verb, text in steps or [("say", "Hello.")]:
            stop = STOPS.get(verb, stop)
            if verb == "say":
                await tell(acp.update_agent_message_text(text))
            if verb == "slow":
                for word in range(int(text.split()[0])):
                    await tell(acp.update_agent_message_text(f"word {word} "))
                    await asyncio.sleep(0.1)
            if verb in KINDS:
                await self.act(session_id, verb, text, tell)
        return stop

    async def act(self, session_id, verb, text, tell):
        path, _, content = text.partition(" ")
        name, title, done = str(uuid.uuid4()), f"{verb} {path}", "failed"
        await tell(acp.start_tool_call(name, title, kind=KINDS[verb], status="pending"))
        try:
            if verb != "read":
                call = schema.ToolCallUpdate(tool_call_id=name, title=title, kind=KINDS[verb])
                asked = await self.client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
                if asked.outcome.outcome == "cancelled" or asked.outcome.option_id != "yes":
                    return
            await tell(acp.update_tool_call(name, status="in_progress"))
            if verb == "shell":
                shell = await asyncio.create_subprocess_shell(text, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
                try:
                    await shell.wait()
                finally:
                    if shell.returncode is None:
                        shell.kill()
            elif verb == "read" and self.files and self.files.read_text_file:
                await self.client.read_text_file(session_id=session_id, path=path)
            elif verb == "read":
                pathlib.Path(path).read_text()
            elif self.files and self.files.write_text_file:
                await self.client.write_text_file(session_id=session_id, path=path, content=content)
            else:
                pathlib.Path(path).write_text(content)
            done = "completed"
        except (acp.RequestError, OSError):
            pass
        finally:
            await tell(acp.update_tool_call(name, status=done))


asyncio.run(acp.run_agent(Small()))
