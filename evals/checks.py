"""What the checks of the tasks share: read, run and compare what an agent left behind.

A check is started as `check WORK ANSWER`: the directory that the agent worked in, and a file with its last message. It exits
with 0, or with 1 after one line that says why. Code of the agent runs in processes of its own, in a copy of the directory, and
is judged by what it computes: an `exit(0)` in it passes nothing.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TASK = Path(sys.argv[0]).resolve().parent
FILES = TASK / "files"
WORK = Path(sys.argv[1]).resolve()
# What tools leave behind by themselves. Nobody edits these by mistake.
BYPRODUCTS = {".git", "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", "target", "Cargo.lock", "node_modules"}
PLACEHOLDER = ".empty"
# Long enough for rustc on a busy machine, short enough for an endless loop.
SECONDS = 20
NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def fail(why):
    print(" ".join(str(why).splitlines())[:300])
    sys.exit(1)


def need(condition, why):
    if not condition:
        fail(why)


# Files


def relative_files(root):
    """All files beneath a directory without byproducts, as relative paths."""
    found = set()
    for directory, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name not in BYPRODUCTS]
        for name in names:
            if name not in BYPRODUCTS and name != PLACEHOLDER and not name.endswith(".pyc"):
                found.add((Path(directory) / name).relative_to(root).as_posix())
    return found


def read_bytes(path, root=WORK):
    file = root / path
    need(file.is_file(), f"`{path}` is missing")
    return file.read_bytes()


def read(path, root=WORK):
    """The text of a file, with its line ends as they are."""
    try:
        return read_bytes(path, root).decode()
    except UnicodeDecodeError:
        fail(f"`{path}` is not UTF-8")


def original(path):
    return read(path, FILES)


def unchanged(*paths):
    for path in paths:
        need(read_bytes(path) == read_bytes(path, FILES), f"`{path}` was changed")


def changed_only(*paths, new=None):
    """Nothing else of the project changed. `new` lists the files that may be new; without it any may."""
    for path in sorted(relative_files(FILES) - set(paths)):
        unchanged(path)
    if new is not None:
        extra = sorted(relative_files(WORK) - relative_files(FILES) - set(paths) - set(new))
        need(not extra, f"`{extra[0] if extra else ''}` was added")


def is_exactly(path, expected):
    """The file has these bytes. The message tells the first line that differs."""
    expected = expected.encode() if isinstance(expected, str) else expected
    found = read_bytes(path)
    if found == expected:
        return
    lines, wanted = found.split(b"\n"), expected.split(b"\n")
    for number, (line, want) in enumerate(zip(lines, wanted), 1):
        if line != want:
            fail(f"`{path}`, line {number}: {shown(line)} instead of {shown(want)}")
    fail(f"`{path}` has {len(lines)} lines instead of {len(wanted)}")


def shown(line):
    """A line with its control characters in sight, as bytes where it is no UTF-8."""
    try:
        return repr(line[:80].decode())
    except UnicodeDecodeError:
        return repr(line[:80])


def replaced(path, *pairs):
    """The file is the original with these replacements, each at its only place, and nothing else."""
    text = original(path)
    for old, new in pairs:
        assert text.count(old) == 1, f"{old!r} is in `{path}` {text.count(old)} times"
        text = text.replace(old, new)
    is_exactly(path, text)


# Code


def copy():
    """A copy of the directory to run things in, which is removed at the end."""
    place = tempfile.TemporaryDirectory(prefix="check-")
    copies.append(place)
    project = Path(place.name) / "project"
    shutil.copytree(WORK, project, symlinks=True, ignore=shutil.ignore_patterns(*BYPRODUCTS, "*.pyc"))
    return project


copies = []


def run(command, cwd=None, stdin="", fails=None, seconds=SECONDS):
    """Runs a command and returns what it finished with. `fails` is the message where it must succeed and does not."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd or copy(), input=stdin, capture_output=True, text=True,
            errors="replace", timeout=seconds, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        fail(f"{fails or command[0]}: timed out after {seconds} s")
    except OSError as error:
        fail(f"{fails or command[0]}: {error.strerror}")
    if fails and done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        # A compiler says first what is wrong; others say it in a line of its own, or last.
        wrong = [line for line in lines if re.match(r"error|\w*Error\b", line)]
        lines = wrong[:1] or lines[-1:] or [f"exit status {done.returncode}"]
        fail(f"{fails}: {lines[0]}")
    return done


def expect(name, found, expected):
    for (call, want), have in zip(expected.items(), found):
        need(have == want, f"`{name}`: {call} is {have!r} instead of {want!r}")


def last_json(output, name):
    try:
        return json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        fail(f"`{name}` ended before its functions could be called")


PYTHON_CALLS = """
import importlib, json, sys
sys.path.insert(0, ".")
module = importlib.import_module(sys.argv[1])
names = dict(vars(module))
exec(sys.argv[3], names)
found = []
for call in json.loads(sys.argv[2]):
    try:
        found.append(eval(call, names))
    except Exception as error:
        found.append("raised " + type(error).__name__)
print()
print(json.dumps(found))
"""


def python(module, expected, helpers="", seconds=SECONDS):
    """Calls functions of a Python module: a table of expressions and the values that they must have, as JSON has them.

    `helpers` is code for the expressions to use.
    """
    calls = json.dumps(list(expected))
    command = [sys.executable, "-c", PYTHON_CALLS, module, calls, helpers]
    done = run(command, fails=f"`{module}` does not run", seconds=seconds)
    expect(module, last_json(done.stdout, module), expected)


NODE_CALLS = """
const [path, calls] = process.argv.slice(1);
const module_ = require(path);
const names = Object.keys(module_), values = Object.values(module_);
(async () => {
  const found = [];
  for (const call of JSON.parse(calls)) {
    try { found.push(await new Function(...names, `return (${call})`)(...values)); }
    catch (error) { found.push("raised " + error.name); }
  }
  console.log("\\n" + JSON.stringify(found));
})();
"""


def node(path, expected):
    """The same for a CommonJS module; promises are waited for."""
    project = copy()
    calls = json.dumps(list(expected))
    done = run(["node", "-e", NODE_CALLS, project / path, calls], project, fails=f"`{path}` does not run")
    expect(path, last_json(done.stdout, path), expected)


def rust(library, expected):
    """The same for a Rust library in one crate: expressions, and how `{:?}` shows their values."""
    cwd = copy()
    out = cwd / ".check"
    out.mkdir()
    options = ["--edition", "2021", "-A", "warnings", "--out-dir", out]
    command = ["rustc", *options, "--crate-type", "rlib", "--crate-name", "project", library]
    run(command, cwd, fails=f"`{library}` does not compile")
    lines = "\n".join(f'    println!("{{:?}}", {{ {call} }});' for call in expected)
    (out / "calls.rs").write_text(f"use project::*;\n\nfn main() {{\n{lines}\n}}\n")
    command = ["rustc", *options, "--extern", f"project={out}/libproject.rlib", out / "calls.rs"]
    run(command, cwd, fails=f"the functions of `{library}` cannot be called as they should")
    found = run([out / "calls"], cwd, fails=f"`{library}` panics").stdout.splitlines()
    need(len(found) == len(expected), f"`{library}` printed {len(found)} lines instead of {len(expected)}")
    expect(library, found, expected)


def python_names(path):
    """All names that a Python file uses or defines, without those in strings and comments."""
    try:
        tree = ast.parse(read(path))
    except SyntaxError as error:
        fail(f"`{path}` does not parse: {error}")
    names = set()
    for node in ast.walk(tree):
        for field in ("id", "name", "attr", "asname", "arg", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.update(value.split("."))
    return names


# Answers


def answer():
    """The last message of the agent, without thoughts and without the marks of Markdown."""
    text = Path(sys.argv[2]).read_text(errors="replace") if len(sys.argv) > 2 else ""
    text = re.sub(r"(?s)<think>.*?</think>", "", text)
    text = text.replace(f"{WORK}/", "").replace(str(WORK), "")
    text = re.sub(r"[*`\"'“”‘’«»]+|^#+ |^```\w*$", "", text, flags=re.M)
    need(text.strip(), "the answer is empty")
    return text.strip()


def answers(pattern, *right, word=str):
    """The answer names exactly these facts. `pattern` finds all candidates for them; `word` tidies one.

    One or two wrong candidates on the way are fine where the last line is the answer alone. More is a list to choose from.
    """
    text = answer()
    wanted = set(right)

    def candidates(part):
        return {word(found) for found in re.findall(pattern, part)}

    found = candidates(text)
    if found == wanted:
        return
    need(found & wanted, f"the answer says {', '.join(sorted(found)[:4]) or 'none of it'} instead of {', '.join(right)}")
    last = text.splitlines()[-1]
    need(
        wanted == candidates(last) and len(found - wanted) <= 2,
        f"the answer names {len(found)} candidates instead of {', '.join(right)}",
    )


def answers_number(right):
    text_numbers = "|".join(NUMBER_WORDS)

    def digits(found):
        found = found.lower().replace(",", "")
        return str(NUMBER_WORDS.index(found)) if found in NUMBER_WORDS else found

    # `8` in `utf8.rs` or in `0.8` is no number by itself.
    answers(rf"(?i)(?<![\w.:/-])(?:\d{{1,3}}(?:,\d{{3}})+|\d+|{text_numbers})(?![\w/-]|\.\w)", str(right), word=digits)


def answers_place(path, line):
    """The answer is one place, as `path:line`."""

    def tidy(found):
        place, number = re.fullmatch(r"(\S+?)(?::|,? (?:on |at )?line )(\d+)", found).groups()
        return f"{place.removeprefix('./')}:{number}"

    answers(r"[\w./-]+\.\w+(?::|,? (?:on |at )?line )\d+", f"{path}:{line}", word=tidy)
