"""A store that keeps what was used last."""


class Recent:
    def __init__(self, room):
        self.room = room
        self.entries = {}

    def read(self, key, default=None):
        if key not in self.entries:
            return default
        self.entries[key] = self.entries.pop(key)
        return self.entries[key]

    def write(self, key, value):
        self.entries.pop(key, None)
        self.entries[key] = value
        if len(self.entries) > self.room:
            oldest = next(iter(self.entries))
            del self.entries[oldest]

    def keys(self):
        """All keys, the one that was not used for the longest time first."""
        return list(self.entries)
