"""Titles as parts of addresses."""

import re


def slug(title):
    """Lower case, with one hyphen for all that is no letter or digit."""
    return re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", title.lower())).strip("-")
