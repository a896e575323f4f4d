"""A cache that forgets what is oldest."""


class Cache:
    def __init__(self, limit):
        # The size is limited when something is added.
        self.limit = limit
        self.entries = {}

    def find(self, key):
        return self.entries.get(key)

    def add(self, key, value):
        self.entries[key] = value
        self.tidy()

    def tidy(self):
        while len(self.entries) > self.limit:
            self.entries.pop(next(iter(self.entries)))
