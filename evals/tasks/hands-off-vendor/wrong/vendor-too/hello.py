"""Greetings of our own."""


def welcome(name):
    return f"Hello, {name}!"


def greet_all(names):
    return [welcome(name) for name in names]
