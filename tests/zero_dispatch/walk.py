#!/usr/bin/env python3
# herring: walks the machine code that hot functions reach, and counts what is dispatched at run time.
# SPDX-License-Identifier: Apache-2.0
"""walk.py PROGRAM [--root PREFIX] [--behind REGEX] [--end FUNCTION ...] [--known FILE=PLACES ...] [--verbose]

Follows every direct call and jump from the functions whose names start with PREFIX [hot_] through all code of the
program itself, and counts indirect calls and indirect jumps (a tail call through a pointer is a jump; compile with
-fno-jump-tables, so that a switch is none). Library functions (memcpy@plt, ...) are the end of a path: they are listed.
--end names functions that are left out, with all that only they reach: announcing a failure, or asking for one after a
deadline, is no hot path.

A library of templates may dispatch by itself. --known names a source file of it (the end of its path) and in how many
places, at most, it may do so: a place is a line of source, found by the program's line table (-g1), into however many
functions the compiler copied it. The places are listed; one more, and any in another file, is a finding. --behind
matches the names of functions that such a call leads to: the walk starts from them, too.

Also looks at the whole program's symbols: no vtable or typeinfo of herring:: but that of herring::error and
those of a std::shared_ptr's count, no std::function, no dynamic_cast (but in Boost's own functions, if any --known is given).

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


def without_target(text):
    """Names without the inline namespace of the version and flags: base/target.hpp."""
    return re.sub(r"herring::v\d+_\d+\w*::", "herring::", text)


def demangled(names):
    names = list(names)
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, without_target(text).splitlines()))


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
                self.instruction(name, match[1], match[2].split(" # ")[0].split("\t#")[0].strip(), line.strip())

    def instruction(self, name, operation, operand, line):
        aarch64 = operation in ("blr", "br")
        if not (aarch64 or operation.startswith(("call", "jmp", "j", "bl", "b", "cb", "tb"))):
            return
        if aarch64 or operand.startswith("*"):
            self.indirect[name].append(" ".join(line.split()))
        elif match := TARGET.match(operand.split(",")[-1].strip()):
            if match[1] != name:
                self.calls[name].add(match[1])


def places(program, addresses):
    """For each address the line of source that it is from, FILE:LINE, of the innermost function if some are inlined."""
    found = {}
    if addresses:
        address = None
        for line in output("addr2line", "-a", "-i", "-e", program, *addresses).splitlines():
            if re.fullmatch(r"0x[0-9a-f]+", line):
                address = int(line, 16)
            elif address is not None:
                found.setdefault(address, re.sub(r" \(discriminator .*", "", line))
    return found


def source_text(place):
    file, _, line = place.rpartition(":")
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read().splitlines()[int(line) - 1].strip()
    except (OSError, IndexError, ValueError):
        return "?"


def findings_in_symbols(program, code, names, ours_only):
    found = []
    text = without_target(output("nm", "-C", program))
    for line in text.splitlines():
        name = re.sub(r"^[0-9a-f]*\s*\w ", "", line.strip())
        if re.match(r"(vtable|VTT|typeinfo( name)?) for ", name) and "herring::" in name:
            if re.match(r".* for std::_Sp_counted_", name):  # of a std::shared_ptr; where it is let go is an indirect call
                continue
            if not re.fullmatch(r"(vtable|typeinfo|typeinfo name) for herring::error", name):
                found.append(name)
        if "std::function<" in name or "std::_Function_" in name:
            found.append(name)
        if "__dynamic_cast" in name:
            users = [names[f] for f, called in code.calls.items() if any(c.startswith("__dynamic_cast") for c in called)]
            if ours_only:
                users = [user for user in users if not user.startswith("boost::")] if users else [name]
            if users or not ours_only:
                found.append("dynamic_cast in " + (", ".join(users) or "?"))
    return sorted(set(found))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--root", default="hot_", help="the prefix of the functions to start from")
    options.add_argument("--behind", default="", help="also start from the functions whose readable names match this")
    options.add_argument("--known", action="append", default=[], metavar="FILE=PLACES",
                         help="a library's file, and how many of its lines may call indirectly")
    options.add_argument("--end", action="append", default=[], help="a function that ends a path, without its arguments")
    options.add_argument("--verbose", action="store_true", help="list every function that was reached")
    given = options.parse_args()

    code = Code(given.program)
    roots = sorted(name for name in code.calls if name.startswith(given.root) and "." not in name)
    if not roots:
        print(f"walk.py: {given.program} has no function whose name starts with {given.root}")
        return 2

    plain = demangled(code.calls)
    behind = sorted(name for name, text in plain.items() if given.behind and re.search(given.behind, text))
    if given.behind and not behind:
        print(f"walk.py: {given.program} has no function that matches {given.behind}")
        return 2
    ends = {name for name, text in plain.items() if any(text.startswith(end + "(") for end in given.end)}
    reached, came_from, libraries, ended = set(), {}, set(), set()
    todo = roots + behind
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
        while steps[-1] not in roots and steps[-1] not in behind:
            steps.append(came_from[steps[-1]])
        return " <- ".join(readable[step] for step in steps)

    known = {file: int(most) for file, _, most in (entry.rpartition("=") for entry in given.known)}
    seen = {file: {} for file in known}  # place -> how many instructions
    indirect = [(line, name) for name in sorted(reached) for line in code.indirect[name]]
    lines = places(given.program, [line.split(":")[0] for line, _ in indirect]) if known else {}
    total = 0
    for line, name in indirect:
        place = lines.get(int(line.split(":")[0], 16), "?")
        file = next((file for file in known if place.rpartition(":")[0].endswith("/" + file)), None)
        if file is not None:
            seen[file][place] = seen[file].get(place, 0) + 1
            continue
        total += 1
        print(f"INDIRECT: {line}{' at ' + place if known else ''}\n    in {path(name)}")
    for file, most in known.items():
        for place, count in sorted(seen[file].items()):
            print(f"KNOWN: {file}:{place.rpartition(':')[2]} ({count} times in machine code): {source_text(place)}")
        if len(seen[file]) > most:
            total += len(seen[file]) - most
            print(f"INDIRECT: {file} calls in {len(seen[file])} places, {most} are known")
    symbols = findings_in_symbols(given.program, code, plain, bool(known))
    for symbol in symbols:
        print(f"SYMBOL: {symbol}")
    if given.verbose:
        for name in sorted(reached):
            print(f"  reached {readable[name]}")
    allowed = (f" beside the {sum(map(len, seen.values()))} known places of {sum(known.values())} allowed" if known else "")
    print(f"{', '.join(roots)}: {len(reached)} functions, {total} indirect calls and jumps{allowed}; "
          f"{len(symbols)} symbols of run-time dispatch; calls into libraries: "
          f"{', '.join(sorted(readable[name] for name in libraries)) or 'none'}"
          + (f"; left out: {', '.join(sorted(ended))}" if ended else ""))
    return 1 if total or symbols else 0


if __name__ == "__main__":
    sys.exit(main())
