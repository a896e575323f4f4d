"""Tests of the report."""

from report import report

first = report(["apples 3", "pears 4", "apples 2"])
assert first == "apples: 5\npears: 4\ntotal: 9", first
# The second report is about other days.
second = report(["plums 1"])
assert second == "plums: 1\ntotal: 1", f"the total is wrong: {second!r}"
print("all passed")
