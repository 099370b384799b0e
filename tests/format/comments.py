#!/usr/bin/env python3
# herring: fails on a comment of include/herring that is hard to read by one of the rules below.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/format/comments.py [FILE|FOLDER ...]   default: include/herring; prints FILE:LINE: what is wrong
#   tests/format/comments.py --self-test         a line against each rule must be found, and a good one must not
#
# Rules: a comment ends at column 110; no sentence begins with Of, What, Whether, Who or Theirs; no pronoun of a person and no
# metaphor where the field has a term (see `terms`).
import pathlib
import re
import sys

columns = 110
openings = re.compile(r"(?:^|[.:;] )(Of|What|Whether|Who|Theirs|That one|Those that) ")
terms = {
    r"guests?": "pending connection",
    r"strangers?": "pending connection, or unknown peer",
    r"knock(s|ed|ing)?": "connect",
    r"verdicts?": "root cause, or decision",
    r"accus(e|es|ed|ing|ation)": "suspect, or name",
    r"he|his|him|himself|she|her": "the noun: rank, caller, peer",
    r"nobody|theirs": "the noun: no rank, no thread, the peers'",
    r"doors?": "acceptor, or listener",
    r"bells?|doorbells?": "wake-up event, or eventfd",
}
terms = [(re.compile(rf"\b(?:{word})\b", re.IGNORECASE), instead) for word, instead in terms.items()]


def comment_of(line):
    """The comment of a line of C++ without its slashes, or None. A `//` within a string literal is none."""
    quoted, at = None, 0
    while at < len(line):
        c = line[at]
        if quoted:
            at += c == "\\"
            quoted = None if line[at : at + 1] == quoted else quoted
        elif c == '"':
            quoted = c
        elif line.startswith("//", at):
            return line[at:].lstrip("/<").strip()
        at += 1
    return None


def sentences_of(lines):
    """(number of the line, text) of each comment; lines of one comment are one text with the line of its first."""
    number, text = 0, []
    for at, line in enumerate(lines + [""], 1):
        comment = comment_of(line)
        alone = comment is not None and line.lstrip().startswith("//")
        if text and not (alone and comment):
            yield number, " ".join(text)
            text = []
        if comment:
            number = number if text else at
            if alone:
                text.append(comment)
            else:
                yield at, comment


def check(path, lines):
    wrong = []
    for at, line in enumerate(lines, 1):
        if len(line) > columns and comment_of(line) is not None:
            wrong.append((at, f"the line has {len(line)} columns; a comment ends at {columns}"))
    for at, text in sentences_of(lines):
        text = re.sub(r"`[^`]*`", "`code`", text)
        if found := openings.search(text):
            wrong.append((at, f"a sentence begins with «{found.group(1)}»: begin with a verb or with the noun that it is about"))
        for word, instead in terms:
            if found := word.search(text):
                wrong.append((at, f"«{found.group(0)}»: say {instead}"))
    return [f"{path}:{at}: {what}" for at, what in sorted(wrong)]


def self_test():
    good = ["/// Cuts every bucket into equal byte ranges, one a server.", 'auto s = "// What is this"; // bytes']
    bad = ["/// " + "long " * 25, "/// Of those, the first.", "/// Sums parts. What is left", "// is summed by the guest.", "int x; // his", "/// nobody"]
    assert not check("good", good), check("good", good)
    for line in bad[:2] + bad[4:] + [bad[2:4]]:
        assert check("bad", line if isinstance(line, list) else [line]), line
    assert len(check("bad", bad[2:4])) == 2
    print("comments: the self-test passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    root = pathlib.Path(__file__).resolve().parents[2]
    wrong = []
    for place in [pathlib.Path(a) for a in sys.argv[1:]] or [root / "include/herring"]:
        for path in sorted(place.rglob("*.[hc]*")) if place.is_dir() else [place]:
            if path.suffix in (".hpp", ".cuh"):
                wrong += check(path, path.read_text().splitlines())
    print("\n".join(wrong[:200] + ([f"and {len(wrong) - 200} more"] if len(wrong) > 200 else [])) or "comments: nothing to say")
    sys.exit(bool(wrong))
