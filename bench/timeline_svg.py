#!/usr/bin/env python3
# herring: draws the last step of the first ranks of a timeline that write_chrome wrote, as an SVG for a document.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/timeline_svg.py FILE.json OUT.svg --title "what it was recorded on" [--ranks 2]
#
# A rank's tracks lie below each other, on one clock. What is an instant in the timeline (a message, a tensor that is ready, a copy
# whose end is not known) is a stroke.
import argparse
import html
import json

width, label, row, bar = 960, 150, 17, 13
colours = {
    "step": "#9aa5b1", "wait": "#d64545", "in flight": "#f0b429", "copies to the host": "#2680c2",
    "folds": "#3f9142", "sent": "#8719e0", "arrived": "#8719e0", "copies to the device": "#2cb1bc",
}


def last_step(events):
    """From the first tensor that any rank had ready in its last step to the end of the last wait."""
    begins = {e["pid"]: e["ts"] for e in events if e["name"] == "backward"}
    return min(begins.values()), max(e["ts"] + e["dur"] for e in events if e["name"] == "wait")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("timeline")
    parser.add_argument("picture")
    parser.add_argument("--title", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    with open(options.timeline) as file:
        events = json.load(file)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    shown = [e for e in events if e["ph"] in "Xi" and e["pid"] < options.ranks]
    begin, end = last_step(shown)
    scale = (width - label - 10) / (end - begin)

    body, y = [], 30
    text = lambda x, y, words, size=11: body.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}">{html.escape(words)}</text>')
    text(4, 16, options.title, 12)
    for rank in sorted({pid for pid, _ in names if pid < options.ranks}):
        text(4, y + 11, f"rank {rank}", 12)
        y += row
        for track in sorted(tid for pid, tid in names if pid == rank and tid > 0):
            name = names[rank, track]
            mine = [e for e in shown if (e["pid"], e["tid"]) == (rank, track) and begin <= e["ts"] <= end]
            if not mine:
                continue
            text(12, y + 11, name)
            for e in sorted(mine, key=lambda e: -e.get("dur", 0)):
                kind = "wait" if e["name"] == "wait" else name.rstrip(" 0123456789")
                x, long = label + (e["ts"] - begin) * scale, min(e.get("dur", 0), end - e["ts"]) * scale
                inner = e["name"].startswith("for rank")
                hint = html.escape(f'{e["name"]}: {e["ts"] - begin:.0f} us, {e.get("dur", 0):.0f} us long')
                body.append(f'<rect x="{x:.1f}" y="{y + (4 if inner else 0)}" width="{max(long, 1):.1f}" height="{bar - 8 if inner else bar}" '
                            f'fill="{"#ffffff" if inner else colours.get(kind, "#52606d")}" stroke="#ffffff" stroke-width="0.4"><title>{hint}</title></rect>')
            y += row
        y += 8
    for i in range(6):
        x = label + (width - label - 10) * i / 5
        body.append(f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{y}" stroke="#cbd2d9" stroke-width="0.5"/>')
        text(min(x, width - 50), y + 12, f"{(end - begin) * i / 5 / 1000:.2f} ms")
    with open(options.picture, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 18}" width="{width}" height="{y + 18}" '
                   f'font-family="system-ui, Helvetica, Arial, sans-serif" fill="#1f2933">\n<title>{html.escape(options.title)}</title>\n'
                   f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n")


if __name__ == "__main__":
    main()
