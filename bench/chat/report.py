"""The report: CHAT.md, in the style of RESULTS.md."""

import datetime
import os
import platform
import subprocess

MIB = 1 << 20


def number(value):
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def memory():
    with open("/proc/meminfo") as file:
        return int(file.readline().split()[1]) / MIB


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def write(clients, results, arguments):
    def of(what):
        return [result for result in results if result["what"] == what]

    def ours(what):
        return [result for result in of(what) if result["client"].startswith("attache")]

    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    command = os.environ.get("BENCH_COMMAND", "bench/chat/run")
    lines = ["# Terminal clients, side by side", ""]
    lines += [f"Made by `{command}` on {datetime.date.today()}. Do not edit: the next run writes it anew.", ""]
    facts = [
        ("machine", f"{os.cpu_count()} cores, {memory():.1f} GiB of memory"),
        ("processor", processor()),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("attache", f"commit {commit}"),
        *[(client.name, client.version) for client in clients if not client.name.startswith("attache")],
        ("load at the end", " ".join(f"{load:.2f}" for load in os.getloadavg())),
    ]
    lines += ["| | |", "|---|---|", *[f"| {name} | {value} |" for name, value in facts], ""]
    lines += ["A terminal of 100 columns and 30 rows with true colour, in a pty; no network but loopback.", ""]

    limits = []
    for result in ours("first frame"):
        name = result["client"].split(", ")[1]
        limits.append((f"first frame, {name}, median", "50 ms", f"{number(result['median'])} ms", result["median"] < 50))
    for result in ours("key in a stream"):
        limits.append(("key in a stream, p99", "16 ms", f"{number(result['p99'])} ms", result["p99"] < 16))
    for result in ours("memory"):
        seen = result["most"] / MIB
        limits.append((f"memory at most, {result['updates']:,} updates", "60 MiB", f"{number(seen)} MiB", seen < 60))
    for result in ours("hostile"):
        count = result["raw"] + result["foreign"]
        limits.append((f"hostile texts that act, {result['client'].split(', ')[1]}", "0", str(count), count == 0))
    if limits:
        lines += ["## Limits of ours", "", "| | at most | seen | |", "|---|---|---|---|"]
        lines += [f"| {name} | {most} | {seen} | {'met' if met else '**not met**'} |" for name, most, seen, met in limits]
        lines.append("")

    if frames := of("first frame"):
        best = min(result["median"] for result in frames if result["client"] == "attache, built-in agent")
        rows = [
            [
                result["client"],
                number(result["median"]),
                number(result["best"]),
                number(result["worst"]),
                str(result["count"]),
                f"{number(result['median'] / best)} ×",
            ]
            for result in frames
        ]
        lines += ["## From the start of the process to the first picture with its composer", ""]
        lines += table(["client", "median, ms", "best, ms", "worst, ms", "starts", "÷ attache"], rows) + [""]
    if keys := of("key at rest"):
        rows = [[result["client"], number(result["p50"]), number(result["p99"]), number(result["worst"])] for result in keys]
        lines += [f"## From a key to its letter on the screen, at rest, {arguments.keys} keys", ""]
        lines += table(["client", "p50, ms", "p99, ms", "worst, ms"], rows) + [""]
    if keys := of("key in a stream"):
        rows = [
            [
                result["client"],
                number(result["p50"]),
                f"{number(result['p99'])} ({number(result['p99_best'])})",
                number(result["worst"]),
                f"{result['keys']:.0f}",
                number(result["rate"]),
                number(result["cpu_seconds"]),
            ]
            for result in keys
        ]
        lines += [f"## The same while an agent sends {arguments.rate:,} updates a second", ""]
        head = ["client", "p50, ms", "p99 (best round), ms", "worst, ms", "keys", "updates a second taken", "CPU, s"]
        lines += table(head, rows) + [""]
    if sizes := of("memory"):
        rows = [
            [
                result["client"],
                f"{result['updates']:,}",
                number(result["idle"] / MIB),
                number(result["resident"] / MIB),
                number(result["most"] / MIB),
                number(result["seconds"]) if result["seconds"] else "not within 150",
                number(result["updates"] / result["seconds"]) if result["seconds"] else "–",
            ]
            for result in sizes
        ]
        lines += ["## Memory after updates of mixed kinds, as fast as they are taken", ""]
        head = ["client", "updates", "before, MiB", "after, MiB", "at most, MiB", "seconds", "updates a second"]
        lines += table(head, rows) + [""]
        for result in sizes:
            if "top" in result:
                rows = [[number(result[name]) for name in ["top", "bottom", "page_p50", "page_p99"]]]
                rows[0].append(number(result["resident_scrolled"] / MIB))
                lines += ["Scrolling through them, from a key to the end of its frame:", ""]
                head = ["to the top, ms", "to the end, ms", "a page up p50, ms", "p99, ms", "memory then, MiB"]
                lines += table(head, rows) + [""]
    if hostile := of("hostile"):
        names = ["texts", "shown", "raw", "foreign"]
        rows = [
            [result["client"], *["–" if result[name] is None else str(result[name]) for name in names]]
            for result in hostile
        ]
        lines += ["## Hostile texts in every field", ""]
        lines += table(["client", "texts", "shown", "reached the terminal raw", "other foreign controls"], rows) + [""]
    lines += [
        "- *First picture*: the first read of the pty after which the composer, or the list of agents, is on the screen."
        " The clients take turns; the first start of each is not counted.",
        "- *Keys* are letters that nothing else has. Their way through the pty is part of the figure: `cat` shows how much"
        " that is. In a stream, every figure is the median of the rounds.",
        "- *Updates a second taken* is what the agent could send within its time. A client that does not read holds it up.",
        "- *Memory* is the resident set of the client without the agent, as the kernel tells it."
        " Others get fewer updates, because they take longer for each.",
        "- *Mixed kinds* is rounds of 100: 60 chunks of text, 8 of thoughts, 22 of a command's output, a diff, tool calls"
        " and their changes, a plan.",
        "- *Hostile texts* are CSI, OSC 0/2/4/8/9/10/52/777/1337, DCS, APC, PM, SOS, single escapes, C0, C1, bidi controls and"
        " invisible letters, in messages, thoughts, tool calls, diffs, commands, output, plans, titles, notices, questions,"
        " and the agent's name. *Shown* is how many were seen in harmless form. Everything in the output that our own drawing does not write counts as foreign.",
        "- codex and opencode have agents of their own, which do not speak to ours: they are measured at the start and at rest.",
        "- The load is that of other work on the machine. It stretches every time here, the longer ones most: ratios within a"
        " table say more than times, and *worst* says little.",
        "",
    ]
    return "\n".join(lines)
