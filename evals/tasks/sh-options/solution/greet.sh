#!/bin/sh
# greet.sh [-n COUNT] [-q] NAME: greets somebody.
count=1
mark=!
while getopts n:q option; do
    case $option in
        n) count=$OPTARG ;;
        q) mark= ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || { echo "usage: greet.sh [-n COUNT] [-q] NAME" >&2; exit 2; }
while [ "$count" -gt 0 ]; do
    echo "Hello, $1$mark"
    count=$((count - 1))
done
