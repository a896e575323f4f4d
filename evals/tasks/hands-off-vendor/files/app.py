"""The program."""

from hello import greet
from vendor import parrot


def main(name):
    return parrot.repeat(greet(name)) + " " + parrot.greet(name)


if __name__ == "__main__":
    print(main("Ada"))
