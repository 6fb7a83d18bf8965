#!/usr/bin/env python3
"""Checks the pages of the documentation without running their commands.

  pages_test.py ROOT

* Links lead to files and headings that exist, and paths in backticks exist. Pages that the program and its files name
  exist as well.
* Each block of commands is run by a test, or gives the reason why not. A block that is marked as tested is named by a test
  that also names its page.
* The runbook has a row for each alert, each rule of conf/prometheus, each halt, and each heading of `pawl status`.
  (tests/ops/warnings_test.cpp compares events and warnings.)
* The tests that a page names exist.
"""

import re
import sys
from pathlib import Path

# Placeholders in texts.
EXAMPLE_PAGES = {"docs/NAME.md", "docs/reference/SECTION.md"}

failures = []


def without_code(text):
    """Lines of code become empty, so that line numbers stay."""
    return re.sub(r"^```.*?^```", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def headings(text):
    """Anchors as GitHub makes them."""
    anchors, seen = set(), {}
    for heading in re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def check_links(root, page):
    text = without_code(page.read_text(encoding="utf-8"))
    name = page.relative_to(root)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            failures.append(f"{name}: the link {target} leads nowhere")
        elif anchor and anchor not in headings(file.read_text(encoding="utf-8")):
            failures.append(f"{name}: {path or 'the page'} has no heading #{anchor}")
    for path in re.findall(r"`((?:framework|tests|scripts|conf|apps|migrations|docs|bench|cmake|packaging)/[\w./-]*)`", text):
        if not (root / path).exists():
            failures.append(f"{name}: {path} does not exist")


def check_named_pages(root):
    """Pages in texts, comments, and files that are shipped."""
    for folder in ("framework", "apps", "conf", "migrations", "packaging", "scripts", "tests"):
        for file in sorted((root / folder).glob("**/*")):
            if not file.is_file() or file.suffix in (".json", ".pyc"):
                continue
            for page, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", file.read_text(encoding="utf-8", errors="replace")):
                target = root / page
                if page not in EXAMPLE_PAGES and (not target.exists() or (
                        anchor and anchor not in headings(target.read_text(encoding="utf-8")))):
                    failures.append(f"{file.relative_to(root)}: there is no {page}{'#' + anchor if anchor else ''}")


def names_word(text, word):
    return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", text) is not None


def braces_expanded(text):
    """The words of a{b,c}d, as bash expands them."""
    return re.sub(r"([\w/.-]*)\{([\w-]+(?:,[\w-]+)+)\}([\w.]*)",
                  lambda match: " ".join(match[1] + middle + match[3] for middle in match[2].split(",")), text)


def uses_block(test, text, page, block):
    """Whether a test names a block and its page. tests/docs/recipes_test.sh uses each block of the pages that it names."""
    loops = re.findall(r"^for page in (.*); do", text, re.MULTILINE) if test.name == "docs_test.sh" else []
    if block == "run" and any(page.removesuffix(".md") in pages.split() for pages in loops):
        return True
    named = names_word(text, page) or names_word(text, f"docs/{page}")
    return named and (test.name == "recipes_test.sh" or names_word(text, block))


def check_commands(root, page, tests):
    """Blocks without a language, and those of a shell, are commands."""
    before, inside = "", False
    path = str(page.relative_to(root)).removeprefix("docs/")
    for name in set(re.findall(r"^<!-- tested: (\S+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)):
        if not any(uses_block(test, text, path, name) for test, text in tests.items()):
            failures.append(f"{page.relative_to(root)}: no test uses the block {name}")
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if not inside and line[3:].strip() in ("", "sh", "bash", "console") and not re.match(
                    r"<!-- (?:tested: \S+|not run: \S.*) -->$", before):
                failures.append(f"{page.relative_to(root)}:{number}: neither <!-- tested: NAME --> nor <!-- not run: REASON -->")
            inside = not inside
        before = line


def rows(page, heading):
    """The codes in the first column of the tables below a heading."""
    codes, here = set(), False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            here = line == f"## {heading}"
        if here and line.startswith("| `"):
            codes.update(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    return codes


def constants(header, space):
    """The values of `inline constexpr ... kName = "value";` in a namespace."""
    text = header.read_text(encoding="utf-8")
    body = re.search(rf"namespace {space} \{{(.*?)\}}  // namespace {space}", text, re.DOTALL)
    return set(re.findall(r'=\s*"([^"]+)";', body[1])) if body else set()


def compare(what, documented, known):
    if not known:
        failures.append(f"found no {what}")
    for name in sorted(known - documented):
        failures.append(f"docs/runbook: no row for the {what} {name}")
    for name in sorted(documented - known):
        failures.append(f"docs/runbook: there is no {what} {name}")


def status_headings(source):
    """The headings under which `pawl status` shows problems: its literals in capitals."""
    return set(re.findall(r'"([A-Z]+(?: [A-Z]+)*)"', source.read_text(encoding="utf-8")))


def check_test_names(page, tests):
    names = {test.name.partition(".")[0] for test in tests}
    for name in re.findall(r"`(\w+_test)`", page.read_text(encoding="utf-8")):
        if name not in names:
            failures.append(f"{page.name}: there is no test {name}")


def check_runbook(root):
    runbook = root / "docs/runbook"
    compare("heading of pawl status", rows(runbook / "progress.md", "Headings of `pawl status`"),
            status_headings(root / "framework/cli/status_problems.cpp"))
    compare("alert", rows(runbook / "events.md", "Alerts"), constants(root / "framework/ops/alerts_message.hpp", "alert_kind"))
    rules = (root / "conf/prometheus/alerts.yml").read_text(encoding="utf-8")
    compare("rule of Prometheus", rows(runbook / "events.md", "Prometheus rules"), set(re.findall(r"- alert: (\w+)", rules)))
    halts = root / "framework/ledger/halt.hpp"
    compare("halt kind", rows(runbook / "halts.md", "Kinds"), constants(halts, "halt_kind"))
    codes = rows(runbook / "halts.md", "Codes of a failed message or handler") | rows(runbook / "halts.md", "Codes of a position")
    compare("halt code", codes, constants(halts, "halt_code"))


def main():
    root = Path(sys.argv[1]).resolve()
    tests = {file: braces_expanded(file.read_text(encoding="utf-8")) for pattern in ("*.sh", "*.py", "*.cpp")
             for file in sorted((root / "tests").glob(f"**/{pattern}")) if file != Path(__file__).resolve()}
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md",
             *sorted((root / "docs").glob("**/*.md"))]
    for page in pages:
        check_links(root, page)
        if page.is_relative_to(root / "docs") or page.name == "README.md":
            check_commands(root, page, tests)
            check_test_names(page, tests)
    check_named_pages(root)
    check_runbook(root)
    if failures:
        print(*failures, sep="\n")
        sys.exit(f"pages: {len(failures)} failures")


main()
