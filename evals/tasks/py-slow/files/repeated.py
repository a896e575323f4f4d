"""Repeated entries of lists."""


def first_repeated(items):
    """The first entry that was there before, or None."""
    for index, item in enumerate(items):
        if item in items[:index]:
            return item
    return None


def all_repeated(items):
    """The entries that are there more than once, in the order in which their second place comes."""
    found = []
    for index, item in enumerate(items):
        if item in items[:index] and item not in found:
            found.append(item)
    return found
