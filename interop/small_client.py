"""A small client on the Python SDK for `attache check client`: one prompt, everything allowed, then it leaves.

    small_client.py PROMPT AGENT [ARG…]
"""
import asyncio
import os
import pathlib
import sys

import acp
from acp import schema


class Host:
    """What the client does for the agent. A base class would answer what is not here with nothing."""

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        pass

    async def request_permission(self, options, session_id, tool_call, **_):
        chosen = next((option for option in options if option.kind == "allow_once"), options[0])
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path, session_id, line=None, limit=None, **_):
        try:
            text = pathlib.Path(path).read_text()
        except FileNotFoundError:
            raise acp.RequestError(-32002, "Resource not found", {"uri": path}) from None
        if line is not None or limit is not None:
            start = (line or 1) - 1
            text = "".join(text.splitlines(keepends=True)[start : None if limit is None else start + limit])
        return schema.ReadTextFileResponse(content=text)

    async def write_text_file(self, content, path, session_id, **_):
        pathlib.Path(path).write_text(content)
        return schema.WriteTextFileResponse()


async def main():
    words, command, *args = sys.argv[1:]
    async with acp.spawn_agent_process(Host(), command, *args, env=dict(os.environ)) as (agent, _):
        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        hello = await agent.initialize(
            protocol_version=1,
            client_capabilities=schema.ClientCapabilities(fs=files),
            client_info=schema.Implementation(name="small-py", version="0.12.1"),
        )
        if hello.protocol_version != 1:
            return
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(words)])


asyncio.run(main())
