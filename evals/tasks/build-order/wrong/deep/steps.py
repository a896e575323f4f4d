"""The order of steps."""


def order(needs):
    done, open_ = [], []

    def visit(step):
        if step in open_:
            raise ValueError("circle")
        if step in done:
            return
        open_.append(step)
        for other in sorted(needs.get(step, [])):
            visit(other)
        open_.remove(step)
        done.append(step)

    for step in sorted(needs):
        visit(step)
    return done
