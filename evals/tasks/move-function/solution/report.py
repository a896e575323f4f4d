"""Reports about orders."""

from dates import month_name, parse_date


def heading(text):
    """The heading of a report for a date."""
    year, month, day = parse_date(text)
    return f"Report of {day} {month_name(month)} {year}"
