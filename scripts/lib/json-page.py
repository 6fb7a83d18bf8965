#!/usr/bin/env python3
"""Prints docs/reference/json-output.md from the JSON schemas of the commands and of the page /status.

  json-page.py FOLDER_OF_SCHEMAS

Fails if a key has no description. A key with a $ref needs its own, because the page prints only the name of its type.
"""

import json
import sys
from pathlib import Path

HEAD = """# JSON output

The keys of each command's `--json` output, and of the page `/status` of a process. Within a minor version, keys are only added. An unknown value is `null`.
Timestamps are RFC 3339 in UTC. Keys whose meaning begins with "Text for people" contain prose, which is not stable.

The tables are generated from the JSON schemas that each section links. `[]` marks the items of a list.
"""


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "enum" in schema:
        return ", ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    kinds = schema.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join({"array": "list", "date-time": "timestamp"}.get(
        schema.get("format") if kind == "string" else kind, kind) for kind in kinds)


def rows(schema, path):
    """(key, type, meaning) of each key below a schema."""
    for name, member in schema.get("properties", {}).items():
        key = f"{path}.{name}" if path else name
        if not member.get("description"):
            sys.exit(f"json-page: {key} has no description")
        yield key, type_of(member), member["description"]
        yield from below(member, key)


def below(schema, path):
    yield from rows(schema, path)
    if "items" in schema:
        yield from below(schema["items"], path + "[]")
    for one in schema.get("anyOf", []):
        yield from below(one, path)


def table(entries):
    text = "\n| Key | Type | Meaning |\n|---|---|---|\n"
    for key, kind, meaning in dict.fromkeys(entries):
        text += f"| `{key}` | {kind} | {meaning.replace('|', chr(92) + '|')} |\n"
    return text


def main():
    page, shared = HEAD, {}
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        shared.update(schema.get("$defs", {}))
        page += f"\n## `{schema['title'].removesuffix(' --json')}`\n\n{schema.get('description', '')}\n\nSchema: [{file.name}](json/{file.name})\n"
        entries = list(below(schema, ""))
        if entries:
            page += table(entries)
    if shared:
        page += "\n## Shared types\n"
        for name, schema in sorted(shared.items()):
            page += f"\n### {name}\n\n{schema.get('description', '')}\n"
            entries = list(below(schema, ""))
            if entries:
                page += table(entries)
    print("\n".join(line.rstrip() for line in page.replace("\n\n\n", "\n\n").splitlines()))


main()
