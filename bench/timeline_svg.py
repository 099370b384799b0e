#!/usr/bin/env python3
# herring: draws the last step of the first ranks of a timeline that write_perfetto wrote, as an SVG for a document.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/timeline_svg.py FILE.pftrace OUT.svg --title "what it was recorded on" [--ranks 2]
#
# A rank's tracks lie below each other, on one clock. What is an instant in the timeline (a message, a tensor that is ready, a copy
# whose end is not known) is a stroke.
import argparse
import html

width, label, row, bar = 960, 150, 17, 13
colours = {
    "step": "#9aa5b1", "wait": "#d64545", "in flight": "#f0b429", "copies to the host": "#2680c2",
    "folds": "#3f9142", "sent": "#8719e0", "arrived": "#8719e0", "copies to the device": "#2cb1bc",
}


def fields(message):
    """Number and value of each field of a protobuf message, for the three encodings that herring/trace/perfetto.hpp writes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (message[at - 1] & 0x7F) << shift
            shift += 7
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = 8 if key & 7 == 1 else varint()
            at += size
            yield key >> 3, message[at - size:at]


def read(trace):
    """Names of tracks by their numbers, rank and place, and their slices and instants; times in us."""
    names, events, within = {}, [], {}
    for _, packet in fields(trace):
        packet = dict(fields(packet))
        if 60 in packet:  # track_descriptor: uuid, name, place
            track = dict(fields(packet[60]))
            names[track[1] // 65536 - 1, track.get(12, 0)] = track.get(2, b"").decode()
            continue
        event, ts = dict(fields(packet[11])), packet[8] / 1000  # type, track, name
        rank, place = event[11] // 65536 - 1, event[11] % 65536
        if event[9] == 2:  # an end, of the innermost slice of its track
            last = within[rank, place].pop()
            last["dur"] = ts - last["ts"]
            continue
        events.append({"pid": rank, "tid": place, "name": event[23].decode(), "ts": ts})
        if event[9] == 1:
            within.setdefault((rank, place), []).append(events[-1])
    return names, events


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
    with open(options.timeline, "rb") as file:
        names, events = read(file.read())
    shown = [e for e in events if e["pid"] < options.ranks]
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
