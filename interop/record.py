#!/usr/bin/env python3
"""Stands between a client and an agent, passes on every line and writes it down.

    record.py FILE COMMAND [ARG…]

Give a client this command in place of the agent's. FILE gets one JSON object a line: {"dir":"in"|"out","message":…},
where "in" is what the client sends to the agent. A line that is no JSON is written as {"dir":…,"text":…}.
"""
import json
import subprocess
import sys
import threading


def main():
    lock = threading.Lock()
    file = open(sys.argv[1], "w", encoding="utf-8")
    agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def pass_on(source, target, direction):
        for line in source:
            try:
                entry = {"dir": direction, "message": json.loads(line)}
            except ValueError:
                entry = {"dir": direction, "text": line.decode("utf-8", "replace")}
            # Written down first: the answer must not come before the question in the file.
            with lock:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()
            try:
                target.write(line)
                target.flush()
            except OSError:
                break
        try:
            target.close()
        except OSError:
            pass

    threading.Thread(target=pass_on, args=(sys.stdin.buffer, agent.stdin, "in"), daemon=True).start()
    pass_on(agent.stdout, sys.stdout.buffer, "out")
    sys.exit(agent.wait())


main()
