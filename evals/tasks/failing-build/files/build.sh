#!/bin/sh
# Puts the parts together, in the order of parts/order.txt.
set -e
if [ ! -f parts/order.txt ]; then
    echo "error: parts/order.txt is missing; it lists the parts, one a line: head, body, foot" >&2
    exit 1
fi
mkdir -p out
: > out/page.txt
while read -r part; do
    if [ ! -f "parts/$part.txt" ]; then
        echo "error: unknown part '$part'" >&2
        exit 1
    fi
    if ! tail -n 1 "parts/$part.txt" | grep -q '^--$'; then
        echo "error: the last line of parts/$part.txt must be --" >&2
        exit 1
    fi
    cat "parts/$part.txt" >> out/page.txt
done < parts/order.txt
echo built
