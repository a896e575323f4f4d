"""Measures how long a check takes, what a trace costs, and how long the page of a large trace takes to open."""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ECHO = [sys.executable, os.path.join(HERE, "echo_agent.py")]
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
# A measurement that takes longer has failed.
LIMIT = 600


def agent(attache, _home):
    """The whole check of an agent that takes 100 ms to start."""
    slow = ["sh", "-c", f"sleep 0.1; exec '{attache}' agent --model offline"]
    begin = time.monotonic()
    done = subprocess.run([attache, "check", "agent", "--script", "offline", "--", *slow], capture_output=True, text=True,
                          timeout=LIMIT)
    seconds = time.monotonic() - begin
    verdict = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "")
    yield "whole check, three dialects, of an agent that starts in 100 ms", f"{seconds:.1f} s", "20 s", seconds <= 20
    if done.returncode != 0:
        sys.exit(f"the check failed with {done.returncode}: {verdict}")


def round_trips(command, count):
    """Microseconds for one request and its answer, one after the other."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = b'{"jsonrpc":"2.0","id":1,"method":"_echo","params":{"text":"' + b"x" * 200 + b'"}}\n'

    def once():
        child.stdin.write(line)
        child.stdin.flush()
        if not child.stdout.readline():
            sys.exit(f"{command[0]} ended")

    for _ in range(200):
        once()
    begin = time.monotonic()
    for _ in range(count):
        once()
    took = time.monotonic() - begin
    child.stdin.close()
    child.wait(timeout=LIMIT)
    return took / count * 1e6


def trace(attache, home):
    """What a message takes longer because it is recorded: half of what a request and its answer take longer."""
    count, added = 3000, []
    for turn in range(7):
        plain = round_trips(ECHO, count)
        traced = round_trips([attache, "trace", "-o", f"{home}/echo-{turn}.jsonl", "--", *ECHO], count)
        added.append((traced - plain) / 2)
    middle = statistics.median(added)
    yield f"`trace` adds to a message (median of 7 × {count} round trips)", f"{middle:.1f} µs", "50 µs", middle <= 50


def memory(attache, home):
    """How much memory `attache trace` takes at most while so much goes through it."""
    peaks = []
    for size in (16 << 20, 1 << 30):
        path = f"{home}/flood.jsonl"
        child = subprocess.Popen([attache, "trace", "--rotate", "64M", "-o", path, "--", *ECHO], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "_flood", "params": {"bytes": size}}).encode() + b"\n")
        child.stdin.flush()
        begin, got, tail = time.monotonic(), 0, b""
        while not tail.endswith(b'"id": 1, "result": {}}\n'):
            piece = os.read(child.stdout.fileno(), 1 << 20)
            if not piece or time.monotonic() - begin > LIMIT:
                sys.exit("the flood did not arrive")
            got, tail = got + len(piece), (tail + piece)[-64:]
        seconds = time.monotonic() - begin
        with open(f"/proc/{child.pid}/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
        child.stdin.close()
        child.wait(timeout=LIMIT)
        peaks.append(peak)
        for name in (path, path + ".1"):
            if os.path.exists(name):
                os.remove(name)
    grown = peaks[1] - peaks[0]
    yield "memory of `trace` after 1 GiB, beside after 16 MiB", f"{peaks[1]:.1f} and {peaks[0]:.1f} MiB", "no more than 4 MiB apart", grown <= 4
    yield "through `trace` a second, the agent being Python", f"{got / seconds / (1 << 20):.0f} MiB", "", None


def large_trace(attache, home):
    """A recording of a hundred megabytes: turns with text in small pieces, and a tool call for every hundred of them."""
    path = f"{home}/large.jsonl"
    with open(path, "w") as file:
        count = 0

        def write(way, message):
            nonlocal count
            count += 1
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_800_000_000 + count // 1000))
            line = {"time": f"{stamp}.{count % 1000:03}Z", "dir": way, "message": {"jsonrpc": "2.0", **message}}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

        update = lambda value: {"method": "session/update", "params": {"sessionId": "s", "update": value}}
        write("out", {"id": 0, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}})
        write("in", {"id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
        write("out", {"id": 1, "method": "session/new", "params": {"cwd": "/p", "mcpServers": []}})
        write("in", {"id": 1, "result": {"sessionId": "s"}})
        number = 1
        while file.tell() < 100_000_000:
            number += 1
            write("out", {"id": number, "method": "session/prompt",
                          "params": {"sessionId": "s", "prompt": [{"type": "text", "text": f"prompt {number}"}]}})
            for piece in range(200):
                if piece % 100 == 50:
                    call = f"call-{number}-{piece}"
                    write("in", update({"sessionUpdate": "tool_call", "toolCallId": call, "title": "Read a file", "kind": "read",
                                         "status": "in_progress"}))
                    write("in", update({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
                                         "content": [{"type": "content", "content": {"type": "text", "text": "line\n" * 40}}]}))
                write("in", update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a few words of it "}}))
            write("in", {"id": number, "result": {"stopReason": "end_turn"}})
    return path


def view(attache, home):
    """How long the page of a trace of 100 MB takes to be written and to be opened."""
    transcript = large_trace(attache, home)
    page = f"{home}/page.html"
    begin = time.monotonic()
    subprocess.run([attache, "trace", "view", transcript, "-o", page], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
    wrote = time.monotonic() - begin
    size = os.path.getsize(page) / 1e6
    yield f"the page of a trace of 100 MB is written ({size:.0f} MB)", f"{wrote:.1f} s", "", None
    if CHROMIUM is None:
        yield "the page opens in Chromium", "not measured: no Chromium here", "3 s", None
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", f"--user-data-dir={home}/profile"]
    empty = f"{home}/empty.html"
    with open(empty, "w") as file:
        file.write("<!doctype html><title>empty</title>")
    times = {}
    for name, path in (("empty", empty), ("page", page), ("empty", empty), ("page", page)):
        begin = time.monotonic()
        picture = f"{home}/{name}.png"
        # A picture is taken when the page has loaded, which is when its script is through.
        subprocess.run([CHROMIUM, *options, f"--screenshot={picture}", f"file://{path}"], check=True, timeout=LIMIT,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times[name] = time.monotonic() - begin
    opened = times["page"] - times["empty"]
    yield "the page opens in Chromium (longer than an empty page)", f"{opened:.1f} s", "", None
    yield "together: `attache trace view` of 100 MB", f"{wrote + opened:.1f} s", "3 s", wrote + opened <= 3


PARTS = {"agent": agent, "trace": trace, "memory": memory, "view": view}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attache", required=True)
    parser.add_argument("--report")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as home:
        for name in options.parts or PARTS:
            print(f"== {name}", file=sys.stderr)
            rows.extend(PARTS[name](os.path.abspath(options.attache), home))
    words = {True: "met", False: "**not met**", None: ""}
    table = ["| what | measured | goal | |", "|---|---|---|---|"]
    table += [f"| {what} | {measured} | {goal} | {words[is_met]} |" for what, measured, goal, is_met in rows]
    text = "\n".join(table) + "\n"
    if options.report:
        load = " ".join(f"{value:.2f}" for value in os.getloadavg())
        head = (f"# What a check and a trace cost\n\nMade by `{os.environ.get('BENCH_COMMAND', 'bench/check/run')}` on {time.strftime('%Y-%m-%d')}: "
                f"Linux {os.uname().release}, {os.cpu_count()} cores, load at the end {load}.\n\n")
        with open(options.report, "w") as file:
            file.write(head + text)
    print(text, end="")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
