"""Runs `attache`: `python -m attache_acp`, or the command `attache-acp`."""

import os
import subprocess
import sys

from attache_acp import find_program


def main():
    """Becomes the program; on Windows, where that is not possible, waits for it."""
    try:
        program = find_program()
    except FileNotFoundError as error:
        sys.exit("error: {}".format(error))
    command = [program, *sys.argv[1:]]
    if os.name != "nt":
        os.execv(program, command)
    # Ctrl-C reaches the program, which decides what it means.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(command))


if __name__ == "__main__":
    main()
