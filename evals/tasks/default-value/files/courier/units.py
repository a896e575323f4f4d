"""Units of time, in seconds."""


def minutes(count):
    return int(count * 60)
