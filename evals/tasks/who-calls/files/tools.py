"""Tools."""

from ledger import close_ledger
from ledger import open_ledger as load


def import_entries(path, entries):
    book = load(path)
    book["entries"] += entries
    return book


def reset(book):
    # open_ledger(path) was called here once.
    close_ledger(book)


def describe():
    return "use open_ledger() to begin"
