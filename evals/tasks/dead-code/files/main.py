"""Prints a list of names."""

import text

STYLES = {"plain": "format_plain", "loud": "format_loud"}


def show(names, style):
    return getattr(text, STYLES[style])(names)


if __name__ == "__main__":
    print(show(["Ada", "Grace"], "loud"))
