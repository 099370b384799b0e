#!/usr/bin/env python3
# herring: what the commands of pages name is there: files of this repository, its programs, and the options of both.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/docs/check_commands.py
#
# Commands are lines of code, and what stands in backticks. An option belongs to the script or program before it, and has to occur in its
# source or in a file that the source names. build/NAME is compiled from bench/NAME.* or tests/fault/NAME.*, if one is there; for
# build/bench/NAME one has to be. The changelog, which names what was, is left out.
import os
import re
import sys
import tempfile
from pathlib import Path

from check_links import pages, prose

FILE = re.compile(r"(?<![\w/.$}-])(?:bench|docs|examples|include|tests|\.ci)/[\w.*/-]*[\w*]")
PROGRAM = re.compile(r"build/(bench/)?(\w+)$")
PEERS = dict.fromkeys(("impi_bench", "openmpi5_bench", "mpich_bench"), "openmpi_bench")  # bench/run compiles it for each


def commands(page):
    words = prose(page)
    code = "\n".join(line for line, word in zip(page.split("\n"), words) if not word)
    yield from re.sub(r"(^|\s)#.*", "", code.replace("\\\n", " "), flags=re.M).split("\n")
    for paragraph in "\n".join(words).split("\n\n"):
        yield from re.findall(r"`([^`]+)`", paragraph)


def source_of(root, file):
    names = re.findall(r"[\w./-]+\.(?:cpp|hpp|cu|py|sh)\b", file.read_text())
    named = [folder / part for name in names for folder, part in ((root, name), (file.parent, name), (file.parent, Path(name).name))]
    return "".join(path.read_text() for path in {file, *filter(Path.is_file, named)})


def faults(root, command):
    yield from (f"there is no {name}" for name in FILE.findall(command) if not any(root.glob(name)))
    source, words = "", re.sub(r"^\s*(\w+=\S* )*", "", command).split()
    for at, word in enumerate(words):
        if program := PROGRAM.match(word):
            name = PEERS.get(program[2], program[2])
            file = next((file for folder in ("bench", "tests/fault") for file in root.glob(f"{folder}/{name}.c*")), None)
            source = source_of(root, file) if file else ""
            if program[1] and not file:
                yield f"there is no bench/{name}.cpp"
        elif FILE.fullmatch(word) and (file := root / word).is_file() and (os.access(file, os.X_OK) or file.suffix == ".py"):
            source = source_of(root, file)
            if at == 0 and len(words) > 1 and not os.access(file, os.X_OK):
                yield f"{word} is not executable"
        elif word in ("&&", "|", ";", "&"):
            source = ""
        elif source and (option := re.match(r"\[?--([a-z][\w-]*)", word)) and not re.search(rf'[-"]{option[1]}\b', source):
            yield f"its source does not have --{option[1]}"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "bench").mkdir()
        (root / "bench/a.cpp").write_text('#include "b.hpp"\n')
        (root / "bench/b.hpp").write_text('text("sizes")')
        (root / "bench/c.py").write_text('"--quick"')
        page = "`build/bench/a --sizes 1 --size\n2`, `build/bench/d`, `python3 bench/c.py --quick`\n\n    X=1 bench/c.py \\\n      --slow | x --y  # --z\n    bench/e\n"
        found = [fault for command in commands(page) for fault in faults(root, command)]
        assert found == ["bench/c.py is not executable", "its source does not have --slow", "there is no bench/e", "its source does not have --size", "there is no bench/d.cpp"], found


def main():
    self_test()
    root, failed = Path(__file__).resolve().parents[2], 0
    for page in pages(root):
        for command in commands(page.read_text()) if page.name != "CHANGELOG.md" else ():
            for fault in faults(root, command):
                failed += 1
                print(f"FAILED: {page.relative_to(root)}: {' '.join(command.split())}: {fault}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
