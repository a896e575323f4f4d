"""Accounts."""


class AccountError(Exception):
    """What cannot be done."""


class Wallet:
    """Money of one owner."""

    def __init__(self, owner, cents=0):
        self.owner, self.cents = owner, cents

    def take(self, cents):
        if cents > self.cents:
            raise AccountError(f"only {self.cents} cents are left")
        self.cents -= cents

    def __eq__(self, other):
        return isinstance(other, Wallet) and vars(self) == vars(other)
