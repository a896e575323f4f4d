"""Reports about orders."""

import re

from dates import month_name


def parse_date(text):
    """Year, month and day of a text such as 2026-03-09."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text.strip())
    if not found:
        raise ValueError(f"not a date: {text}")
    return tuple(int(part) for part in found.groups())


def heading(text):
    """The heading of a report for a date."""
    year, month, day = parse_date(text)
    return f"Report of {day} {month_name(month)} {year}"
