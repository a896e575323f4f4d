"""Repeated entries of lists."""

from collections import Counter


def first_repeated(items):
    """The first entry that was there before, or None."""
    counts = Counter(items)
    return next((item for item in items if counts[item] > 1), None)


def all_repeated(items):
    found = []
    for index, item in enumerate(items):
        if item in items[:index] and item not in found:
            found.append(item)
    return found
