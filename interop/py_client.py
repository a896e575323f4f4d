"""A client on the Python SDK that puts the demonstration agent through its paces.

    py_client.py DIRECTORY AGENT [ARG…]

The SDK checks every message against its own models and complains in its log; here that is a failure.
"""
import asyncio
import logging
import pathlib
import sys

import acp
from acp import schema


class Complaints(logging.Handler):
    """Keeps what the SDK complains about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.all = []

    def emit(self, record):
        self.all.append(record.getMessage())


class Host(acp.Client):
    """What the client does for the agent."""

    def __init__(self):
        self.updates = []
        self.on_update = lambda update: None
        self.choice = "allow_once"
        self.asked = 0
        self.terminals = {}

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.on_update(update)

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked += 1
        chosen = next(option for option in options if option.kind == self.choice)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path, session_id, **_):
        return schema.ReadTextFileResponse(content=pathlib.Path(path).read_text())

    async def write_text_file(self, content, path, session_id, **_):
        pathlib.Path(path).write_text(content)
        return schema.WriteTextFileResponse()

    async def create_terminal(self, command, session_id, args=None, **_):
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(command, *(args or []), stdout=pipe)
        self.terminals["t1"] = process
        return schema.CreateTerminalResponse(terminal_id="t1")

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return schema.WaitForTerminalExitResponse(exit_code=await self.terminals[terminal_id].wait())

    async def terminal_output(self, session_id, terminal_id, **_):
        output = (await self.terminals[terminal_id].stdout.read()).decode()
        return schema.TerminalOutputResponse(output=output, truncated=False)

    async def release_terminal(self, session_id, terminal_id, **_):
        del self.terminals[terminal_id]
        return schema.ReleaseTerminalResponse()

    def text(self):
        chunks = [update for update in self.updates if update.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)

    def kinds(self):
        return {update.session_update for update in self.updates}


def expect(holds, what):
    if not holds:
        sys.exit(f"not as expected: {what}")


async def main():
    cwd, command, *args = sys.argv[1:]
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    host = Host()
    async with acp.spawn_agent_process(host, command, *args) as (agent, _):
        fs = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        offers = schema.ClientCapabilities(fs=fs, terminal=True)
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=offers)
        expect(hello.protocol_version == 1, "version 1")
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        expect(session.modes.current_mode_id == "ask", "modes")
        expect(session.config_options[0].current_value == "ask", "an option for the mode")

        async def prompt(words):
            host.updates.clear()
            answer = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(words)])
            return answer.stop_reason

        file = pathlib.Path(cwd) / "notes.txt"
        file.write_text("one\ntwo\n")
        steps = ["say hello there", "think hm", "plan", "ask", f"diff {file}", "screen", "usage", "title My day"]
        expect(await prompt("; ".join(steps)) == "end_turn", "the turn ends")
        expect("hello there" in host.text(), "what was to be said is said")
        expect(host.asked == 1, "permission was asked for")
        wanted = {"agent_thought_chunk", "plan", "tool_call", "tool_call_update", "usage_update", "session_info_update"}
        expect(wanted <= host.kinds(), f"updates {wanted - host.kinds()}")
        await prompt(f"read {file}; write {file} three; run echo four")
        expect("It has 2 lines." in host.text(), "the file was read through the client")
        expect(file.read_text() == "three", "the file was written through the client")
        expect("Exit code 0, output: four" in host.text(), "the command was run through the client")
        expect(not host.terminals, "the terminal was released")

        await agent.set_session_mode(session_id=session.session_id, mode_id="auto")
        host.asked = 0
        await prompt("ask")
        expect(host.asked == 0, "the mode was changed")
        answer = await agent.set_config_option(session_id=session.session_id, config_id="mode", value="ask")
        expect(answer.config_options[0].current_value == "ask", "the option was set")
        host.choice = "reject_once"
        await prompt("ask")
        expect("Then not." in host.text(), "a no is a no")

        def cancel(update):
            if update.session_update == "agent_message_chunk":
                asyncio.ensure_future(agent.cancel(session_id=session.session_id))

        host.on_update = cancel
        expect(await prompt("slow") == "cancelled", "a turn can be cancelled")
        host.on_update = lambda update: None
        expect(await prompt("refuse") == "refusal", "a turn can be refused")
        try:
            await agent.prompt(session_id="none", prompt=[acp.text_block("x")])
            expect(False, "a session that is not there is an error")
        except acp.RequestError:
            pass
        listed = await agent.list_sessions()
        expect(listed.sessions[0].title == "My day", "the session is listed with its title")
        await agent.close_session(session_id=session.session_id)
        host.updates.clear()
        await agent.load_session(cwd=cwd, session_id=session.session_id, mcp_servers=[])
        expect("hello there" in host.text(), "the history is told again")
        await agent.close_session(session_id=session.session_id)
        await agent.resume_session(session_id=session.session_id, cwd=cwd)
        expect(await prompt("say again") == "end_turn", "the session goes on")
    expect(not complaints.all, f"no complaints: {complaints.all[:3]}")
    print("all as expected")


asyncio.run(main())
