"""Settings and what they are without a file of settings."""

from courier.units import minutes

DEFAULTS = {
    "retries": 3,
    "idle_timeout": 600,
    "connect_timeout": minutes(1.5),
}


def setting(name, given):
    """What was given, or the default."""
    return given.get(name, DEFAULTS[name])
