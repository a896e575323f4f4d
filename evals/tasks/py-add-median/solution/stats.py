"""Figures about lists of numbers."""


def mean(numbers):
    """The mean of numbers."""
    if not numbers:
        raise ValueError("no numbers")
    return sum(numbers) / len(numbers)


def median(numbers):
    """The number in the middle, or the mean of the two there."""
    if not numbers:
        raise ValueError("no numbers")
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(numbers):
    """The distance between the smallest and the largest number."""
    if not numbers:
        raise ValueError("no numbers")
    return max(numbers) - min(numbers)
