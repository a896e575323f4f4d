"""A queue."""


class Queue:
    def __init__(self, limit):
        self.limit = limit
        self.items = []

    def add(self, item):
        # Not the cache.
        while len(self.items) >= self.limit:
            self.items.pop(0)
        self.items.append(item)
