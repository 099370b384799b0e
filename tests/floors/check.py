#!/usr/bin/env python3
# herring: draws the includes of include/herring and fails on one that goes up a floor.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/floors/check.py [ROOT]       ROOT: a tree with include/herring and tests/floors/{floors,exceptions}.txt; default: this one
#   tests/floors/check.py --table      the table of floors for docs/design.md
#   tests/floors/check.py --self-test  small trees with one fault each must fail, and say which
#
# Fails on: an include of a higher floor; an include of a neighbour on the same floor (`a/ | b/`); a cycle of includes; a file
# that no floor claims; a claim of a file that does not exist; a folder of which a part stands on another floor; a file *_impl.hpp with no header, or with two, or that src.hpp leaves out; an exception that
# no include needs any more.
import pathlib
import re
import sys
import tempfile

most_exceptions = 6
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]herring/([^>"]+)[>"]')


def read_floors(path):
    """[(floor, [[[claim, ...] of each room] of each floor within it])], lowest first."""
    floors = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, claims = line.split(":", 1)
            floors.append((name.strip(), [[room.split() for room in part.split("|")] for part in claims.split("<")]))
    return floors


def read_exceptions(path):
    """{(from, to): reason}. A line is `from -> to: reason`."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                arrow, reason = line.split(":", 1)
                source, target = arrow.split("->")
                found[source.strip(), target.strip()] = reason.strip()
    return found


def check(root):
    """(what is wrong, what was counted)"""
    headers = root / "include/herring"
    floors, wrong = read_floors(root / "tests/floors/floors.txt"), []
    names, claims, whole = [], {}, {}  # of each height; claim → (height, room); folder → its floor
    for name, parts in floors:
        for rooms in parts:
            for number, room in enumerate(rooms):
                for claim in room:
                    if claim in claims:
                        wrong.append(f"{claim} is claimed twice, by {names[claims[claim][0]]} and {name}")
                    claims[claim] = (len(names), number)
                    if not (headers / claim).exists():
                        wrong.append(f"floor {name} claims {claim}, which does not exist")
                    folder = claim.split("/")[0]
                    if "/" in claim and whole.setdefault(folder, name) != name:
                        wrong.append(f"{claim}: {folder}/ is a floor, {whole[folder]}; a part of it stands on {name}")
            names.append(name)

    files = sorted(str(f.relative_to(headers)) for f in headers.rglob("*") if f.suffix in (".hpp", ".h", ".cuh"))
    includes = {f: [] for f in files}
    for f in files:
        for number, line in enumerate((headers / f).read_text().splitlines(), 1):
            if found := INCLUDE.match(line):
                includes[f].append((number, found.group(1)))

    place, owner = {}, {}  # file → (height, room); x_impl.hpp → its header
    for f in files:
        if f.endswith("_impl.hpp"):
            by = [g for g in files if g != "src.hpp" and not g.endswith("_impl.hpp") and any(t == f for _, t in includes[g])]
            if len(by) == 1:
                owner[f] = by[0]
            else:
                wrong.append(f"{f} is included by {' and '.join(by) or 'no header'}: a file *_impl.hpp has one header")
    for f in files:
        header = owner.get(f, f)
        fitting = [c for c in claims if header == c or (c.endswith("/") and header.startswith(c))]
        if fitting:
            place[f] = claims[max(fitting, key=len)]
        elif not f.endswith("_impl.hpp"):
            wrong.append(f"{f}: no floor claims it")

    if "src.hpp" in includes:
        compiled = {t for _, t in includes["src.hpp"]}
        wrong += [f"src.hpp does not include {f}" for f in files if f.endswith("_impl.hpp") and f not in compiled]

    exceptions = read_exceptions(root / "tests/floors/exceptions.txt")
    needed, arrows = set(), 0
    for f in files:
        for number, target in includes[f]:
            if target not in includes:
                wrong.append(f"{f}:{number} includes {target}, which does not exist")
            elif f in place and target in place:
                arrows += 1
                (from_height, from_room), (to_height, to_room) = place[f], place[target]
                if to_height < from_height or (to_height == from_height and to_room == from_room):
                    continue
                if (f, target) in exceptions:
                    needed.add((f, target))
                    continue
                how = "up" if to_height > from_height else "aside, into another room"
                wrong.append(f"{f}:{number} includes {target}, an arrow {how}: {names[from_height]} -> {names[to_height]}")
    for (f, target), reason in exceptions.items():
        if (f, target) not in needed:
            wrong.append(f"exceptions.txt: {f} -> {target} is not needed any more: delete the line")
        if not reason:
            wrong.append(f"exceptions.txt: {f} -> {target} has no reason")
    if len(exceptions) > most_exceptions:
        wrong.append(f"exceptions.txt: {len(exceptions)} includes go up, where {most_exceptions} may")
    wrong += cycles({f: {owner.get(t, t) for _, t in includes[f] if t in includes} for f in files}, owner)
    return wrong, f"{len(files)} files on {len(floors)} floors, {arrows} includes, {len(exceptions)} exceptions"


def cycles(graph, owner):
    """Includes that come back to where they started. A file x_impl.hpp and its header count as one."""
    merged = {}
    for f, targets in graph.items():
        merged.setdefault(owner.get(f, f), set()).update(targets)
    state, found = {}, []

    def visit(f, path):
        state[f] = "open"
        for t in sorted(merged.get(f, ())):
            if t == f:
                continue
            if state.get(t) == "open":
                found.append("a cycle of includes: " + " -> ".join(path[path.index(t):] + [t]))
            elif t not in state:
                visit(t, path + [t])
        state[f] = "done"

    for f in sorted(merged):
        if f not in state:
            visit(f, [f])
    return found


def table(floors):
    rows = ["| floor | folders and files |", "|---|---|"]
    for name, parts in reversed(floors):
        parts_text = ' < '.join(r' \| '.join(' '.join(f'`{c}`' for c in room) for room in rooms) for rooms in parts)
        rows.append(f'| {name} | {parts_text} |')
    return "\n".join(rows)


def self_test():
    """How many small trees are judged otherwise than the sentence beside them says."""
    good = {"base/a.hpp": [], "mid/x/x.hpp": ["base/a.hpp"], "mid/y/y.hpp": ["base/a.hpp"], "top.hpp": ["mid/x/x.hpp", "mid/y/y.hpp"],
            "mid/x/x_impl.hpp": ["mid/x/x.hpp", "base/a.hpp"]}
    good["mid/x/x.hpp"] = ["base/a.hpp", "mid/x/x_impl.hpp"]
    floors = "base: base/\nmid: mid/x/ | mid/y/\ntop: top.hpp\n"
    cases = [
        ("nothing", {}, floors, "", None),
        ("up", {"base/a.hpp": ["mid/y/y.hpp"]}, floors, "", "base/a.hpp:1 includes mid/y/y.hpp, an arrow up: base -> mid"),
        ("up, from impl", {"mid/x/x_impl.hpp": ["mid/x/x.hpp", "top.hpp"]}, floors, "", "mid/x/x_impl.hpp:2 includes top.hpp, an arrow up: mid -> top"),
        ("aside", {"mid/y/y.hpp": ["mid/x/x.hpp"]}, floors, "", "mid/y/y.hpp:1 includes mid/x/x.hpp, an arrow aside, into another room"),
        ("excepted", {"mid/y/y.hpp": ["mid/x/x.hpp"]}, floors, "mid/y/y.hpp -> mid/x/x.hpp: shares its table", None),
        ("no reason", {"mid/y/y.hpp": ["mid/x/x.hpp"]}, floors, "mid/y/y.hpp -> mid/x/x.hpp:", "mid/y/y.hpp -> mid/x/x.hpp has no reason"),
        ("not needed", {}, floors, "mid/y/y.hpp -> mid/x/x.hpp: once", "mid/y/y.hpp -> mid/x/x.hpp is not needed any more"),
        ("an exception of what is allowed", {}, floors, "top.hpp -> mid/x/x.hpp: why not", "top.hpp -> mid/x/x.hpp is not needed any more"),
        ("too many exceptions", {f"base/{n}.hpp": ["top.hpp"] for n in range(7)}, floors, "".join(f"base/{n}.hpp -> top.hpp: why not\n" for n in range(7)),
         "exceptions.txt: 7 includes go up, where 6 may"),
        ("unclaimed", {"new/z.hpp": []}, floors, "", "new/z.hpp: no floor claims it"),
        ("claims nothing", {}, floors + "roof: roof.hpp\n", "", "floor roof claims roof.hpp, which does not exist"),
        ("a folder on two floors", {"mid/z.hpp": []}, floors + "roof: mid/z.hpp\n", "", "mid/z.hpp: mid/ is a floor, mid; a part of it stands on roof"),
        ("floors within a folder", {"mid/z.hpp": ["mid/x/x.hpp"]}, floors.replace("mid/y/", "mid/y/ < mid/"), "", None),
        ("up, within a folder", {"mid/z.hpp": [], "mid/x/x.hpp": ["mid/z.hpp", "mid/x/x_impl.hpp"]}, floors.replace("mid/y/", "mid/y/ < mid/"), "",
         "mid/x/x.hpp:1 includes mid/z.hpp, an arrow up: mid -> mid"),
        ("twice", {}, floors + "roof: top.hpp\n", "", "top.hpp is claimed twice, by top and roof"),
        ("a file before its folder", {"mid/x/low.hpp": [], "mid/y/y.hpp": ["mid/x/low.hpp"]}, floors.replace("mid: ", "mid: mid/x/low.hpp < "), "", None),
        ("cycle", {"base/a.hpp": ["base/b.hpp"], "base/b.hpp": ["base/a.hpp"]}, floors, "", "a cycle of includes: base/a.hpp -> base/b.hpp -> base/a.hpp"),
        ("impl of nothing", {"mid/z_impl.hpp": []}, floors, "", "mid/z_impl.hpp is included by no header"),
        ("not compiled", {"src.hpp": ["base/a.hpp"]}, floors.replace("top.hpp", "top.hpp src.hpp"), "", "src.hpp does not include mid/x/x_impl.hpp"),
        ("does not exist", {"base/a.hpp": ["base/gone.hpp"]}, floors, "", "base/a.hpp:1 includes base/gone.hpp, which does not exist"),
    ]
    failed = 0
    for name, changes, floors_text, exceptions, sentence in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, includes in (good | changes).items():
                path = root / "include/herring" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f'#include "herring/{i}"\n' for i in includes))
            (root / "tests/floors").mkdir(parents=True)
            (root / "tests/floors/floors.txt").write_text(floors_text)
            (root / "tests/floors/exceptions.txt").write_text(exceptions)
            wrong, _ = check(root)
        if (sentence is None and wrong) or (sentence is not None and not any(sentence in w for w in wrong)):
            failed += 1
            print(f"FAILED: floors: the tree «{name}» wants «{sentence}», printed: {wrong}")
    if not failed:
        print(f"floors: {len(cases)} small trees are judged as they must be")
    return failed


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    option = sys.argv[1] if len(sys.argv) > 1 else ""
    if option == "--self-test":
        return self_test() > 0
    if option == "--table":
        print(table(read_floors(here / "tests/floors/floors.txt")))
        return 0
    root = pathlib.Path(option) if option else here
    wrong, counted = check(root)
    documented = root / "docs/design.md"
    if documented.exists() and table(read_floors(root / "tests/floors/floors.txt")) not in documented.read_text():
        wrong.append("docs/design.md: its table of floors is not tests/floors/check.py --table")
    for line in wrong:
        print(f"FAILED: floors: {line}")
    print(f"floors: {counted}" + (", nothing goes up" if not wrong else ""))
    return len(wrong) > 0


sys.exit(main())
