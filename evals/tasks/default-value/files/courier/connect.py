"""Connections."""

from courier.settings import setting


def connect(address, given):
    seconds = setting("connect_timeout", given)
    return {"address": address, "times_out_after": seconds}
