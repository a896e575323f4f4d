"""Dates and their names."""

MONTHS = "January February March April May June July August September October November December".split()


def month_name(month):
    return MONTHS[month - 1]


def parse_date(text):
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text.strip())
    if not found:
        raise ValueError(f"not a date: {text}")
    return tuple(int(part) for part in found.groups())
