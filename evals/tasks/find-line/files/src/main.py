"""The program."""

from src.cache import Cache

# The cache has a limit, see below.
cache = Cache(limit=100)


def look_up(key):
    return cache.find(key)
