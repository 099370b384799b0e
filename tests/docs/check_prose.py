#!/usr/bin/env python3
# herring: pages that can be read: short enough, in short sentences, in the words of the comments.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/docs/check_prose.py [PAGE ...]     default: README.md, docs/ and examples/, without the changelog; prints PAGE:LINE: what is wrong
#
# Rules: a page has at most 200 lines (errors.md is exempt, and tables that bench/pages.py writes do not count); all pages together have
# at most 20 sentences of more than 35 words; no word that tests/format/comments.py refuses in comments. Code and «quotations» do not count; a cell of a table is a text of its own.
import re
import sys
from pathlib import Path

from check_links import prose

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "format"))
from comments import terms  # noqa: E402

most_lines, most_words, most_long = 200, 35, 20
GENERATED = re.compile(r"<!-- bench: .*?<!-- end -->", re.DOTALL)
BEGINS = re.compile(r"([-*]|\d+\.) |[#|!<]")


def texts(lines):
    """(number of its first line, text) of each paragraph, item, heading and cell, without marks, links' targets, code and quotations."""
    number, text = 0, ""
    for at, line in enumerate([*lines, ""], 1):
        line = line.strip()
        if text and (not line or text[0] == "#" or BEGINS.match(line)):
            text = re.sub(r"`[^`]*`|«[^»]*»", "code", re.sub(r"\]\([^)\s]*\)", "]", text))
            yield from ((number, cell) for cell in (text.split("|") if text[0] == "|" else [text]))
            text = ""
        if line and not line.startswith("<!--"):
            number, text = (number, f"{text} {line}") if text else (at, line)


def long_sentences(text):
    for sentence in re.split(r"(?<=[^.][.!?])[*)»\"]*\s+", text):
        if (words := len(re.findall(r"\S*\w\S*", sentence))) > most_words:
            yield words, " ".join(sentence.split()[:8])


def check(name, page):
    """(what is wrong, long sentences) of the text of a page."""
    wrong, long = [], []
    if (lines := GENERATED.sub("", page).count("\n")) > most_lines and name != "docs/errors.md":
        wrong.append(f"{name}: {lines} lines; a page has at most {most_lines}")
    for at, text in texts(prose(page)):
        wrong += [f"{name}:{at}: «{found[0]}»: say {instead}" for word, instead in terms if (found := word.search(text))]
        long += [f"{name}:{at}: {words} words: {beginning} ..." for words, beginning in long_sentences(text)]
    return wrong, long


def self_test():
    words = "word " * 30
    assert check("a", "<!-- bench: times shm -->\n" + "| |\n" * 200 + "<!-- end -->\n") == ([], [])
    assert check("a", f"# A\n{words}one. {words}two.\n\n| {words} | {words} |\n- {words}\n- {words}\n```\nnobody {words * 2}\n```\n") == ([], [])
    wrong, long = check("a", f"# A\n{words}\n{words}\n\nThe guest `nobody` «his».\n" + "\n" * 200)
    assert len(long) == 1 and long[0].startswith("a:2: 60 words") and [line.split(" ")[0] for line in wrong] == ["a:", "a:5:"], (wrong, long)


def main():
    self_test()
    root = Path(__file__).resolve().parents[2]
    pages = [Path(page).resolve() for page in sys.argv[1:]] or [root / "README.md", *sorted(root.glob("docs/**/*.md")), *sorted(root.glob("examples/**/*.md"))]
    wrong, long = [], []
    for page in pages:
        if page.name != "CHANGELOG.md":
            found = check(str(page.relative_to(root)), page.read_text())
            wrong, long = wrong + found[0], long + found[1]
    print(*(f"FAILED: {line}" for line in wrong), *long, sep="\n")
    print(f"{len(pages)} pages; {len(long)} sentences of more than {most_words} words, of at most {most_long}")
    sys.exit(1 if wrong or len(long) > most_long else 0)


main()
