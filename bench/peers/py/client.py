"""The client under test on the Python SDK, written as the SDK's quickstart is.

    client.py AGENT [ARG…]

Sends the prompt in BENCH_PROMPT, takes every update and prints how many there were. With BENCH_STALL=1 the handler of
the first update and of all later ones never returns, and the client stays until it is killed.
"""
import asyncio
import os
import sys

import acp
from acp import schema


class Counter(acp.Client):
    def __init__(self):
        self.count = 0
        self.stall = os.environ.get("BENCH_STALL") == "1"

    async def session_update(self, session_id, update, **_):
        self.count += 1
        if self.stall:
            await asyncio.Event().wait()

    async def read_text_file(self, path, session_id, **_):
        return schema.ReadTextFileResponse(content="x")


async def main():
    counter = Counter()
    # The SDK hands the agent a few variables only, and keeps what it writes to stderr; here neither is wanted.
    launch = {"env": os.environ, "transport_kwargs": {"stderr": None}}
    async with acp.spawn_agent_process(counter, *sys.argv[1:], **launch) as (agent, _):
        fs = schema.FileSystemCapabilities(read_text_file=True)
        offers = schema.ClientCapabilities(fs=fs)
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=offers)
        session = await agent.new_session(cwd="/tmp", mcp_servers=[])
        prompt = [acp.text_block(os.environ["BENCH_PROMPT"])]
        await agent.prompt(session_id=session.session_id, prompt=prompt)
        if counter.stall:
            await asyncio.Event().wait()
    print(f"count {counter.count}")


asyncio.run(main())
