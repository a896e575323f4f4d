"""Greetings of our own."""


def greet(name):
    return f"Hello, {name}!"


def greet_all(names):
    return [greet(name) for name in names]
