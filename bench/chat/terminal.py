"""A terminal for programs under test: a pty whose output is kept with the time of every read.

It answers what programs ask a terminal, as xterm does, because some wait for the answers before they draw.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pyte

# What programs ask, and what xterm with a dark background says.
_ANSWERS = [
    (re.compile(rb"\x1b\[c|\x1b\[0c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[>0?c"), b"\x1b[>41;380;0c"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[5n"), b"\x1b[0n"),
    (re.compile(rb"\x1b\[\?u"), b"\x1b[?0u"),
    (re.compile(rb"\x1b\[>0?q"), b"\x1bP>|XTerm(380)\x1b\\"),
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
    (re.compile(rb"\x1b\]10;\?(?:\x07|\x1b\\)"), b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
    (re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)"), b"\x1b]11;rgb:1111/1111/1111\x1b\\"),
]


class Gone(Exception):
    """The program has closed its terminal."""


# What pyte does not take as nothing: answers to requests, and CSI with `>`, `<` or `=`, or with colons.
_NOT_FOR_PYTE = re.compile(rb"\x1b\[[<=>][0-9;:]*[a-zA-Z]|\x1bP.*?\x1b\\|\x1b_.*?\x1b\\|\x1b\[[0-9;]*\$[a-z]", re.S)


class Screen:
    """What a person would see."""

    def __init__(self, columns, rows):
        self.screen = pyte.Screen(columns, rows)
        # Programs may ask; the answers come from the terminal above.
        self.screen.write_process_input = lambda data: None
        self.stream = pyte.ByteStream(self.screen)

    def feed(self, data):
        self.stream.feed(_NOT_FOR_PYTE.sub(b"", data))

    @property
    def text(self):
        return "\n".join(self.screen.display)


class Terminal:
    def __init__(self, command, columns=100, rows=30, environment=None, directory=None):
        self.columns, self.rows = columns, rows
        self.reads = []
        self.read_bytes = 0
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                # The child has the size before the program begins.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                if directory:
                    os.chdir(directory)
                self.began = time.monotonic()
                os.execvpe(command[0], command, environment or os.environ)
            finally:
                os._exit(127)

    def read(self, timeout):
        """Reads what is there within the time, answers questions in it, and returns it."""
        ready, _, _ = select.select([self.fd], [], [], max(0, timeout))
        if not ready:
            return b""
        try:
            data = os.read(self.fd, 1 << 20)
        except OSError:
            data = b""
        if not data:
            raise Gone
        self.reads.append((time.monotonic() - self.began, data))
        self.read_bytes += len(data)
        if b"\x1b" in data:
            for question, answer in _ANSWERS:
                for _ in question.findall(data):
                    self.write(answer)
        return data

    def write(self, data):
        os.write(self.fd, data)

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self.read(rest)

    def read_until_quiet(self, quiet=0.3, timeout=10):
        """Reads until nothing came for a while, or the time is over."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.read(quiet):
            pass

    def wait_for(self, text, timeout=20, since=0):
        """Reads until the text is on the screen. The screen is kept up to date from the first read on."""
        screen = Screen(self.columns, self.rows)
        fed = since
        end = time.monotonic() + timeout
        while True:
            for _, data in self.reads[fed:]:
                screen.feed(data)
            fed = len(self.reads)
            if re.search(text, screen.text):
                return screen
            if time.monotonic() > end:
                raise TimeoutError(f"no {text!r} on the screen:\n{screen.text}")
            self.read(0.1)

    def first_seen(self, text):
        """Seconds from the start to the read after which the text was on the screen."""
        screen = Screen(self.columns, self.rows)
        for when, data in self.reads:
            screen.feed(data)
            if re.search(text, screen.text):
                return when
        return None

    def memory(self):
        """Resident bytes of the program alone, now and at most."""
        with open(f"/proc/{self.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["VmRSS"].split()[0]) * 1024, int(fields["VmHWM"].split()[0]) * 1024

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        """Ends the program and what it has started, which is the session of its own that `pty.fork` made."""
        try:
            os.killpg(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        end = time.monotonic() + 3
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
            try:
                self.read(0.05)
            except Gone:
                time.sleep(0.02)
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
