from leap import is_leap

assert is_leap(2024) and is_leap(2000)
assert not is_leap(2023)
assert not is_leap(1900) and not is_leap(2100)
print("all passed")
