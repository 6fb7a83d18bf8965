#!/usr/bin/env python3
"""Lists the pages of the documentation, copies them for the site, or checks the site.

  site-pages.py llms ROOT          prints llms.txt: each page of mkdocs.yml with its first sentence
  site-pages.py copy ROOT FOLDER   copies docs/ to FOLDER; links out of docs/ become plain text
  site-pages.py check SITE         fails if a page or a style sheet loads something from another host

mkdocs.yml has to name each page of docs/ exactly once.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path


def fail(text):
    sys.exit(f"site-pages: {text}")


def navigation(root):
    """(depth, title, page or None) of each entry of the navigation in mkdocs.yml."""
    entries = []
    text = (root / "mkdocs.yml").read_text(encoding="utf-8")
    for line in text[text.index("\nnav:\n"):].splitlines():
        match = re.fullmatch(r'( *)- (?:"([^"]*)"|([^:]*)):(?: (.*))?', line)
        if match:
            entries.append((len(match[1]) // 4, match[2] or match[3], match[4]))
    pages = [page for _, _, page in entries if page]
    there = sorted(str(file.relative_to(root / "docs")) for file in (root / "docs").glob("**/*.md"))
    for page in sorted(set(pages) ^ set(there)):
        fail(f"mkdocs.yml {'does not name' if page in there else 'names'} {page}"
             f"{'' if page in there else ', which does not exist'}")
    if len(pages) != len(set(pages)):
        fail("mkdocs.yml names a page twice")
    return entries


def first_sentence(page):
    """Of the first paragraph after the title, without markup."""
    text = page.read_text(encoding="utf-8")
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = " ".join(paragraph.split())
        if re.match(r"[A-Za-z*`\[]", paragraph):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).replace("**", "")
            return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":.") + "."
    return fail(f"{page} has no text")


def llms(root):
    print("# pawl\n\n> Kafka to PostgreSQL, exactly once. pawl applies each message in one transaction with its idempotency "
          "key and its offset.")
    for depth, title, page in navigation(root):
        if page:
            print(("\n## Start\n\n" if page == "index.md" else "")
                  + f"- [{title}]({page}): {first_sentence(root / 'docs' / page)}")
        elif depth == 0:
            print(f"\n## {title}\n")


def copy(root, folder):
    navigation(root)
    shutil.copytree(root / "docs", folder, dirs_exist_ok=True)

    def link(match, page):
        text, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        depth = len(page.relative_to(folder).parts) - 1
        if not target.startswith("../" * (depth + 1)):
            return match[0]
        return f"[{text}]({'../' * depth}index.md)" if target.split("#")[0].endswith("../README.md") else text

    for page in folder.glob("**/*.md"):
        source = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", lambda match: link(match, page), source),
                        encoding="utf-8")


class Loads(HTMLParser):
    """What a page loads, unlike what it links to."""

    def __init__(self):
        super().__init__()
        self.urls = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "srcset", "data", "poster") or (name == "href" and tag in ("link", "use", "image")):
                self.urls.append(value or "")


def check(site):
    failures = []
    for file in sorted(site.glob("**/*.html")):
        loads = Loads()
        loads.feed(file.read_text(encoding="utf-8"))
        failures += [f"{file.relative_to(site)}: {url}" for url in loads.urls if re.match(r"(?:[a-z]+:)?//", url)]
    for file in sorted(site.glob("**/*.css")):
        urls = re.findall(r"(?:url\(|@import)\s*[\"']?((?:[a-z]+:)?//[^\"')]*)", file.read_text(encoding="utf-8"))
        failures += [f"{file.relative_to(site)}: {url}" for url in urls]
    if not list(site.glob("assets/mermaid.min.js")):
        failures.append("there is no assets/mermaid.min.js, so the theme would load it from another host")
    if failures:
        fail("loaded from other hosts:\n  " + "\n  ".join(failures))


match sys.argv[1:]:
    case ["llms", root]:
        llms(Path(root))
    case ["copy", root, folder]:
        copy(Path(root), Path(folder))
    case ["check", site]:
        check(Path(site))
    case _:
        fail("usage: site-pages.py llms ROOT | copy ROOT FOLDER | check SITE")
