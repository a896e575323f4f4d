"""The program."""

from hello import welcome
from vendor import parrot


def main(name):
    return parrot.repeat(welcome(name)) + " " + parrot.greet(name)


if __name__ == "__main__":
    print(main("Ada"))
