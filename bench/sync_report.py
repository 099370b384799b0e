#!/usr/bin/env python3
# herring: tables and pictures of sync_bench: what each policy exchanges, saves, and takes to reach an accuracy.
# SPDX-License-Identifier: Apache-2.0
#
#   sync_report.py LINES.jsonl FOLDER     prints a table for each network, writes FOLDER/sync-NETWORK.svg
#
# The accuracy to reach is that which every step ends with, less 0.5 points. Everything is a median over seeds; a run that does not
# reach it counts as infinitely long.
import json
import math
import statistics
import sys
from pathlib import Path

COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8a5fbf", "#e08e0b", "#5b6770", "#c06c84", "#00798c", "#a0522d"]


def read(path):
    networks = {}
    with open(path) as file:
        for line in file:
            run = json.loads(line)
            if run.get("suite") == "sync":
                networks.setdefault(run["network"], {}).setdefault(run["policy"], []).append(run)
    return networks


def final(run):
    """What a run ends with: of its last tests, so that one image more or less does not count."""
    return statistics.median(point[2] for point in run["curve"][-4:])


def first(run, accuracy):
    """Steps, seconds and exchanges to an accuracy."""
    for step, seconds, reached, _, exchanged in run["curve"]:
        if reached >= accuracy:
            return step, seconds, exchanged
    return math.inf, math.inf, math.inf


def median(values):
    return statistics.median(values)


def text(value, digits):
    return "never" if math.isinf(value) else f"{value:.{digits}f}"


def table(network, policies):
    base = policies["every_step"]
    target = median(final(run) for run in base) - 0.005
    steps_of_base = median(first(run, target)[0] for run in base)
    seconds_of_base = median(first(run, target)[1] for run in base)
    print(f"\n{network}: {len(base)} seeds, {base[0]['steps']} steps; to reach: {target * 100:.2f} %")
    print(f"{'policy':<20}{'exchanged':>10}{'MB sent':>9}{'saved':>7}{'drift':>8}{'ends with':>11}"
          f"{'steps to it':>13}{'exchanges':>11}{'at most':>9}{'seconds':>9}{'times as fast':>15}")
    for policy, runs in policies.items():
        sent, sent_of_base = (median(run["bytes_sent"] for run in of) for of in (runs, base))
        steps, seconds, exchanges = (median(first(run, target)[n] for run in runs) for n in (0, 1, 2))
        # Were exchanges all that takes time: so many times as fast as every step.
        most = "-" if math.isinf(exchanges) or exchanges == 0 else f"{steps_of_base / exchanges:.2f}"
        print(f"{policy:<20}{median(run['exchanged'] / run['steps'] for run in runs) * 100:>9.1f}%{sent / 1e6:>9.1f}"
              f"{(1 - sent / sent_of_base) * 100:>6.0f}%{median(run['drift'] for run in runs):>8.3f}"
              f"{median(final(run) for run in runs) * 100:>10.2f}%{text(steps, 0):>13}{text(exchanges, 0):>11}{most:>9}{text(seconds, 2):>9}"
              f"{text(seconds_of_base / seconds, 2) if seconds < math.inf else '-':>15}")
    break_even(policies, target, steps_of_base)


def break_even(policies, target, steps_of_base):
    """c, x, n + v, s and m of docs/writing-a-policy.md, as measured, and the side of the line."""
    each = lambda policy, what: median(run[what] / run["steps"] for run in policies[policy])
    compute = each("every_step", "compute")
    exchange = each("every_step", "ready") + each("every_step", "wait") + each("every_step", "settle")
    print(f"a step computes for c = {compute * 1e3:.2f} ms and exchanges for x = {exchange * 1e3:.2f} ms")
    for policy, runs in policies.items():
        if policy in ("every_step", "never"):
            continue
        share = median(run["exchanged"] / run["steps"] for run in runs)
        more = median(first(run, target)[0] for run in runs) / steps_of_base
        decides = each(policy, "ready") + each(policy, "wait")
        skipping = more * (compute + decides + share * exchange)
        if math.isinf(more):
            print(f"  {policy:<20} does not reach the accuracy: skipping does not pay")
            continue
        side = "pays" if skipping < compute + exchange else "does not pay"
        least = (more - 1) * compute + more * decides
        line = least / (1 - more * share) if more * share < 1 else math.inf
        print(f"  {policy:<20} n + v = {decides * 1e3:.2f} ms, s = {share:.2f}, m = {more:.2f}: "
              f"m (c + n + v + s x) = {skipping * 1e3:.2f} ms against {(compute + exchange) * 1e3:.2f} ms: {side}; "
              f"it would where an exchange takes more than {text(line * 1e3, 2)} ms")


def picture(network, policies, path):
    width, height, left, bottom = 860, 420, 60, 50
    # The run of median final accuracy stands for its policy.
    chosen = {policy: sorted(runs, key=final)[len(runs) // 2] for policy, runs in policies.items()}
    seconds = max(run["curve"][-1][1] for run in chosen.values())
    low = 0.5
    x = lambda s: left + (width - left - 190) * s / seconds
    y = lambda a: height - bottom - (height - bottom - 30) * (max(a, low) - low) / (1 - low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           f'<text x="{left}" y="18" font-weight="600">accuracy of the mean model over seconds of training, {network}</text>']
    for percent in range(50, 101, 10):
        out.append(f'<line x1="{left}" x2="{width - 190}" y1="{y(percent / 100):.1f}" y2="{y(percent / 100):.1f}" stroke="#dddddd"/>'
                   f'<text x="{left - 8}" y="{y(percent / 100) + 4:.1f}" text-anchor="end">{percent} %</text>')
    for n in range(6):
        out.append(f'<text x="{x(seconds * n / 5):.1f}" y="{height - bottom + 20}" text-anchor="middle">'
                   f'{seconds * n / 5:.2g} s</text>')
    for n, (policy, run) in enumerate(chosen.items()):
        points = " ".join(f"{x(p[1]):.1f},{y(p[2]):.1f}" for p in run["curve"])
        colour = COLOURS[n % len(COLOURS)]
        label = policy.replace("<", "&lt;").replace(">", "&gt;")
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        out.append(f'<line x1="{width - 180}" x2="{width - 160}" y1="{40 + 20 * n}" y2="{40 + 20 * n}" stroke="{colour}" '
                   f'stroke-width="3"/><text x="{width - 152}" y="{44 + 20 * n}">{label}</text>')
    out.append("</svg>\n")
    Path(path).write_text("\n".join(out))
    print(f"picture: {path}")


def main():
    networks = read(sys.argv[1])
    for network, policies in networks.items():
        table(network, policies)
        never = median(final(run) for run in policies["never"])
        print(f"exchanging nothing ends with {never * 100:.2f} %"
              + ("" if never < 0.95 else ": NOT below 95 %, so this data shows nothing"))
        picture(network, policies, Path(sys.argv[2]) / f"sync-{network.replace(' ', '-').replace('/', '-')}.svg")


main()
