#!/usr/bin/env python3
# herring: draws the folders of include/herring as a house, from what they include: docs/floors.svg.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/floors/draw.py before=OLD_TREE now=. >docs/floors.svg      default: this tree alone
#
# A folder, with its subfolders, is a room; headers of the root are the roof. A room stands one floor above the highest room
# that it includes. Rooms that include each other in a circle have no such order: the one with the fewest includes against it
# is taken, and these are drawn in red.
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]herring/([^>"]+)[>"]')


def rooms_of(tree):
    """({room: (files, lines)}, {(from, to): includes})"""
    top, size, arrows = pathlib.Path(tree) / "include/herring", {}, {}
    for path in sorted(top.rglob("*.[hc]*")):
        room = path.relative_to(top).parts[0] if path.parent != top else "herring/"
        lines = path.read_text().splitlines()
        files, total = size.get(room, (0, 0))
        size[room] = files + 1, total + len(lines)
        for found in filter(None, map(INCLUDE.match, lines)):
            other = found[1].split("/")[0] if "/" in found[1] else "herring/"
            if other != room:
                arrows[room, other] = arrows.get((room, other), 0) + 1
    return size, arrows


def order_of(rooms, arrows):
    """Rooms, lowest first, with few arrows upwards: each is moved to its best place, until none gains."""
    order = sorted(rooms, key=lambda r: sum(n for (a, _), n in arrows.items() if a == r))
    improved, turn = True, 0
    while improved:
        improved, turn = False, turn + 1
        for room in sorted(rooms):
            rest = [r for r in order if r != room]
            # Pairs of rooms count before includes.
            against = sum((room, r) in arrows and 1000 + arrows[room, r] for r in rest)
            best, least = 0, against
            for at, r in enumerate(rest, 1):
                against += ((r, room) in arrows and 1000 + arrows[r, room]) - ((room, r) in arrows and 1000 + arrows[room, r])
                if against < least:
                    best, least = at, against
            here = order.index(room)
            now = sum((room, r) in arrows and 1000 + arrows[room, r] for r in order[here + 1 :])
            now += sum((r, room) in arrows and 1000 + arrows[r, room] for r in order[:here])
            if least < now or turn < 4 and least == now and best < here:  # room for others to move
                order, improved = rest[:best] + [room] + rest[best:], True
    return order


def draw(name, tree, left, width):
    size, arrows = rooms_of(tree)
    place = {room: i for i, room in enumerate(order_of(size, arrows))}
    floor = {}
    for room in sorted(place, key=place.get):
        floor[room] = 1 + max((floor[b] for (a, b) in arrows if a == room and place[b] < place[a]), default=-1)
    up = {pair for pair in arrows if place[pair[1]] > place[pair[0]]}
    floors, step = 1 + max(floor.values()), 34
    height, middle, out = 60 + 34 * floors, {}, []
    for level in range(floors):
        row = [room for room in sorted(place, key=place.get) if floor[room] == level]
        share = (width - 20) / len(row)
        for i, room in enumerate(row):
            wide, x, y = min(share - 6, 40 + size[room][1] ** 0.5), left + 10 + share * (i + 0.5), height - 30 - step * level
            middle[room] = x, y
            out.append(f'<g><title>{room}: {size[room][0]} files, {size[room][1]} lines</title><rect x="{x - wide / 2:.0f}" y="{y - 10:.0f}" '
                       f'width="{wide:.0f}" height="20" rx="3"/><text x="{x:.0f}" y="{y + 4:.0f}" textLength="{min(wide - 6, 6.2 * len(room)):.0f}" '
                       f'lengthAdjust="spacingAndGlyphs">{room}</text></g>')
    lines = [f'<path class="{"up" if pair in up else "down"}" d="M{middle[pair[0]][0]:.0f} {middle[pair[0]][1]:.0f}L{middle[pair[1]][0]:.0f} {middle[pair[1]][1]:.0f}"/>'
             for pair in sorted(arrows, key=lambda p: p in up)]
    files, total = (sum(s[i] for s in size.values()) for i in (0, 1))
    title = f"{name}: {files} files, {total:,} lines; {len(size)} rooms, {floors} floors, {len(arrows)} arrows, {len(up)} upwards"
    return height, [f'<text class="title" x="{left + width / 2:.0f}" y="20">{title}</text>', *lines, *out]


if __name__ == "__main__":
    here = str(pathlib.Path(__file__).resolve().parents[2])
    panels = [panel.split("=", 1) for panel in sys.argv[1:]] or [["now", here]]
    wide, drawn = 620, []
    for i, (name, tree) in enumerate(panels):
        drawn.append(draw(name, tree, i * wide, wide))
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide * len(panels)} {max(h for h, _ in drawn)}" font-family="sans-serif" font-size="10">')
    print("<style>text{text-anchor:middle;fill:#222}.title{font-size:13px}rect{fill:#eef3f8;stroke:#456}.down{stroke:#8aa;stroke-width:.5;opacity:.6}"
          ".up{stroke:#c22;stroke-width:1.6}svg{background:#fff}</style>")
    tallest = max(h for h, _ in drawn)
    for height, panel in drawn:
        print(f'<g transform="translate(0 {tallest - height})">', *panel, "</g>", sep="\n")
    print("</svg>")
