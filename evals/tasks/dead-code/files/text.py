"""How lists of names are written."""


def join_words(words):
    return ", ".join(words)


def format_plain(names):
    return join_words(names)


def format_quiet(names):
    return join_words(names).lower()


def format_loud(names):
    return shout(join_words(names))


def shout(text):
    return text.upper() + "!"
