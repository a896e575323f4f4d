"""Lines such as `apples 3`."""


def parse(line):
    name, count = line.rsplit(" ", 1)
    return name, int(count)
