#!/usr/bin/env python3
# herring: draws tables of bench/run as SVG: time of a call by size, peers beside it, and the bound.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/plot.py JSON OUT.svg --suite shm[,tcp] [--ranks 2,4] [--sizes 1024,65536] [--width 900]
#
# JSON is what bench/run writes (build/bench/results.json); suites are its TITLES in bench/report.py. A panel a suite and number
# of ranks, both axes logarithmic. Contenders differ in marker and stroke, not in colour alone. The line of figures below a panel is how many times
# as fast Herring is, from the caller's memory where that was measured, as the fastest peer; the grey line is what nothing can beat on that machine.
import argparse
import html
import json
import math

from report import TITLES

STYLES = {  # colour in light, in dark, stroke, marker
    "Herring, in place": ("#0b6e4f", "#5fd3a9", "", "circle"),
    "Herring, caller's memory": ("#1f5fa8", "#7fb2f0", "", "square"),
    "Open MPI": ("#b3541e", "#f0a060", "7 4", "triangle"),
    "Intel MPI": ("#9a1f3c", "#f08ba2", "9 3 2 3", "cross"),
    "Gloo": ("#7b2d8b", "#d6a0e6", "2 4", "diamond"),
}
MARKS = {
    "circle": '<circle cx="{x}" cy="{y}" r="4"/>',
    "square": '<rect x="{l}" y="{t}" width="8" height="8"/>',
    "triangle": '<path d="M{x} {t}l5 9h-10z"/>',
    "cross": '<path d="M{x} {y}m-5 -2h3v-3h4v3h3v4h-3v3h-4v-3h-3z"/>',
    "diamond": '<path d="M{x} {y}m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>',
}
CSS = """text { fill: #1f2933 } .dim { fill: #52606d } .grid { stroke: #cbd2d9; stroke-width: .7 } .bound { stroke: #7b8794; fill: none; stroke-width: 2; stroke-dasharray: 1 3 }
%s@media (prefers-color-scheme: dark) { text { fill: #e4e7eb } .dim { fill: #9aa5b1 } .grid { stroke: #3e4c59 }
%s}"""


def bytes_text(n):
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n % size == 0:
            return f"{n // size} {unit}"
    return f"{n:,} B"


def time_text(us):
    return f"{us:g} µs" if us < 1e3 else f"{us / 1e3:g} ms" if us < 1e6 else f"{us / 1e6:g} s"


def panel(rows, title, left, top, width, height):
    """One panel; `rows`: those of one suite and number of ranks, Herring's and its peers'."""
    sizes = sorted({r["bytes"] for r in rows})
    times = [r["median_us"] for r in rows] + [r["bound_us"] for r in rows if r["bound_us"]]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    x = lambda size: left + (width * (math.log2(size) - math.log2(sizes[0])) / max(1e-9, math.log2(sizes[-1]) - math.log2(sizes[0])))
    y = lambda us: top + height - height * (math.log10(us) - low) / (high - low)
    out = [f'<text x="{left}" y="{top - 14}" font-weight="600">{title}</text>']
    for decade in range(low, high + 1):
        at = y(10.0**decade)
        out.append(f'<path class="grid" d="M{left} {at:.1f}h{width}"/><text class="dim" x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{time_text(10.0**decade)}</text>')
    best = {}
    for r in sorted(rows, key=lambda r: "caller's" in r["what"]): # in place, unless there is a row of the caller's memory
        if "Herring" in r["what"] and r["times_best_peer"]:
            best[r["bytes"]] = r["times_best_peer"]
    for size in sizes:
        out.append(f'<text class="dim" x="{x(size):.1f}" y="{top + height + 18}" text-anchor="middle" font-size="10">{bytes_text(size)}</text>')
        if size in best:
            out.append(f'<text x="{x(size):.1f}" y="{top + height + 36}" text-anchor="middle" font-weight="600">{best[size]:.1f}×</text>')
    bound = sorted({(r["bytes"], r["bound_us"]) for r in rows if r["bound_us"]})
    if bound:
        out.append('<path class="bound" d="M' + "L".join(f"{x(s):.1f} {y(b):.1f}" for s, b in bound) + '"/>')
    for name, (_, _, dash, mark) in STYLES.items():
        points = sorted((r["bytes"], r["median_us"]) for r in rows if r["what"].split(" (")[0] == name)
        if not points:
            continue
        key = list(STYLES).index(name)
        out.append(f'<path class="l{key}" stroke-dasharray="{dash}" d="M' + "L".join(f"{x(s):.1f} {y(t):.1f}" for s, t in points) + '"/>')
        for s, t in points:
            out.append(f'<g class="m{key}">' + MARKS[mark].format(x=f"{x(s):.1f}", y=f"{y(t):.1f}", l=f"{x(s) - 4:.1f}", t=f"{y(t) - 4:.1f}") + f"<title>{html.escape(name)}, {bytes_text(s)}: {time_text(round(t, 1))}</title></g>")
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("json")
    parser.add_argument("out")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--ranks", default="")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--width", type=int, default=900)
    asked = parser.parse_args()
    suites = asked.suite.split(",")
    with open(asked.json) as file:
        rows = [r for r in json.load(file)["rows"] if r["suite"] in suites and not r["table"] and r["what"].split(" (")[0] in STYLES]
    if asked.sizes:
        rows = [r for r in rows if str(r["bytes"]) in asked.sizes.split(",")]
    counts = [int(n) for n in asked.ranks.split(",") if n] or sorted({r["ranks"] for r in rows})
    panels = [(f"{TITLES.get(suite, suite)}, {n} ranks", [r for r in rows if r["suite"] == suite and r["ranks"] == n]) for suite in suites for n in counts]
    if not all(of for _, of in panels) or not panels:
        parser.error(f"{asked.json} has no rows of suite {asked.suite} with {asked.ranks or 'any'} ranks")
    shown = [name for name in STYLES if any(r["what"].split(" (")[0] == name for _, of in panels for r in of)]
    each, height, top = asked.width / len(panels), 250, 84
    body = []
    for i, (title, of) in enumerate(panels):
        body += panel(of, title, 66 + i * each, top, each - 110, height)
    at = 16
    for name in [*shown, "bound"]:
        if name == "bound":
            body.append(f'<path class="bound" d="M{at} 40h30"/>')
        else:
            key = list(STYLES).index(name)
            body.append(f'<path class="l{key}" stroke-dasharray="{STYLES[name][2]}" d="M{at} 40h30"/><g class="m{key}">' + MARKS[STYLES[name][3]].format(x=at + 15, y=40, l=at + 11, t=36) + "</g>")
        body.append(f'<text x="{at + 38}" y="44">{html.escape(name)}</text>')
        at += 62 + 7 * len(name)
    colours = lambda which: "".join(f".l{i} {{ stroke: {s[which]}; fill: none; stroke-width: 1.8 }} .m{i} {{ fill: {s[which]} }}\n" for i, s in enumerate(STYLES.values()))
    title = html.escape(asked.title or "Time of an all-reduce by size, and how many times as fast as the fastest peer")
    with open(asked.out, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {asked.width} {top + height + 52}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="{title}">\n'
                   f"<style>{CSS % (colours(0), colours(1))}</style>\n" + f'<text x="16" y="20" font-size="14" font-weight="600">{title}</text>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    main()
