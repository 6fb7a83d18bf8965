#!/usr/bin/env python3
"""Prints docs/reference/schema.md from the comments of the migrations. Fails if a table or a column has none.

  schema-page.py MIGRATIONS
"""

import re
import sys
from pathlib import Path

HEAD = """# Schema

The tables of pawl's schema with the meaning of each column, for operators who query them. The name of the schema is
`postgres.schema`, by default `pawl`. `psql` shows the same texts with `\\d+ pawl.TABLE`.

Query these tables, but do not change them: use [commands](commands.md) instead. Names and meanings of tables and columns
can change in a new minor version.
"""

CONSTRAINT = re.compile(r"(?:CONSTRAINT|PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE|LIKE)\b")
END_OF_TYPE = re.compile(r"\s+(?:PRIMARY|NOT|NULL|DEFAULT|CHECK|REFERENCES|UNIQUE|GENERATED|COLLATE|STORAGE|COMPRESSION)\b")
COMMENT = re.compile(r"COMMENT ON (TABLE|COLUMN|VIEW|FUNCTION) pawl\.([^;]*?) IS\s+((?:E?'(?:''|[^'])*'\s*)+);")


def parts(body):
    """The text between commas that are in no parentheses."""
    depth, start = 0, 0
    for at, character in enumerate(body):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield body[start:at]
            start = at + 1
    yield body[start:]


def closing(sql, start):
    """Where the parenthesis ends that begins at start."""
    depth = 0
    for at in range(start, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[at], 0)
        if depth == 0:
            return at
    sys.exit("schema-page: a CREATE TABLE has no end")


def tables_of(sql):
    """(table, [(column, type)]) in the order of the migrations."""
    for match in re.finditer(r"CREATE TABLE pawl\.(\w+) \(", sql):
        body = sql[match.end():closing(sql, match.end() - 1)]
        columns = []
        for part in parts(body):
            part = " ".join(part.split())
            if part and not CONSTRAINT.match(part):
                name, rest = part.split(" ", 1)
                columns.append((name, END_OF_TYPE.split(rest)[0]))
        yield match[1], columns


def main():
    sql = "\n".join(file.read_text(encoding="utf-8") for file in sorted(Path(sys.argv[1]).glob("*.sql")))
    comments = {}
    for kind, name, texts in COMMENT.findall(sql):
        text = "".join(piece.replace("''", "'") for piece in re.findall(r"'((?:''|[^'])*)'", texts))
        comments[kind, " ".join(name.split())] = text
    sql = re.sub(r"--[^\n]*", "", sql)
    missing = []

    def comment(kind, name):
        if (kind, name) not in comments:
            missing.append(f"{kind} pawl.{name}")
        return comments.get((kind, name), "").replace("|", "\\|").replace("<", "&lt;")

    page = HEAD
    for table, columns in tables_of(sql):
        page += f"\n## `{table}`\n\n{comment('TABLE', table)}\n\n| Column | Type | Meaning |\n|---|---|---|\n"
        for column, kind in columns:
            page += f"| `{column}` | {kind} | {comment('COLUMN', f'{table}.{column}')} |\n"
    functions = sorted(name for kind, name in comments if kind in ("FUNCTION", "VIEW"))
    if functions:
        page += "\n## Functions and views\n\n| Name | Meaning |\n|---|---|\n"
        for name in functions:
            page += f"| `{name}` | {comment('VIEW' if ('VIEW', name) in comments else 'FUNCTION', name)} |\n"
    if missing:
        sys.exit("schema-page: the migrations have no comment on " + ", ".join(missing))
    print(page, end="")


main()
