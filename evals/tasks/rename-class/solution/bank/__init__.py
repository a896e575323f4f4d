"""A small bank."""

from bank.account import AccountError, Wallet

__all__ = ["Wallet", "AccountError", "open_account"]


def open_account(owner: str) -> "Wallet":
    return Wallet(owner)
