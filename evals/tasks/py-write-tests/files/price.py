"""The price of tickets."""


def price(count):
    """The price of so many tickets, in euros.

    A ticket costs 10. From 5 tickets on, each costs 8. A group pays at most 100. A count below 1 raises ValueError.
    """
    if count < 1:
        raise ValueError("no tickets")
    each = 8 if count >= 5 else 10
    return min(count * each, 100)
