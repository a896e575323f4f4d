"""Pages for a printer."""

TITLE = "Report"

def bold(text):
    return "\x1b[1m" + text + "\x1b[0m"

def footer(page, pages):
    return f"Page {page} of {pages}"
