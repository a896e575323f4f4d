"""Reports about a day of sales."""

from tally import tally


def report(lines):
    """A line for each fruit, and the total."""
    sums = tally(lines)
    total = 0
    out = []
    for name in sorted(sums):
        total += sums[name]
        out.append(f"{name}: {sums[name]}")
    out.append(f"total: {total}")
    return "\n".join(out)
