"""Throws a die that always falls the same way."""

value = 2026
for throw in range(5000):
    value = (value * 48271 + throw) % 2147483647
print(value)
