"""The order of steps."""


def order(needs):
    """All steps of `{step: [what it needs]}`. What is needed may have no entry of its own."""
    steps = sorted(needs)
    done = []
    for step in steps:
        for other in needs[step]:
            if other not in done:
                done.append(other)
        if step not in done:
            done.append(step)
    return done
