"""Copies of files, here and there."""


def download(fetch, path):
    """Fetches a file, and tries again where that fails."""
    for attempt in range(3):
        try:
            return fetch(path)
        except OSError:
            pass
    raise OSError("gave up")


def upload(send, path):
    """Sends a file, and tries again where that fails."""
    for attempt in range(3):
        try:
            return send(path)
        except OSError:
            pass
    raise OSError("gave up")
