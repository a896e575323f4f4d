"""The agent under test on the Python SDK, written as the SDK's examples are. The prompt says what a turn does."""
import asyncio

import acp
from acp import schema


def filler(size):
    """As many bytes as asked for: letters, and every tenth byte a space."""
    return ("xxxxxxxxx " * (size // 10 + 1))[:size]


class Worker(acp.Agent):
    def __init__(self):
        self.sessions = 0

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        takes = schema.PromptCapabilities(embedded_context=True)
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(prompt_capabilities=takes),
        )

    async def new_session(self, cwd, mcp_servers=None, **_):
        self.sessions += 1
        modes = [schema.SessionMode(id=name, name=name) for name in ("a", "b")]
        state = schema.SessionModeState(current_mode_id="a", available_modes=modes)
        return acp.NewSessionResponse(session_id=f"s{self.sessions}", modes=state)

    async def set_session_mode(self, mode_id, session_id, **_):
        return acp.SetSessionModeResponse()

    async def prompt(self, prompt, session_id, **_):
        async def tell(update):
            await self.client.session_update(session_id=session_id, update=update)

        words = next(block.text for block in prompt if block.type == "text").split()
        match words[0], *map(int, words[1:]):
            # The examples wait for every update they send, so these two are the same thing here.
            case ("w3" | "w3p"), count, size:
                text = filler(size)
                for _ in range(count):
                    await tell(acp.update_agent_message_text(text))
            case "w3b", count, size:
                text = filler(size)
                await tell(acp.start_tool_call("call_1", "Work"))
                for _ in range(count):
                    content = [acp.tool_content(acp.text_block(text))]
                    await tell(acp.update_tool_call("call_1", content=content))
            case "w6b", count, rounds:
                for _ in range(rounds):
                    reads = (self.client.read_text_file(session_id=session_id, path="/tmp/x") for _ in range(count))
                    await asyncio.gather(*reads)
            case "size",:
                resource = next(block.resource for block in prompt if block.type == "resource")
                await tell(acp.update_agent_message_text(str(len(resource.text.encode()))))
            case _:
                raise acp.RequestError.invalid_params({"details": f"no workload `{words[0]}`"})
        return acp.PromptResponse(stop_reason="end_turn")


asyncio.run(acp.run_agent(Worker()))
