"""Days of a week."""

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def first_days(n):
    """The first n days."""
    return DAYS[:n]


def last_days(n):
    """The last n days; none for 0."""
    return DAYS[-n:]
