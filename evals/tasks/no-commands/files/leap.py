"""Years and their days."""


def is_leap(year):
    """Whether a year has 366 days."""
    return year % 4 == 0


def days(year):
    return 366 if is_leap(year) else 365
