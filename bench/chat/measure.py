#!/usr/bin/env python3
"""Measures terminal clients in a pty, and writes bench/CHAT.md. Started by bench/chat/run."""

import argparse
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata

import texts
from terminal import Gone, Terminal

HERE = pathlib.Path(__file__).resolve().parent
AGENT = [sys.executable, str(HERE / "agent.py")]

# No text of the agent, of a client or of a status line has one of them.
LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"

END_OF_FRAME = b"\x1b[?2026l"


class Client:
    """A terminal client, how it is started and what shows that it is ready for keys."""

    def __init__(self, name, command, ready, environment=None, agent=False, version=""):
        self.name, self.command, self.ready = name, command, ready
        self.environment = environment or {}
        # Whether it talks to the agent of this benchmark.
        self.has_our_agent = agent
        self.version = version

    def start(self, home, project):
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            **self.environment,
        }
        return Terminal(self.command, environment=environment, directory=project)


def attache_clients(attache, agent):
    version = subprocess.run([attache, "--version"], capture_output=True, text=True).stdout.strip()
    composer = "Write to the agent"
    return [
        Client("attache, built-in agent", [attache, "chat", "-a", "attache"], composer, version=version),
        Client("attache, picker", [attache, "chat"], "Who do you want to talk to", version=version),
        Client("attache, agent of the benchmark", [attache, "chat", "--", *agent], composer, agent=True, version=version),
    ]


def other_clients(home, project, agent):
    """The clients of others that are installed: see `run`."""
    found = []
    # No network but loopback: nothing is fetched, and nobody is called.
    offline = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
    if subprocess.run([*offline, "true"], capture_output=True).returncode:
        print("no network namespaces here: other clients are left out", file=sys.stderr)
        return found

    def version(command, environment=None):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
        numbers = re.search(r"\d+\.\d+\.\d+", done.stdout)
        return numbers.group() if numbers else "unknown"

    if toad := os.environ.get("TOAD"):
        toad = shlex.split(toad)
        command = [*offline, *toad, "acp", shlex.join(agent), str(project)]
        found.append(Client("toad", command, "How can I help", agent=True, version=version([*toad, "--version"])))
    if codex := os.environ.get("CODEX"):
        (home / ".codex").mkdir()
        (home / ".codex/config.toml").write_text(
            f"""
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "Fake"
base_url = "http://127.0.0.1:8089/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
requires_openai_auth = false
[projects."{project}"]
trust_level = "trusted"
"""
        )
        environment = {"FAKE_KEY": "fake"}
        number = version([codex, "--version"], {"HOME": str(home)})
        found.append(Client("codex", [*offline, codex], "› ", environment, version=number))
    if opencode := os.environ.get("OPENCODE"):
        model = {"name": "Fake Model", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
        options = {"baseURL": "http://127.0.0.1:8089/v1", "apiKey": "fake"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"fake-model": model}}
        config = {"model": "fake/fake-model", "autoupdate": False, "share": "disabled", "provider": {"fake": provider}}
        (home / "opencode.json").write_text(json.dumps(config))
        environment = {
            "OPENCODE_CONFIG": str(home / "opencode.json"),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        number = version([opencode, "--version"], {"HOME": str(home)})
        found.append(Client("opencode", [*offline, opencode], "Ask anything", environment, version=number))
    return found


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="chat-bench-"))
        self.project = self.home / "project"
        self.project.mkdir()
        self.log = self.home / "sent.json"
        agent = [*AGENT, "--log", str(self.log)]
        self.clients = attache_clients(arguments.attache, agent)
        self.ours = self.clients[-1]
        self.clients += other_clients(self.home, self.project, agent)
        self.results = []

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def keep(self, what, client, **figures):
        self.results.append({"what": what, "client": client.name, **figures})
        self.say(f"{what}: {client.name}: {figures}")

    def start(self, client):
        """Starts a client that has our agent, and waits until it is ready for a prompt."""
        self.log.unlink(missing_ok=True)
        # What was typed before would come back.
        shutil.rmtree(self.home / ".local/state/attache", ignore_errors=True)
        terminal = client.start(self.home, self.project)
        terminal.wait_for(client.ready, timeout=60)
        terminal.read_until_quiet(1, 15)
        return terminal

    # First frame

    def first_frames(self):
        seconds = {client.name: [] for client in self.clients}
        # The first round warms the file cache, and those that compile themselves at the first start.
        for round in range(self.arguments.starts + 1):
            for client in self.clients:
                is_ours = client.name.startswith("attache")
                if not is_ours and round > self.arguments.other_starts:
                    continue
                with client.start(self.home, self.project) as terminal:
                    try:
                        terminal.wait_for(client.ready, timeout=60)
                    except (TimeoutError, Gone) as error:
                        self.say(f"{client.name}: {error}")
                        continue
                    if round > 0:
                        seconds[client.name].append(terminal.first_seen(client.ready))
        for client in self.clients:
            if taken := seconds[client.name]:
                taken = [second * 1000 for second in taken]
                self.keep(
                    "first frame", client, median=statistics.median(taken), best=min(taken), worst=max(taken), count=len(taken)
                )

    # Keys

    def echoes(self, terminal, count):
        """Milliseconds from a key to its letter in what the terminal gets."""
        taken = []
        for index in range(count):
            letter = LETTERS[index % len(LETTERS)].encode()
            seen, began = b"", time.monotonic()
            terminal.write(letter)
            while letter not in seen and time.monotonic() - began < 5:
                seen += terminal.read(1)
            taken.append((time.monotonic() - began) * 1000)
            terminal.write(b"\x7f")
            terminal.read_for(random.uniform(0.02, 0.06))
        return taken

    def keys_at_rest(self):
        plain = Client("cat", ["sh", "-c", "stty raw -echo; echo ready; exec cat"], "ready")
        for client in [plain, *self.clients]:
            if client.name == "attache, picker":
                continue
            with self.start(client) as terminal:
                # The placeholder goes.
                terminal.write(b"x")
                terminal.read_for(0.5)
                taken = self.echoes(terminal, self.arguments.keys)
            self.keep("key at rest", client, p50=percentile(taken, 0.5), p99=percentile(taken, 0.99), worst=max(taken))

    def keys_in_stream(self):
        for client in [client for client in self.clients if client.has_our_agent]:
            rounds = []
            for _ in range(self.arguments.rounds):
                seconds = self.arguments.keys * 0.06 + 4
                terminal = self.start(client)
                with terminal:
                    terminal.write(f"stream {self.arguments.rate} {seconds:.0f}".encode())
                    terminal.read_for(0.5)
                    terminal.write(b"\r")
                    terminal.read_for(1)
                    terminal.write(b"x")
                    terminal.read_for(0.5)
                    before = terminal.read_bytes
                    began = time.monotonic()
                    # A client that cannot follow needs longer for a key; the keys end with the stream.
                    taken = []
                    while len(taken) < self.arguments.keys and time.monotonic() - began < seconds - 2.5:
                        taken += self.echoes(terminal, 1)
                    drawn = (terminal.read_bytes - before) / (time.monotonic() - began)
                    cpu = cpu_seconds(terminal.pid)
                    end = time.monotonic() + 120
                    while not self.log.exists() and time.monotonic() < end:
                        terminal.read(0.1)
                sent = json.loads(self.log.read_text()) if self.log.exists() else {"rate": 0, "sent": 0}
                rounds.append(
                    {
                        "p50": percentile(taken, 0.5),
                        "p99": percentile(taken, 0.99),
                        "worst": max(taken),
                        "keys": len(taken),
                        "rate": sent["rate"],
                        "bytes_a_second": drawn,
                        "cpu_seconds": cpu,
                        "load": os.getloadavg()[0],
                    }
                )
                self.say(f"  {client.name}: {rounds[-1]}")
            middle = {name: statistics.median(round[name] for round in rounds) for name in rounds[0]}
            self.keep("key in a stream", client, **middle, p99_best=min(round["p99"] for round in rounds))

    # Memory

    def memory(self):
        for client in [client for client in self.clients if client.has_our_agent]:
            is_ours = client is self.ours
            count = self.arguments.updates if is_ours else self.arguments.other_updates
            terminal = self.start(client)
            with terminal:
                idle, _ = program_memory(terminal.pid, client)
                terminal.write(f"mixed {count}".encode())
                terminal.read_for(0.5)
                began = time.monotonic()
                terminal.write(b"\r")
                taken = self.last_words(terminal, began)
                sent = json.loads(self.log.read_text())["sent"] if self.log.exists() else 0
                resident, most = program_memory(terminal.pid, client)
                figures = {"updates": sent, "idle": idle, "resident": resident, "most": most, "seconds": taken}
                if is_ours:
                    figures |= self.scrolling(terminal)
                self.keep("memory", client, **figures)

    def last_words(self, terminal, began, most=150):
        """Seconds until the last words of the agent are drawn and the client is at rest; None if that takes too long."""
        seen = b""
        while time.monotonic() - began < most:
            data = terminal.read(1)
            del terminal.reads[:-10]
            # What is drawn over something else may come in pieces, but rest comes after it.
            is_at_rest = not data and self.log.exists()
            seen = seen[-100:] + data
            if b"the very last words" in seen or is_at_rest:
                return time.monotonic() - began - (1 if is_at_rest else 0)
        return None

    def scrolling(self, terminal):
        """Milliseconds from a key to the end of the frame that it causes."""

        def press(key, quiet=0.2):
            # A frame that is on its way is not that of the key.
            terminal.read_until_quiet(quiet)
            began, seen = time.monotonic(), b""
            terminal.write(key)
            while END_OF_FRAME not in seen and time.monotonic() - began < 20:
                seen += terminal.read(1)
            return (time.monotonic() - began) * 1000

        top = press(b"\x1b[1;5H")
        bottom = press(b"\x1b[1;5F")
        pages = [press(b"\x1b[5~", 0.02) for _ in range(300)]
        # A key of its own for the whole picture: the text is on it.
        press(b"\x1b[1;5F")
        began = len(terminal.reads)
        press(b"\x0c")
        terminal.wait_for("the very last words", since=began)
        resident, _ = program_memory(terminal.pid, self.ours)
        return {
            "top": top,
            "bottom": bottom,
            "page_p50": percentile(pages, 0.5),
            "page_p99": percentile(pages, 0.99),
            "resident_scrolled": resident,
        }

    # Hostile texts

    def hostile(self):
        # A judge that does not see them where they are would find none anywhere.
        raw, _ = judge("\n".join(texts.HOSTILE).encode(), is_quiet=True)
        assert raw == len(texts.HOSTILE), raw
        for version in ["1", "2"]:
            name = texts.HOSTILE[0] + texts.HOSTILE[60]
            command = [self.arguments.attache, "chat", "--protocol", version, "--", *AGENT, "--name", name]
            client = Client(f"attache, version {version}", command, self.ours.ready, agent=True)
            terminal = self.start(client)
            with terminal:
                terminal.write(b"hostile ask\r")
                # The answer to whatever is asked: no, again and again. Keys that do not rest for a second are no answer.
                end = time.monotonic() + 120
                seen = b""
                while b"the very last words" not in seen and time.monotonic() < end:
                    try:
                        terminal.write(b"n")
                        terminal.read_for(1.3)
                    except Gone:
                        break
                    seen = b"".join(data for _, data in terminal.reads[-200:])
                # All that can be looked at: unfolded and paged through, popups, menus, lists.
                for key in [b"\x1bo", *[b"\x1b[5~"] * 400, b"\x1b[1;5F", b"\x15", b"/", b"\x15", b"\x1b[12~", b"\x1b", b"\x14", b"\x1b"]:
                    terminal.write(key)
                    terminal.read_for(0.05)
                data = b"".join(data for _, data in terminal.reads)
            raw, foreign = judge(data)
            self.keep("hostile", client, texts=len(texts.HOSTILE), shown=shown_of(data), raw=raw, foreign=foreign)


def program_memory(pid, client):
    """Resident bytes of the client and, where it starts itself anew, of what it became; not of the agent."""
    total, most = 0, 0
    for process in family(pid):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                command = file.read()
            with open(f"/proc/{process}/status") as file:
                fields = dict(line.split(":", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The agent's command line stands in that of its client too, as one argument among others.
        if command.startswith(AGENT[0].encode()) or "VmRSS" not in fields:
            continue
        total += int(fields["VmRSS"].split()[0]) * 1024
        most += int(fields["VmHWM"].split()[0]) * 1024
    return total, most


def family(pid):
    yield pid
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
    except FileNotFoundError:
        return
    for child in children:
        yield from family(int(child))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# What our own drawing writes: moves, colours, erasing, and the modes of a screen.
_OURS = re.compile(
    r"\x1b\[(?:\d+;\d+)?H|\x1b\[[0-9;]*m|\x1b\[[0-3]?[JK]|\x1b\[\?(?:25|1004|1049|2004|2026|1000|1002|1003|1006|1015)[hl]"
)


def marked():
    """The control sequence of every hostile text, and the mark in it."""
    for index in range(len(texts.HOSTILE)):
        number, place = index % len(texts.SEQUENCES), index // len(texts.SEQUENCES)
        mark = f"hostile{number:02}x{place}"
        yield mark, texts.SEQUENCES[number].replace("%", mark)


def shown_of(data):
    return sum(mark.encode() in data for mark, _ in marked())


def judge(data, is_quiet=False):
    """How many hostile texts are in there as they were sent, and what else is not of our own drawing."""
    text = data.decode("utf-8", "surrogateescape")
    raw = [piece for _, piece in marked() if piece in text]
    rest = _OURS.sub("", text)

    def is_foreign(letter):
        # A zero width joiner holds emoji together, and acts on nothing else.
        return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") and letter != "\u200d"

    foreign = [letter for letter in rest if is_foreign(letter)]
    if (raw or foreign) and not is_quiet:
        print(f"  raw: {raw}, foreign: {sorted(set(foreign))}", file=sys.stderr)
    return len(raw), len(foreign)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attache", required=True)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--other-starts", type=int, default=5)
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=100_000)
    parser.add_argument("--other-updates", type=int, default=1_000)
    parser.add_argument("--report", type=pathlib.Path, help="where to write the report; else it is printed")
    parser.add_argument("what", nargs="*", help="frame, rest, stream, memory, hostile; without any: all of them")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    parts = {
        "frame": bench.first_frames,
        "rest": bench.keys_at_rest,
        "stream": bench.keys_in_stream,
        "memory": bench.memory,
        "hostile": bench.hostile,
    }
    try:
        for name, part in parts.items():
            if not arguments.what or name in arguments.what:
                part()
    finally:
        shutil.rmtree(bench.home, ignore_errors=True)
    import report

    text = report.write(bench.clients, bench.results, arguments)
    if arguments.report:
        arguments.report.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
