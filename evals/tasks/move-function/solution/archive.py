"""Where old reports are kept."""

from dates import parse_date


def folder(text):
    """The folder for a report of a date."""
    year, month, _ = parse_date(text)
    return f"{year}/{month:02}"
