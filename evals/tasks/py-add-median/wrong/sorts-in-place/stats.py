"""Figures about lists of numbers."""


def mean(numbers):
    return sum(numbers) / len(numbers)


def median(numbers):
    if not numbers:
        raise ValueError("no numbers")
    numbers.sort()
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


def spread(numbers):
    return max(numbers) - min(numbers)
