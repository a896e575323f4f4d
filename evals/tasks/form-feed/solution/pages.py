"""Pages for a printer."""

TITLE = "Report"

def bold(text):
    return "[1m" + text + "[0m"

def footer(page, pages):
    return f"Page {page} of {pages}"
