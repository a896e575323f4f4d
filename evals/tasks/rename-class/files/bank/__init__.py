"""A small bank."""

from bank.account import Account, AccountError

__all__ = ["Account", "AccountError", "open_account"]


def open_account(owner: str) -> "Account":
    return Account(owner)
