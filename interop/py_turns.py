"""A client on the Python SDK that has whole turns with the built-in agent.

    py_turns.py offline|scripted DIRECTORY AGENT [ARG…]
    TOKEN=… py_turns.py offline|scripted DIRECTORY http://…|ws://…

Both models do what the lines of a prompt say (`call TOOL JSON`), so that the turns are the same. The SDK checks every
message against its own models and complains in its log; here that is a failure.
"""
import asyncio
import contextlib
import json
import logging
import os
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
        self.on_asked = None
        self.asked = []
        self.questions = []
        self.reads = self.writes = self.started = 0
        self.terminals = {}

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.on_update(update)

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked.append((options, tool_call))
        if self.on_asked:
            await self.on_asked()
        chosen = next((option for option in options if option.kind == self.choice), None)
        if not chosen:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message, mode, **_):
        self.questions.append((message, mode))
        return schema.AcceptElicitationResponse(action="accept", content={"answer": "blue"})

    async def read_text_file(self, path, session_id, line=None, limit=None, **_):
        self.reads += 1
        try:
            lines = pathlib.Path(path).read_text().splitlines(keepends=True)
        except FileNotFoundError:
            raise acp.RequestError.resource_not_found(path) from None
        start = (line or 1) - 1
        return schema.ReadTextFileResponse(content="".join(lines[start : start + limit if limit else None]))

    async def write_text_file(self, content, path, session_id, **_):
        self.writes += 1
        pathlib.Path(path).write_text(content)
        return schema.WriteTextFileResponse()

    async def create_terminal(self, command, session_id, args=None, cwd=None, env=None, **_):
        pipe = asyncio.subprocess.PIPE
        more = {variable.name: variable.value for variable in env or []}
        process = await asyncio.create_subprocess_exec(
            command, *(args or []), cwd=cwd, env={**os.environ, **more}, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        self.started += 1
        self.terminals[f"t{self.started}"] = process
        return schema.CreateTerminalResponse(terminal_id=f"t{self.started}")

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return schema.WaitForTerminalExitResponse(exit_code=max(await self.terminals[terminal_id].wait(), 0))

    async def terminal_output(self, session_id, terminal_id, **_):
        output = (await self.terminals[terminal_id].stdout.read()).decode()
        return schema.TerminalOutputResponse(output=output, truncated=False)

    async def kill_terminal(self, session_id, terminal_id, **_):
        self.end(self.terminals[terminal_id])
        return schema.KillTerminalResponse()

    async def release_terminal(self, session_id, terminal_id, **_):
        self.end(self.terminals.pop(terminal_id))
        return schema.ReleaseTerminalResponse()

    def end(self, process):
        if process.returncode is None:
            process.kill()

    def of(self, kind):
        return [update for update in self.updates if update.session_update == kind]

    def text(self):
        return "".join(chunk.content.text for chunk in self.of("agent_message_chunk"))

    def calls(self):
        """The tool calls of the turn as they are in the end, with all their states."""
        calls = {}
        for update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                is_new = update.tool_call_id not in calls
                expect(is_new == (update.session_update == "tool_call"), "a call begins with `tool_call`")
                call = calls.setdefault(update.tool_call_id, {"states": []})
                told = update.model_dump(exclude={"session_update", "field_meta"})
                call.update({name: value for name, value in told.items() if value is not None})
                if update.status:
                    call["states"].append(update.status)
        return list(calls.values())


def expect(holds, what):
    if not holds:
        sys.exit(f"not as expected: {what}")


def call(tool, **arguments):
    return f"call {tool} {json.dumps(arguments)}"


@contextlib.asynccontextmanager
async def connected(host, command, args):
    """The agent: a command to start, or a server by its address."""
    if "://" not in command:
        async with acp.spawn_agent_process(host, command, *args, use_unstable_protocol=True) as (agent, _):
            yield agent
        return
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    if command.startswith("http"):
        from acp.http import create_http_stream

        stream = create_http_stream(command, headers=headers)
    else:
        from acp.ws import create_websocket_stream

        stream = await create_websocket_stream(command, headers=headers)
    agent = acp.connect_to_agent(host, stream, use_unstable_protocol=True)
    try:
        yield agent
    finally:
        await agent.close()


async def main():
    model, cwd, command, *args = sys.argv[1:]
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    host = Host()
    file = pathlib.Path(cwd) / "a.txt"

    def edit(old, new):
        return call("edit_file", path="a.txt", old_text=old, new_text=new)

    fs = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
    offers = schema.ClientCapabilities(fs=fs, terminal=True, elicitation=forms)
    async with connected(host, command, args) as agent:
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=offers)
        expect(hello.protocol_version == 1 and hello.agent_info.name == "attache", "version 1 of our agent")
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        session_id = session.session_id
        expect(session.modes.current_mode_id == "ask", "modes")
        options = {option.id: option.current_value for option in session.config_options}
        expect(options["mode"] == "ask" and options["sandbox"] == "on", "options")

        async def prompt(words):
            host.updates.clear()
            host.asked.clear()
            answer = await agent.prompt(session_id=session_id, prompt=[acp.text_block(words)])
            left = [one for one in host.calls() if one["status"] not in ("completed", "failed")]
            expect(not left, f"calls that are left open: {left}")
            return answer.stop_reason

        # A turn with all sorts of tools.
        file.write_text("one\ntwo\n")
        steps = [
            call("update_plan", entries=[{"content": "Change it", "status": "in_progress"}]),
            call("think", thought="hm"),
            call("read_file", path="a.txt"),
            edit("two", "three"),
            call("write_file", path="new.txt", content="four\n"),
            call("run_command", command="echo five > ran.txt; echo made"),
            call("ask_user", question="Which colour?", choices=["red", "blue"]),
        ]
        if model == "scripted":
            steps.insert(0, "remember cherry")
        expect(await prompt("\n".join(steps)) == "end_turn", "the turn ends")
        live, said = host.calls(), host.text()
        kinds = " ".join(one["kind"] for one in live)
        expect(kinds == "think think read edit edit execute other", f"the kinds of the calls: {kinds}")
        states = [" ".join(one["states"]) for one in live]
        expect(set(states) == {"pending in_progress completed"}, f"the states of the calls: {states}")
        made = [(pathlib.Path(cwd) / name).read_text() for name in ("a.txt", "new.txt", "ran.txt")]
        expect(made == ["one\nthree\n", "four\n", "five\n"], f"the files: {made}")
        expect(host.of("plan")[0].entries[0].content == "Change it", "the plan is shown")
        expect(host.of("usage_update") and host.of("session_info_update"), "usage and a title are told")
        expect(len(host.asked) == 3, "permission was asked for three times")
        asked_options, asked_call = host.asked[0]
        diff = next(part for part in asked_call.content if part.type == "diff")
        expect("two" in diff.old_text and "three" in diff.new_text, "the request has the diff")
        kinds = [option.kind for option in asked_options]
        expect(kinds == ["allow_once", "allow_always", "allow_always", "reject_once", "reject_always"], f"five options: {kinds}")
        expect(host.questions[0][0] == "Which colour?", "the question was asked")
        expect(host.reads > 0 and host.writes == 2, "files are read and written through the client")
        expect(host.started == 0, "the command ran in the agent's sandbox, not in a terminal of the client")

        # Modes and options.
        await agent.set_session_mode(session_id=session_id, mode_id="code")
        await prompt(edit("three", "two"))
        expect(not host.asked and file.read_text() == "one\ntwo\n", "mode `code` changes files without asking")
        answer = await agent.set_config_option(session_id=session_id, config_id="mode", value="ask")
        options = {option.id: option.current_value for option in answer.config_options}
        expect(options["mode"] == "ask", "the option was set")
        try:
            await agent.set_config_option(session_id=session_id, config_id="mode", value="nonsense")
            expect(False, "nonsense is an error")
        except acp.RequestError:
            pass

        # A no, and no answer.
        host.choice = "reject_once"
        await prompt(edit("two", "six"))
        expect(host.calls()[0]["status"] == "failed" and file.read_text() == "one\ntwo\n", "a no is a no")
        host.choice = "nothing"
        host.on_asked = lambda: agent.cancel(session_id=session_id)
        expect(await prompt(edit("two", "six")) == "cancelled", "a turn is cancelled while it asks")
        expect(len(host.asked) == len(host.calls()) == 1, "nothing is begun after a cancel")
        expect(file.read_text() == "one\ntwo\n", "no answer is a no")
        host.choice, host.on_asked = "allow_once", None

        # Cancel while the model talks, and while a command runs.
        def cancel_when(is_time):
            def look(update):
                if is_time(update):
                    host.on_update = lambda update: None
                    asyncio.ensure_future(agent.cancel(session_id=session_id))

            host.on_update = look

        cancel_when(lambda update: update.session_update == "agent_message_chunk" and "word" in update.content.text)
        expect(await prompt("slowly " + "word " * 500) == "cancelled", "a turn is cancelled while it talks")
        cancel_when(lambda update: update.session_update == "tool_call_update" and "begun" in str(update.content))
        expect(await prompt(call("run_command", command="echo be''gun; sleep 60")) == "cancelled", "and while it works")
        for _ in range(100):
            # The SDK hands on the answer before it has handled requests that came earlier.
            await asyncio.sleep(0.01 if host.terminals else 0)
        expect(not host.terminals, "the terminal of a cancelled turn was released")
        expect(await prompt("/status") == "end_turn" and session_id in host.text(), "slash commands work")

        # List, close, load, resume. The SDK has no `session/delete`.
        listed = [one for one in (await agent.list_sessions(cwd=cwd)).sessions if one.session_id == session_id]
        expect(listed and listed[0].title, "the session is listed with its title")
        await agent.close_session(session_id=session_id)
        host.updates.clear()
        await agent.load_session(cwd=cwd, session_id=session_id, mcp_servers=[])
        expect(host.text().startswith(said), "what was said is told again")
        for before, again in zip(live, host.calls()):
            for key in ("tool_call_id", "title", "kind", "status", "raw_input", "locations"):
                expect(before.get(key) == again.get(key), f"{key} of {before['title']} is told again")
        expect(host.calls()[3]["content"] == live[3]["content"], "the diff is told again")
        await agent.close_session(session_id=session_id)
        host.updates.clear()
        await agent.resume_session(session_id=session_id, cwd=cwd)
        expect(not host.text() and not host.calls(), "a resumed session is not told again")
        later, answer = ("recall", "remembered cherry") if model == "scripted" else ("say again", "again")
        expect(await prompt(later) == "end_turn" and host.text().endswith(answer), f"it goes on: {host.text()}")
        await agent.close_session(session_id=session_id)
    # The same on a connection of its own.
    async with connected(host, command, args) as agent:
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=offers)
        host.updates.clear()
        await agent.load_session(cwd=cwd, session_id=session_id, mcp_servers=[])
        expect(host.text().startswith(said), "what was said is told again on another connection")
        expect(await prompt(later) == "end_turn" and host.text().endswith(answer), f"it goes on there: {host.text()}")
    # It does not know `$/cancel_request`, with which a question is withdrawn when the turn is cancelled.
    others = [complaint for complaint in complaints.all if "$/cancel_request" not in complaint]
    expect(not others, f"no complaints: {others[:3]}")
    print("all as expected")


asyncio.run(main())
