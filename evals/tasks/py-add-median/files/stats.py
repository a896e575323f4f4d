"""Figures about lists of numbers."""


def mean(numbers):
    """The mean of numbers."""
    if not numbers:
        raise ValueError("no numbers")
    return sum(numbers) / len(numbers)


def spread(numbers):
    """The distance between the smallest and the largest number."""
    if not numbers:
        raise ValueError("no numbers")
    return max(numbers) - min(numbers)
