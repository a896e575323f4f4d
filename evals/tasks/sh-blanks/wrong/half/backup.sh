#!/bin/sh
# backup.sh FROM TO: copies every .txt file of a directory to another, as NAME.bak, and says how many.
set -e
from=$1
to=$2
mkdir -p "$to"
count=0
for file in $(ls "$from"/*.txt); do
    name=$(basename "$file")
    cp "$file" "$to/$name.bak"
    count=$((count + 1))
done
echo "$count copied"
