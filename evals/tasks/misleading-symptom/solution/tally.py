"""Sums by name."""

from lines import parse


def tally(lines, sums=None):
    """How much there is of each name, on top of the sums so far."""
    sums = {} if sums is None else sums
    for line in lines:
        name, count = parse(line)
        sums[name] = sums.get(name, 0) + count
    return sums
