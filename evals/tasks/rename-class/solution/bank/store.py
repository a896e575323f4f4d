"""Files of accounts."""

import json

from . import account
from .account import Wallet


def save(item: Wallet) -> str:
    return json.dumps({"kind": "Account", "owner": item.owner, "cents": item.cents})


def load(text: str) -> Wallet:
    fields = json.loads(text)
    if fields.pop("kind") != "Account":
        raise account.AccountError("not an account")
    return account.Wallet(**fields)
