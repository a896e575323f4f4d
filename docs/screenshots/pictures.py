#!/usr/bin/env python3
"""Drives `attache chat` through the scenes, and writes what the screen shows as SVG."""

import codecs
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
from xml.sax.saxutils import escape

import pyte

import terminal

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS, ROWS = 100, 30

# The size of a cell, the space around the screen, and the bar of the window.
WIDTH, HEIGHT, MARGIN, BAR = 8.4, 18, 14, 30

BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
NAMES = {
    "black": "#3b4048",
    "red": "#f0717b",
    "green": "#8fca6e",
    "brown": "#e2c077",
    "blue": "#6cb2f5",
    "magenta": "#cf8dea",
    "cyan": "#5bc4d1",
    "white": "#d7dae0",
    "brightblack": "#6b7280",
    "brightred": "#ff8b94",
    "brightgreen": "#a9e388",
    "brightbrown": "#f5d890",
    "brightblue": "#8cc5ff",
    "brightmagenta": "#e0a6f7",
    "brightcyan": "#7fdbe6",
    "brightwhite": "#ffffff",
}

# pyte knows no faint text. It takes the place of blinking, which nothing here does.
pyte.graphics.TEXT[2] = "+blink"


class Screen(terminal.Screen):
    def feed(self, data):
        super().feed(re.sub(rb"\x1b\[22m", b"\x1b[22;25m", data))


# The sixteen colours by number come as what xterm makes of them.
XTERM = """000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5
7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff""".split()
NAMES |= dict(zip(XTERM, list(NAMES.values()), strict=True))


def color(name, default):
    if name == "default":
        return default
    return NAMES.get(name) or f"#{name}"


def mixed(one, other, share):
    """A colour between two."""
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


def look(cell):
    """What a cell looks like: its text colour, background and the attributes of SVG."""
    front, back = color(cell.fg, FOREGROUND), color(cell.bg, BACKGROUND)
    if cell.reverse:
        front, back = back, front
    if cell.blink:
        front = mixed(front, back, 0.6)
    more = ' font-weight="bold"' if cell.bold else ""
    more += ' font-style="italic"' if cell.italics else ""
    lines = [name for name, is_on in [("underline", cell.underscore), ("line-through", cell.strikethrough)] if is_on]
    more += f' text-decoration="{" ".join(lines)}"' if lines else ""
    return front, back, more


def runs(row):
    """The cells of a row in pieces that look the same: first column, cells, look."""
    found = []
    for column in range(COLUMNS):
        cell = row[column]
        seen = look(cell)
        # Letters that are wider than their cell stand alone, so that what follows keeps its column.
        is_plain = cell.data.isascii()
        if found and found[-1][2] == seen and found[-1][3] and is_plain:
            found[-1][1].append(cell.data)
        else:
            found.append((column, [cell.data], seen, is_plain))
    return found


def svg(screen, title):
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN + BAR
    font = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        f' role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="10" fill="{BACKGROUND}" stroke="#3b4048"/>',
    ]
    for number, dot in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        out.append(f'<circle cx="{20 + 20 * number}" cy="{BAR / 2 + 3:g}" r="6" fill="{dot}"/>')
    out.append(
        f'<text x="{width / 2:g}" y="{BAR / 2 + 7:g}" font-family="{font}" font-size="12" fill="#8b919c"'
        f' text-anchor="middle">{escape(title)}</text>'
    )
    out.append(f'<g font-family="{font}" font-size="14">')
    for line in range(ROWS):
        row = screen.screen.buffer[line]
        top = BAR + MARGIN + line * HEIGHT
        for column, cells, (_, back, _), _ in runs(row):
            if back != BACKGROUND:
                span = len(cells) * WIDTH
                out.append(
                    f'<rect x="{MARGIN + column * WIDTH:.1f}" y="{top:g}" width="{span + 0.3:.1f}" height="{HEIGHT}" fill="{back}"/>'
                )
        for column, cells, (front, _, more), _ in runs(row):
            text = "".join(cells)
            # Space at the ends is not drawn by browsers, but would count for the length.
            column += len(text) - len(text.lstrip())
            text = text.strip()
            if not text:
                continue
            # The length holds every run on its columns, whatever the font. Spaces would be drawn as one.
            length = len(text) * WIDTH
            text = text.replace(" ", "\u00a0")
            out.append(
                f'<text x="{MARGIN + column * WIDTH:.1f}" y="{top + 13.5:g}" textLength="{length:.1f}" fill="{front}"{more}>'
                f"{escape(text)}</text>"
            )
    cursor = screen.screen.cursor
    if not cursor.hidden:
        x, y = MARGIN + cursor.x * WIDTH, BAR + MARGIN + cursor.y * HEIGHT
        out.append(f'<rect x="{x:.1f}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" fill="{FOREGROUND}" opacity="0.6"/>')
    out += ["</g>", "</svg>", ""]
    return "\n".join(out)


def picture(opened, wanted):
    """What is on the screen as soon as the text is."""
    opened.wait_for(wanted)
    opened.read_until_quiet(0.4, 3)
    screen = Screen(COLUMNS, ROWS)
    for _, data in opened.reads:
        screen.feed(data)
    return screen


def clock(reads, longest=1.2):
    """The reads of a terminal with their times, in which nothing lasts longer than a reader needs."""
    now, before = 0, 0
    for when, data in reads:
        now += min(when - before, longest)
        before = when
        yield now, data


def cast(reads):
    """The recording as asciinema reads it, version 2."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "A first session"}
    lines = [json.dumps(head, ensure_ascii=False)]
    decode = codecs.getincrementaldecoder("utf-8")("replace")
    lines += [json.dumps([round(when, 3), "o", decode.decode(data)], ensure_ascii=False) for when, data in clock(reads)]
    return "\n".join(lines) + "\n"


def film(reads, stops, title, seconds=3):
    """The screens after so many reads, one after the other, as one picture that moves."""
    frames = []
    for stop in stops:
        screen = Screen(COLUMNS, ROWS)
        for _, data in reads[:stop]:
            screen.feed(data)
        frames.append(svg(screen, title))
    head, _, rest = frames[0].partition(f'<g font-family="')
    share = 100 / len(frames)
    style = (
        f"<style>.f{{visibility:hidden;animation:f {seconds * len(frames)}s step-end infinite}}"
        f"@keyframes f{{0%{{visibility:visible}}{share:.3f}%{{visibility:hidden}}}}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none}.f:last-of-type{visibility:visible}}</style>"
    )
    shown = []
    for number, frame in enumerate(frames):
        inner = '<g font-family="' + frame.partition('<g font-family="')[2].removesuffix("</svg>\n")
        shown.append(f'<g class="f" style="animation-delay:{seconds * number}s">{inner}</g>')
    return "\n".join([head + style, *shown, "</svg>", ""])


def main(folder):
    # A path that is the same every time, because it is in the picture.
    project = pathlib.Path("/tmp/client")
    project.mkdir()
    try:
        play(project, folder)
        first_session(project, folder)
    finally:
        shutil.rmtree(project)


def first_session(project, folder):
    """The built-in agent with the model that needs no key: a prompt, a question, an answer."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            "ATTACHE_MODEL_LISTS": "off",
        }
        (project / "hello.txt").write_text("hello\n")
        command = [os.environ["ATTACHE"], "chat", "-a", "attache", "--model", "offline"]
        opened = terminal.Terminal(command, COLUMNS, ROWS, environment, project)
        stops = []

        def stop(wanted):
            opened.wait_for(wanted)
            opened.read_until_quiet(0.5, 5)
            stops.append(len(opened.reads))

        with opened:
            stop("Write to the agent")
            for prompt, wanted, answer in [
                ("search hello", "hello.txt:1", None),
                ('replace hello with "good morning" in hello.txt', r"\by\b.*\bonce|[Aa]llow", b"y"),
            ]:
                for letter in prompt:
                    opened.write(letter.encode())
                    opened.read_for(0.03)
                stop(re.escape(prompt.split()[0]))
                opened.write(b"\r")
                stop(wanted)
                if answer:
                    # A question takes no key of the first half second.
                    opened.read_for(1)
                    opened.write(answer)
                    stop("Changed|Replaced|Edited|good morning")
            opened.read_for(1)
            stops.append(len(opened.reads))
        (folder / "first-session.cast").write_text(cast(opened.reads))
        (folder / "first-session.svg").write_text(film(opened.reads, stops, "attache chat"))


def play(project, folder):
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
        }
        config = pathlib.Path(home) / ".config/attache"
        config.mkdir(parents=True)
        agent = json.dumps([sys.executable, str(HERE / "scenes.py")])
        (config / "agents.toml").write_text(f"[agents.demo]\ncommand = {agent}\n")
        command = [os.environ["ATTACHE"], "chat", "-a", "demo"]
        opened = terminal.Terminal(command, COLUMNS, ROWS, environment, project)
        with opened:
            opened.wait_for("Write to the agent")
            opened.read_until_quiet(0.5, 5)
            opened.write(b"requests in this project are flaky, please mend it")
            opened.read_for(0.3)
            opened.write(b"\r")
            (folder / "chat.svg").write_text(svg(picture(opened, "changelog"), "attache chat"))
            # A second session beside the first.
            opened.write(b"\x1bn")
            picture(opened, "Write to the agent")
            opened.write(b"make the longest delay a setting")
            opened.read_for(0.3)
            opened.write(b"\r")
            opened.read_for(1)
            (folder / "question.svg").write_text(svg(picture(opened, "config.rs"), "attache chat"))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
