#!/usr/bin/env python3
"""Checks the words of the texts that users and operators read.

  language_test.py ROOT            fails for each text that contains a banned term
  language_test.py ROOT --report   also counts discouraged terms, long sentences, and long pages

It fails as well if a command inside of a text of a program is not in backticks, if README.md or a page is too long, or if a
sentence of CHANGELOG.md is. Generated pages and CHANGELOG.md may have any length.

Texts are the pages (README.md, CONTRIBUTING.md, CHANGELOG.md, docs/), the public headers, conf/, packaging/, the
comments that the schema stores, the dashboard, the scripts, and every string literal of the programs. Help, log lines,
and metrics are literals of the programs. Comments of private code are not texts.
"""

import re
import sys
from pathlib import Path

# ---- terms ---------------------------------------------------------------------------------------

# What fails: a name for the term, its pattern, and the standard term.
BANNED = [
    ("letter without dead", r"(?<!dead )(?<!dead-)(?<!upper-case )(?<!lower-case )\bletters?\b(?!,? (?:and |or )?digits)",
     "dead letter; parked message"),
    ("in hand", r"\bin[ -]hand\b", "in flight"),
    ("errand", r"\berrands?\b", "task"),
    ("landing", r"\blandings?\b", "result"),
    ("the books", r"\bthe books\b", "consistency; No inconsistencies found"),
    ("set apart", r"\bset(?:s|ting)? (?:it |them )?apart\b", "failed (outbox)"),
    ("set aside", r"\bset(?:s|ting)? (?:it |them )?aside\b", "dead-lettered or parked"),
    ("put off", r"\bput(?:s|ting)? off\b", "scheduled for retry"),
    ("anew", r"\banew\b", "again, re-"),
    ("by itself", r"\bby (?:itself|themselves)\b", "automatically"),
    ("whoever", r"\bwhoever\b", "a process that ..., an operator who ..."),
    ("somebody", r"\bsomebody\b", "an operator; a session"),
    ("nobody", r"\bnobody\b", "no process; unassigned"),
    ("the other side", r"\bthe other side\b", "the remote service"),
    ("lane", r"\blanes?\b", "outbox shard"),
    ("register (the table)", r"\b(?:the|a|its|own|this|that|each|every|pawl's) register\b(?! of)|\bregister's\b",
     "offset store, stored offset"),
    ("first contact", r"\bfirst contacts?\b", "first assignment, initial offset"),
    ("mend", r"\bmend(?:s|ed|ing)?\b", "fix"),
    ("side by side", r"\bside by side\b", "concurrently"),
    ("under way", r"\bunder ?way\b", "in progress"),
    ("is away", r"\b(?:is|are|was|were|be|been|being) away\b(?! from)", "is unreachable"),
    ("goes on", r"\b(?:go|goes|went|going|gone) on\b", "continues, resumes"),
]

# What is counted: terms that have a standard one, but also right uses. The most frequent of those are excluded:
# bound parameters, ELSE of SQL, "connection refused", a lookup, and a key that looks like another thing.
DISCOURAGED = [
    ("says, tells", r"\b(?:say|says|said|tell|tells|told)\b"),
    ("what as the subject", r"(?:^|[.;:] )What (?!is\b|are\b|does\b|do\b|happens\b|to\b)|\bof what\b|\bwith what\b"),
    ("look", r"\blook(?:s|ed|ing)?\b(?! like| up)"),
    ("behind (after), in front of, beside", r"\b(?:behind|in front of|beside)\b"),
    ("else", r"(?-i:\belse\b)"),
    ("stands, comes, begins, is there", r"\b(?:stand|stands|stood|comes|begins)\b|\b(?:is|are) there\b"),
    ("hands", r"(?<!by )\bhands?\b(?!-written)"),
    ("tried again, try (noun), tries", r"\btried again\b|\btries\b|\b(?:a|each|one|last|next|first|every) try\b"),
    ("runs again", r"\bruns? again\b"),
    ("left out, pass over", r"\bleft out\b|\bpass(?:es|ed)? over\b"),
    ("answers", r"\banswers?\b|\banswered\b"),
    ("ends with a code", r"\bends? with [0-9]"),
    ("rights, refuses", r"\brights\b|(?<!connection )(?<!connections )\brefuse[sd]?\b(?! connection)"),
    ("bound, so many, so long", r"\bbounds?\b(?! as| with)|\bso (?:many|long|much)\b"),
    ("make, made (a topic, a table)", r"\bmade\b|\bmakes? (?:a|the) (?:topic|table)\b"),
    ("correct (to fix)", r"\bcorrect (?:the|a|an|it|its|your|[a-z_]+[._][a-z_]+)\b"),
    ("flight, travels", r"(?<!in )(?<!in-)\bflights?\b|\btravel(?:s|led)?\b"),
    ("in a row", r"\bin a row\b"),
    ("room, house", r"\brooms?\b|\bhouse\b"),
    ("in effect", r"\bin effect\b"),
    ("died, dies, knows, wants", r"\b(?:dies|died|knows|wants)\b"),
]

BANNED_PATTERNS = [(name, re.compile(pattern, re.IGNORECASE), standard) for name, pattern, standard in BANNED]
DISCOURAGED_PATTERNS = [(name, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for name, pattern in DISCOURAGED]

# A text and a term that it must contain, or None.
EXAMPLES = [
    ("Dead letters and 3 dead\nletters, a dead-letter topic, dead_letters.topic", None),
    ("use letters, digits, '_', upper-case letters", None),
    ("117 LETTERS", "letter without dead"),
    ("the messages in hand", "in hand"),
    ("a handler is registered; `register` a handler; registers with systemd", None),
    ("the register says", "register (the table)"),
    ("it is kept in its own\nregister", "register (the table)"),
    ("side\n> by side", "side by side"),
    ("a plane, planes", None),
    ("7 lanes", "lane"),
    ("recommend, amend, commended", None),
    ("pawl mends it", "mend"),
    ("as far away from Kafka", None),
    ("Kafka is away", "is away"),
    ("others go on", "goes on"),
    ("category on", None),
]


def flat(text):
    """One line, of the same length: a term may be broken by a line's end and by a quotation's mark."""
    return re.sub(r"\n[ \t]*(?:>|#|//+|\*)? ?|[ \t]+", lambda m: " " + "\0" * (len(m.group()) - 1), text)


def findings(text):
    """(offset, name, standard) of each banned term."""
    line = flat(text)
    offsets = [at for at, character in enumerate(line) if character != "\0"]
    line = line.replace("\0", "")
    for name, pattern, standard in BANNED_PATTERNS:
        for match in pattern.finditer(line):
            yield offsets[match.start()], name, standard


def test_examples():
    for text, expected in EXAMPLES:
        found = [name for _, name, _ in findings(text)]
        if found != ([expected] if expected else []):
            sys.exit(f"language: in {text!r} expected {expected}, found {found}")


# ---- texts ---------------------------------------------------------------------------------------

CPP_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/                                      # comments
      | \b\d[\w']*                                              # numbers: 1'000
      | R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>.*?)\)(?P=mark)"   # raw literals
      | "(?P<text>(?:\\.|[^"\\\n])*)"
      | '(?:\\.|[^'\\\n])+'
      | ^[ \t]*\#[ \t]*(?:include|error|pragma)[^\n]*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
BETWEEN_LITERALS = re.compile(r"(?:\s|//[^\n]*\n)*")
# Statements are not texts: their words are names of SQL and of the schema.
SQL = re.compile(r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|LOCK|COPY|DECLARE|VALUES|EXPLAIN|TRUNCATE)\b"
                 r"|\b(?:FROM|JOIN|WHERE|RETURNING|ORDER BY|ON CONFLICT|FOR UPDATE|AS)\b")


def literals(source):
    """(offset, text) of each string literal of C++, with those joined that stand next to each other."""
    joined = None
    for match in CPP_TOKEN.finditer(source):
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is None:
            continue
        text = re.sub(r"\\[nt]", "  ", text) if match["raw"] is None else text
        if joined and BETWEEN_LITERALS.fullmatch(source, joined[2], match.start()):
            joined = (joined[0], joined[1] + text, match.end())
            continue
        if joined:
            yield joined[:2]
        joined = (match.start(), text, match.end())
    if joined:
        yield joined[:2]


def shown_literals(source):
    return [(offset, text) for offset, text in literals(source) if not SQL.search(text)]


def schema_comments(source):
    """The comments and error messages of a migration."""
    for match in re.finditer(r"(?:COMMENT ON[^;]*? IS|RAISE \w+|MESSAGE =|DETAIL =|HINT =)\s*((?:E?'(?:''|[^'])*'\s*(?:\|\|)?\s*)+)", source):
        yield match.start(), match[1]


def without_comments(source):
    """A shell script's text; comments become spaces, so that offsets stay."""
    return [(0, re.sub(r"(?m)(^|[ \t])#.*$", lambda match: " " * len(match[0]), source))]


def whole(source):
    return [(0, source)]


SELFTEST_SOURCE = '''#include "letter.hpp"
// somebody
auto a = "by "  // nobody
         "itself";  char c = '"'; int n = 1'000; const auto b = R"(in
hand)"; auto s = "SELECT letter FROM l";'''


def test_literals():
    found = [name for _, text in shown_literals(SELFTEST_SOURCE) for _, name, _ in findings(text)]
    if found != ["by itself", "in hand"]:
        sys.exit(f"language: the literals of the example contain {found}")


# Area, files, how to find the texts of a file.
AREAS = [
    ("pages", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md"], whole),
    ("public headers", ["framework/include/pawl/**/*.hpp"], whole),
    ("programs", ["framework/**/*.cpp", "framework/**/*.hpp", "apps/**/*.cpp"], shown_literals),
    ("scripts", ["scripts/*"], without_comments),
    ("dashboard", ["framework/dashboard/*.js"], shown_literals),
    ("configuration", ["conf/**/*.toml", "conf/**/*.yml", "conf/**/*.json", "mkdocs.yml"], whole),
    ("packages", ["packaging/**/*", "cmake/Package.cmake"], whole),
    ("schema", ["migrations/*.sql"], schema_comments),
]


def files_of(root, patterns):
    return sorted({file for pattern in patterns for file in root.glob(pattern) if file.is_file()})


# ---- commands ------------------------------------------------------------------------------------

COMMAND = re.compile(
    r"""pawl\ (?:audit|check|dashboard|init|migrate|prune|relay|run|status|tail|try)\b
      | (?:pawl\ )?(?:calls\ (?:acknowledge|list|resolve|show) | config\ show | consumers\ (?:list|remove)
          | dlq\ (?:discard|erase|export|import|list|parked|replay|show) | keys\ (?:estimate|show)
          | migrate\ (?:grants|plan|status|up) | offsets\ (?:reset|set|show) | outbox\ (?:discard|list|retry|show|status)
          | partitions\ (?:pause|peek|resume|skip) | skipped\ list)\b
      | \{\}\ --[a-z]
      | (?:createdb|redis-cli|kafka-[a-z-]+\.sh)\b
      | (?:ALTER\ (?:DATABASE|ROLE|SYSTEM)|CREATE\ DATABASE|GRANT\ [A-Z]+)\b""", re.VERBOSE)
# A literal that is a command: an argument of command_text(), for example.
ONLY_COMMAND = re.compile(r"(?:\{\}(?: \{\})?|[a-z]+(?: [a-z]+)?)(?: --[a-z-]+(?: (?:'[^']*'|\{\}|[A-Z]+))?)*")
LINE_OF_COMMAND = re.compile(rf"\{{|{COMMAND.pattern}", re.VERBOSE)
# Help is aligned in columns and has no backticks.
HELP = re.compile(r"\badd_(?:flag|option|subcommand)\b|\[command, arguments\]")


def unmarked_commands(source):
    """(offset, command) of each command inside of a text that neither is in backticks nor has its own line."""
    for offset, text in shown_literals(source):
        fragment = ONLY_COMMAND.fullmatch(text.strip()) or text.startswith("--")
        if fragment or HELP.search(source, source.rfind(";", 0, offset) + 1, offset):
            continue
        # Line breaks and columns are at least two spaces here.
        for line in re.finditer(r"\S(?:\S| (?! ))*", text):
            if line.start() > 0 and LINE_OF_COMMAND.match(line[0]):
                continue
            for match in COMMAND.finditer(text, line.start(), line.end()):
                if text.count("`", line.start(), match.start()) % 2 == 0:
                    yield offset + match.start(), match[0]


def test_unmarked_commands():
    source = r'''f("pawl run started"); f("see `pawl run`, or:\n  pawl check\n  {} --all"); f("dlq replay --all");
        f("this: {} --all"); c.add_flag("--x", "as dlq list prints"); f("use dlq " "list");'''
    if (found := [command for _, command in unmarked_commands(source)]) != ["pawl run", "{} --a", "dlq list"]:
        sys.exit(f"language: the commands without backticks of the example are {found}")


# ---- the report ----------------------------------------------------------------------------------

def prose(markdown):
    """Without code, tables, headings, comments, targets of links, and marks of emphasis and quotations."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\||#).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\*\*|^> ?", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "CODE", text)


def sentences(markdown):
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) ", prose(markdown)):
        for sentence in re.split(r"(?<=[.!?:])\s+", " ".join(paragraph.split())):
            if sentence:
                yield sentence


def longest(page):
    """The words that a page may have; None: any number, because a program writes the page, or each fix adds an entry."""
    if page.startswith(("docs/reference/", "docs/performance/results", "CHANGELOG.md")):
        return None
    return 900 if page == "README.md" else 1500


def too_long(root):
    for file in files_of(root, AREAS[0][1]):
        page, words = file.relative_to(root).as_posix(), len(file.read_text(encoding="utf-8").split())
        if (most := longest(page)) and words > most:
            yield f"{page}: {words:,} words; the longest page has {most:,}"


def long_sentences(markdown):
    """Those of more than 25 words; a piece of code counts as one."""
    return [sentence for sentence in sentences(markdown) if len(sentence.split()) > 25]


def test_long_sentences():
    words = " ".join(["word"] * 24)
    text = f"Two entries:\n* {words} `a b`.\n* {words} `a b` more.\n"
    if (found := long_sentences(text)) != [f"{words} CODE more."]:
        sys.exit(f"language: the long sentences of the example are {found}")


def cells(markdown):
    """The cells of all tables, without the targets of links."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    for row in re.findall(r"^\|(.*)\|$", re.sub(r"\]\([^)]*\)", "]", text), re.MULTILINE):
        yield from re.split(r"(?<!\\)\|", row)


def report(root):
    print(f"{'discouraged term':<36}" + "".join(f"{area:>16}" for area, _, _ in AREAS))
    texts = {area: [text for file in files_of(root, patterns) for _, text in find(file.read_text(encoding="utf-8"))]
             for area, patterns, find in AREAS}
    for name, pattern in DISCOURAGED_PATTERNS:
        print(f"{name:<36}" + "".join(
            f"{sum(len(pattern.findall(text)) for text in texts[area]):>16}" for area, _, _ in AREAS))
    print("\npages: words, sentences, sentences of more than 25 words, such cells of tables, heading levels")
    totals = [0, 0, 0, 0]
    for file in files_of(root, AREAS[0][1]):
        text = file.read_text(encoding="utf-8")
        counts = [len(text.split()), 0, 0, sum(len(cell.split()) > 25 for cell in cells(text))]
        counts[1] = sum(1 for _ in sentences(text))
        counts[2] = len(long_sentences(text))
        totals = [total + count for total, count in zip(totals, counts)]
        levels = max((len(heading) for heading in re.findall(r"^(#+) ", text, re.MULTILINE)), default=0)
        note = "more than three heading levels" if levels > 3 else ""
        print(f"{file.relative_to(root)!s:<44}{counts[0]:>7}{counts[1]:>6}{counts[2]:>5}{counts[3]:>5}{levels:>3}  {note}")
    print(f"{'all':<44}{totals[0]:>7}{totals[1]:>6}{totals[2]:>5}{totals[3]:>5}")


def main():
    root = Path(sys.argv[1])
    test_examples()
    test_literals()
    test_long_sentences()
    test_unmarked_commands()
    failures = 0
    unmarked = 0
    seen = set()
    for area, patterns, find in AREAS:
        files = [file for file in files_of(root, patterns) if file not in seen]
        seen.update(files)
        if not files:
            sys.exit(f"language: there are no files of the {area}")
        for file in files:
            source = file.read_text(encoding="utf-8")
            for start, text in find(source):
                for offset, name, standard in findings(text):
                    failures += 1
                    line = source.count("\n", 0, start + offset) + 1
                    print(f"{file.relative_to(root)}:{line}: {name}; the standard: {standard}")
            for offset, command in unmarked_commands(source) if area == "programs" else ():
                unmarked += 1
                line = source.count("\n", 0, offset) + 1
                print(f"{file.relative_to(root)}:{line}: {command} is a command inside of a text; put it in backticks, or on "
                      "its own line")
    if "--report" in sys.argv[2:]:
        report(root)
    too_long_texts = list(too_long(root))
    too_long_texts += [f"CHANGELOG.md: a sentence of more than 25 words: {sentence}"
                       for sentence in long_sentences((root / "CHANGELOG.md").read_text(encoding="utf-8"))]
    print(*too_long_texts, sep="\n", end="\n" if too_long_texts else "")
    if failures or unmarked or too_long_texts:
        sys.exit(f"language: {failures} banned terms, {unmarked} commands without backticks, {len(too_long_texts)} pages or "
                 "sentences that are too long")


main()
