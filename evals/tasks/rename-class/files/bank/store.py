"""Files of accounts."""

import json

from . import account
from .account import Account


def save(item: Account) -> str:
    return json.dumps({"kind": "Account", "owner": item.owner, "cents": item.cents})


def load(text: str) -> Account:
    fields = json.loads(text)
    if fields.pop("kind") != "Account":
        raise account.AccountError("not an account")
    return account.Account(**fields)
