#!/usr/bin/env python3
# herring: every link of a page to a file of this repository, and to a section of a page, leads somewhere.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/docs/check_links.py
#
# Anchors are those that GitHub makes of headings: lower case, punctuation left out, spaces as hyphens. Links to other hosts are not
# followed.
import re
import sys
import tempfile
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(root):
    return [*root.glob("*.md"), *(page for folder in ("docs", "examples", "bench", "tests") for page in root.glob(f"{folder}/**/*.md"))]


def prose(text):
    """The lines of the page; those of fenced and indented code are empty."""
    out, inside = [], False
    for line in text.split("\n"):
        fence = line.startswith("```")
        inside ^= fence
        out.append("" if inside or fence or line.startswith("    ") else line)
    return out


def anchors(page):
    found, seen = set(), {}
    for line in prose(page.read_text()):
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found.add(name + (f"-{seen[name]}" if name in seen else ""))
            seen[name] = seen.get(name, 0) + 1
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def dead_links(root, pages):
    dead, count = [], 0
    for page in pages:
        for link in LINK.findall("\n".join(re.sub(r"`[^`]*`", "", line) for line in prose(page.read_text()))):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            path, _, anchor = link.partition("#")
            to = (page.parent / path).resolve() if path else page
            if not to.exists() or root not in [to, *to.parents]:
                dead.append(f"{page.relative_to(root)}: {link}: there is no such file")
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                dead.append(f"{page.relative_to(root)}: {link}: there is no such section")
    return dead, count


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "a.md").write_text("# A `b`, c\n[x](b.md) [y](#a-b-c) [z](#nowhere) [w](gone.md) `[v](gone.md)` [u](https://h)\n")
        (root / "b.md").write_text("```\n# no heading\n```\n[x](a.md#no-heading)\n")
        dead, count = dead_links(root, [root / "a.md", root / "b.md"])
        assert count == 5 and [line.split(": ")[1] for line in dead] == ["#nowhere", "gone.md", "a.md#no-heading"], dead


def main():
    self_test()
    root = Path(__file__).resolve().parents[2]
    dead, count = dead_links(root, pages(root))
    for line in dead:
        print(f"FAILED: {line}")
    print(f"{count} links, {len(dead)} dead")
    sys.exit(1 if dead else 0)


if __name__ == "__main__":
    main()
