#!/usr/bin/env python3
"""Makes test data of a recorded conversation: the shapes stay, the words go.

    trim.py PEER VERSION agent|client PROTOCOL RECORDING… > crates/attache/tests/recordings/NAME.jsonl

The third argument says what the peer is, the fourth is the protocol: 1, 2 or draft. Of messages that have the same
shape one is kept, a request and its answer as one. Texts, names, ids and paths become short words, the same word
wherever the same text stood; what the protocol itself names stays.
"""
import json
import re
import sys

# Strings that the protocol names, or that say which peer it is.
KEPT = {
    "jsonrpc", "method", "sessionUpdate", "type", "kind", "status", "state", "stopReason", "outcome", "priority",
    "severity", "category", "operation", "fileType", "format", "currency", "mimeType", "action", "mode",
}  # fmt: skip
# Strings of a form that must stay.
FORMS = {"updatedAt": "2026-11-15T00:00:00Z", "data": "aGVsbG8K"}
INFO = {"info", "agentInfo", "clientInfo"}
words = {}


def word(kind, text):
    """A short word for a text: the same for the same text."""
    return words.setdefault(text, f"{kind}-{len(words) + 1}")


def trim_string(key, text, inside):
    if key in KEPT or (inside in INFO and key in ("name", "version")):
        return text
    if key in FORMS:
        return FORMS[key]
    if text.startswith("/"):
        return "/project/" + word("file", text)
    if re.match(r"[a-z]+://", text):
        return "https://example.com/" + word("page", text)
    return word("id" if key.lower().endswith("id") else "word", text)


def trim(value, key="", inside=""):
    if isinstance(value, dict):
        return {name: trim(item, name, key) for name, item in value.items()}
    if isinstance(value, list):
        items, seen = [], set()
        for item in value:
            item_shape = shape(item)
            if item_shape not in seen:
                seen.add(item_shape)
                items.append(trim(item, key, inside))
        return items
    return trim_string(key, value, inside) if isinstance(value, str) else value


def shape(value, key=""):
    """What two messages have in common that are the same to a decoder."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{shape(value[name], name)}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + "|".join(sorted({shape(item, key) for item in value})) + "]"
    if isinstance(value, str):
        return repr(value) if key in KEPT else "text"
    if isinstance(value, float):
        return "float"
    return "null" if value is None else type(value).__name__


def exchanges(entries):
    """The entries in groups: a request and its answer, or a notification."""
    groups, asked = [], {}
    for entry in entries:
        message = entry["message"]
        direction, number = entry["dir"], json.dumps(message.get("id"))
        if "method" in message:
            groups.append([entry])
            asked[direction, number] = groups[-1]
        else:
            # An answer belongs to the question that came the other way.
            asked["out" if direction == "in" else "in", number].append(entry)
    return groups


def main():
    peer, version, role, protocol, *paths = sys.argv[1:]
    print(json.dumps({"peer": peer, "version": version, "role": role, "protocol": protocol}))
    seen = set()
    for path in paths:
        entries = [json.loads(line) for line in open(path, encoding="utf-8")]
        kept = set()
        for group in exchanges(entries):
            group_shape = "".join(entry["dir"] + shape({**entry["message"], "id": 0}) for entry in group)
            if group_shape not in seen:
                seen.add(group_shape)
                kept.update(id(entry) for entry in group)
        for entry in entries:
            if id(entry) in kept:
                message = entry["message"].items()
                trimmed = {name: item if name in ("id", "method") else trim(item, name) for name, item in message}
                line = {"dir": entry["dir"], "message": trimmed}
                print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


main()
