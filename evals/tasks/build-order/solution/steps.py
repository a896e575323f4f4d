"""The order of steps."""


def order(needs):
    """All steps of `{step: [what it needs]}`. What is needed may have no entry of its own."""
    left = {step: set(others) for step, others in needs.items()}
    for others in needs.values():
        for other in others:
            left.setdefault(other, set())
    done = []
    while left:
        ready = min((step for step, others in left.items() if others <= set(done)), default=None)
        if ready is None:
            raise ValueError("the steps need each other")
        del left[ready]
        done.append(ready)
    return done
