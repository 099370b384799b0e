#!/usr/bin/env python3
# herring: walks the machine code that hot functions reach, and counts what is dispatched at run time.
# SPDX-License-Identifier: Apache-2.0
"""walk.py PROGRAM [--root PREFIX] [--end FUNCTION ...] [--verbose]

Follows every direct call and jump from the functions whose names start with PREFIX [hot_] through all code of the
program itself, and counts indirect calls and indirect jumps (a tail call through a pointer is a jump; compile with
-fno-jump-tables, so that a switch is none). Library functions (memcpy@plt, ...) are the end of a path: they are listed.
--end names functions that are left out, with all that only they reach: announcing a failure is no hot path.
Also looks at the whole program's symbols: no vtable or typeinfo of herring:: but that of herring::error, no
std::function, no dynamic_cast.

Exit status: 0 nothing found, 1 something found, 2 cannot say (no such function, no disassembler).
"""
import argparse
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\t(?:(?:notrack|bnd|rep|lock|data16|cs)\s+)*(\S+)\s*(.*)$")
TARGET = re.compile(r"^[0-9a-f]+ <(.+?)(?:\+0x[0-9a-f]+)?>")


def output(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"walk.py: {' '.join(command)}: {problem}")


def demangled(names):
    names = list(names)
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, text.splitlines()))


class Code:
    """Every function of the program: what it calls directly, and its indirect calls and jumps."""

    def __init__(self, program):
        self.calls, self.indirect = {}, {}
        name = None
        for line in output("objdump", "-d", "--no-show-raw-insn", program).splitlines():
            if match := FUNCTION.match(line):
                name = match[1]
                self.calls.setdefault(name, set())
                self.indirect.setdefault(name, [])
            elif name and (match := INSTRUCTION.match(line)):
                self.instruction(name, match[1], match[2].split(" # ")[0].split("\t#")[0].strip(), line)

    def instruction(self, name, operation, operand, line):
        aarch64 = operation in ("blr", "br")
        if not (aarch64 or operation.startswith(("call", "jmp", "j", "bl", "b", "cb", "tb"))):
            return
        if aarch64 or operand.startswith("*"):
            self.indirect[name].append(" ".join(line.split()))
        elif match := TARGET.match(operand.split(",")[-1].strip()):
            if match[1] != name:
                self.calls[name].add(match[1])


def findings_in_symbols(program):
    found = []
    text = output("nm", "-C", program)
    for line in text.splitlines():
        name = re.sub(r"^[0-9a-f]*\s*\w ", "", line.strip())
        if re.match(r"(vtable|VTT|typeinfo( name)?) for ", name) and "herring::" in name:
            if not re.fullmatch(r"(vtable|typeinfo|typeinfo name) for herring::error", name):
                found.append(name)
        if "std::function<" in name or "std::_Function_" in name:
            found.append(name)
        if "__dynamic_cast" in name:
            found.append("dynamic_cast")
    return sorted(set(found))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--root", default="hot_", help="the prefix of the functions to start from")
    options.add_argument("--end", action="append", default=[], help="a function that ends a path, without its arguments")
    options.add_argument("--verbose", action="store_true", help="list every function that was reached")
    given = options.parse_args()

    code = Code(given.program)
    roots = sorted(name for name in code.calls if name.startswith(given.root) and "." not in name)
    if not roots:
        print(f"walk.py: {given.program} has no function whose name starts with {given.root}")
        return 2

    plain = demangled(code.calls)
    ends = {name for name, text in plain.items() if any(text.startswith(end + "(") for end in given.end)}
    reached, came_from, libraries, ended = set(), {}, set(), set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        if name in ends:
            ended.add(plain[name].split("(")[0])
            continue
        if name not in code.calls or name.endswith("@plt"):
            libraries.add(name.removesuffix("@plt"))
            continue
        reached.add(name)
        for called in code.calls[name]:
            came_from.setdefault(called, name)
            todo.append(called)

    readable = demangled(reached | libraries)

    def path(name):
        steps = [name]
        while steps[-1] not in roots:
            steps.append(came_from[steps[-1]])
        return " <- ".join(readable[step] for step in steps)

    total = 0
    for name in sorted(reached):
        for line in code.indirect[name]:
            total += 1
            print(f"INDIRECT: {line}\n    in {path(name)}")
    symbols = findings_in_symbols(given.program)
    for symbol in symbols:
        print(f"SYMBOL: {symbol}")
    if given.verbose:
        for name in sorted(reached):
            print(f"  reached {readable[name]}")
    print(f"{', '.join(roots)}: {len(reached)} functions, {total} indirect calls and jumps; "
          f"{len(symbols)} symbols of run-time dispatch; calls into libraries: "
          f"{', '.join(sorted(readable[name] for name in libraries)) or 'none'}"
          + (f"; left out: {', '.join(sorted(ended))}" if ended else ""))
    return 1 if total or symbols else 0


if __name__ == "__main__":
    sys.exit(main())
