"""Dates and their names."""

MONTHS = "January February March April May June July August September October November December".split()


def month_name(month):
    return MONTHS[month - 1]
