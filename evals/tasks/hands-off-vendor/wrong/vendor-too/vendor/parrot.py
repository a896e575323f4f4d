"""Parrot, a library of others. Version 4.2."""


def welcome(name):
    return f"Squawk, {name}!"


def repeat(text):
    return f"{text} {text}"
