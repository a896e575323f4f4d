#!/usr/bin/env python3
"""Counts the words of stdin."""

import argparse
import collections
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--top", type=int, default=3, help="how many words to print")
    parser.add_argument("--upper", action="store_true", help="print the words in upper case")
    options = parser.parse_args()
    words = collections.Counter(sys.stdin.read().split())
    for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))[: options.top]:
        print(count, word.upper() if options.upper else word)


if __name__ == "__main__":
    main()
