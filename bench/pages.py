#!/usr/bin/env python3
# herring: writes the tables of pages anew from what bench/run measured.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/pages.py FOLDER JSON…
#
# FOLDER: docs/measurements. JSON: what runs of bench/run wrote (build/bench/results.json); of a point that several have, the last counts.
# A table stands between <!-- bench: KIND SUITE… --> and <!-- end -->: a kind of KINDS below, suites of TITLES in report.py or, without any, all.
# A table for which no file has a row stays as it is. Prints the pages that are others now.
import glob
import json
import os
import re
import sys

from ensemble_report import AFTER_SEND, TAIL, TIMES
from report import TITLES, bytes_text, judge, place, quantile, us

PLACES = {"shm": "shared memory", "models": "shared memory", "tcp": "TCP on loopback", "unshaped": "four hosts", "1gbit": "hosts at 1 Gbit/s", "memory": "shared memory", "loopback": "TCP on loopback"}


def grid(head, lines):
    """A table of lines, {label: {column: cell}}, whose columns are those of `head`."""
    return [f"| | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"] + [
        "| " + re.sub(r"\w+<\w+>", r"`\g<0>`", label) + f" | {' | '.join(cells.get(c, '') for c in head)} |" for label, cells in lines.items()]


def times_of(rows, suites):
    """Medians: a row a contender, a column a size, or a list of gradients and a number of ranks."""
    parts = {suite: suite.partition("-")[::2] for suite in suites}  # place, operation
    same_operation = len({operation for _, operation in parts.values()}) == 1
    prefix = {suite: "" if len(suites) == 1 else PLACES.get(name := place if same_operation else operation or place, name) for suite, (place, operation) in parts.items()}
    column = lambda r: f"{r['table']}, {r['ranks']} ranks" if r["table"] else bytes_text(r["bytes"])
    label = lambda r, what: ", ".join(filter(None, ("" if r["table"] else f"{r['ranks']} ranks", prefix[r["suite"]], what)))
    lines, rows = {}, sorted(rows, key=lambda r: (0 if r["table"] else r["ranks"], suites.index(r["suite"])))
    for i, r in enumerate(rows):
        ratios = [f"{ratio:.2g}×" for ratio in (r["times_best_peer"], r["times_best_row"]) if ratio]
        line = lines.setdefault(label(r, r["what"].split(" (")[0].removeprefix("Herring, ")), {})
        line[column(r)] = us(r["median_us"]) + (f" ({', '.join(ratios)})" if ratios else "") + "*" * r["disturbed"] + " **wrong**" * bool(r["wrong_elements"])
        if i + 1 < len(rows) and label(rows[i + 1], "") == label(r, ""):
            continue
        if bound := [q for q in rows if label(q, "") == label(r, "") and q["bound_us"]]:
            lines[label(r, "bound")] = {column(q): us(q["bound_us"]) for q in bound}
    return grid(list(dict.fromkeys(map(column, sorted(rows, key=lambda r: (r["table"], r["table"] and r["ranks"], r["bytes"]))))), lines)


def cpu_of(rows, suites):
    """CPU seconds of Herring's rows, in times of the fastest peer's."""
    lines = {}
    for r in sorted(rows, key=lambda r: (suites.index(r["suite"]), r["ranks"], r["what"])):
        if r["cpu_of_best_peer"]:
            lines.setdefault(f"{TITLES[r['suite']]}, {r['ranks']} ranks, {r['what'].removeprefix('Herring, ')}", {})[bytes_text(r["bytes"])] = f"{r['cpu_of_best_peer']:.2g}"
    return grid([bytes_text(n) for n in sorted({r["bytes"] for r in rows})], lines)


def forms_of(lines, _):
    """One tensor in place, as a buffer, and of the caller's: medians over launches, in times of the step in place of the same launch."""
    middle = lambda ranks, size, what, key: quantile(sorted(l[key] for l in lines if (l["ranks"], l["bytes"], l["what"]) == (ranks, size, what)), 0.5)
    rows = {}
    for ranks, size, what in dict.fromkeys((l["ranks"], l["bytes"], l["what"]) for l in sorted(lines, key=lambda l: (l["ranks"], l["bytes"]))):
        in_place = middle(ranks, size, "step, in place", "us")
        share = middle(ranks, size, what, "bound_us") / in_place if what == "mesh bound" else middle(ranks, size, what, "share")
        rows.setdefault(f"{ranks} ranks, " + what.replace("mesh bound", "sockets alone"), {})[bytes_text(size)] = us(in_place) + " µs" if what == "step, in place" else f"{share:.2f}"
    return grid([bytes_text(n) for n in sorted({l["bytes"] for l in lines})], rows)


def missed(judged, is_missed, reached, wanted):
    """The rows that do not reach their target, and how many do."""
    lines = {place(r): {"reached": reached(r), "aimed at": wanted(r)} for r in judged if is_missed(r)}
    return [f"{len(judged) - len(lines)} of {len(judged)} reach it.", ""] + grid(["reached", "aimed at"], lines)


def missed_speed(rows, _):
    return missed([r for r in rows if r["met"] is not None], lambda r: not r["met"], lambda r: r["reached"], lambda r: r["target"])


def missed_cpu(rows, _):
    return missed([r for r in rows if r["cpu_of_best_peer"]], lambda r: r["cpu_of_best_peer"] > 1,
                  lambda r: f"{r['cpu_of_best_peer']:.2f}× the CPU of {r['best_peer'].split(' (')[0]}", lambda r: "≤ 1×")


MODELS = {"resnet50": "ResNet-50", "bert_large": "BERT-large"}
LISTS = {  # of the JSON: what a line is called, and its columns
    "training": (lambda l: f"{MODELS.get(l['table'], l['table'])}, {l['ranks']} ranks" + (f", {l['peer']}" if "peer" in l else ""), {
        "at the sum, ms": lambda l: f"{l['fused_us'] / 1e3:.1f}" if "fused_us" in l else "",
        "then by every rank, ms": lambda l: f"{l['twin_us'] / 1e3:.1f}",
        "times as fast": lambda l: f"{l['ratio']:.2f}" if "ratio" in l else ""}),
    "optimizers": (lambda l: f"{PLACES.get(l['network'], l['network'])}, {l['workers']} workers{', ' + str(l['servers']) + ' servers' if l['servers'] else ''}, {l['what']}", {
        "ms a step": lambda l: f"{l['us'] / 1e3:.1f}", "in times of adamw's": lambda l: f"{l['times_adamw']:.2f}",
        "bound": lambda l: f"{l['bound']:.2f}" if l["bound"] else ""}),
    "checkpoints": (lambda l: f"{l['folder']}, {l['ranks']} ranks, {l['what']}", {
        "ms": lambda l: f"{l['ms']:.0f}", "of the bound's speed": lambda l: f"{l['of_bound']:.2f}",
        "CPU, in times of all ranks' at once": lambda l: f"{l['cpu_ms'] / l['ranks_at_once_cpu_ms']:.1f}"}),
    "gaps": (lambda l: f"{PLACES.get(l['network'], l['network'])}, {l['elements']:,} elements, {l['step_ms']:.1f} ms alone", {
        "with a checkpoint in gaps": lambda l: f"{l['checkpoint_ratio']:.3f}", "with gaps always full": lambda l: f"{l['full_ratio']:.3f}",
        "share of gaps used when full": lambda l: f"{l['full_share']:.0%}".replace("%", " %"), "begin, finish, ms": lambda l: f"{l['begin_ms']:.1f}, {l['finish_ms']:.1f}",
        "save at once, ms": lambda l: f"{l['save_ms']:.1f}"}),
}

ENSEMBLE = {"tcp": "TCP, 1,000 floats", "shared": "shared memory, 1,000 floats", "shared_bf16": "128,256 elements, bf16", "shared_top64": "the 64 most probable of 128,256"}
WAITING = {"": "", "_asleep": ", all processes asleep", "_spin": ", a frontend that polls"}
OTHERS = {  # row: what it is, what was measured, what is aimed at
    "late": ("{members:.0f} members, replies after 5 ms by a timer, 1 % of them 100 times later, 6 are enough", "p50 {p50_us:,.0f} µs, p99 {p99_us:,.0f} µs", f"p99 at most {TAIL} × p50"),
    "busy": ("the same, members occupied meanwhile, so that each is away half of the time; with probation", "p50 {p50_us:,.0f} µs, p99 {p99_us:,.0f} µs", ""),
    "killed": ("a member killed under load", "p50 {p50_us:,.0f} µs, p99.9 {p999_us:,.0f} µs, {unanswered:.0f} unanswered", "p99.9 at most the deadline, {deadline_us:,.0f} µs, and 200; 0 unanswered"),
    "stopped": ("a member stopped for 300 ms every second under load", "p50 {p50_us:,.0f} µs, p99.9 {p999_us:,.0f} µs, {unanswered:.0f} unanswered", "the same"),
    "flood": ("{in_flight:,.0f} requests in flight", "{requests_per_s:,.0f} a second, the slowest member alone {member_per_s:,.0f}", "at least 0.9 of it"),
    "rules": ("the rules of a request with a quorum, no row is late; where all are waited for", "{rules_ns:.0f} ns; {rules_all_ns:.0f} ns", "at most 1,000 ns"),
    "idle": ("a frontend, and a member, without requests", "{idle_percent_of_a_core:.2f} % and {idle_member_percent:.2f} % of a core", "at most 1 %"),
}


def ensemble_of(lines, _):
    """Requests one behind the other: Herring, and its peers in times of it."""
    herring = {l["row"]: l for l in lines if l["contender"] == "herring"}
    rows = {}
    for l in (l for l in lines if l["row"] not in OTHERS):
        what, waits = next((what, waits) for waits in ("_asleep", "_spin", "") for what in ENSEMBLE if l["row"] == what + waits)
        peer, goal = l["contender"], AFTER_SEND.get(l["row"])
        name = {"herring": "", "sockets": ", bare sockets", "zeromq": f", ZeroMQ {l.get('version', '')}", "grpc": f", gRPC {l.get('version', '')}"}[peer].rstrip()
        rows[ENSEMBLE[what] + WAITING[waits] + name] = {
            **{column: us(l[key]) + (f" ({l[key] / herring[l['row']][key]:.1f}×)" if peer in TIMES else "") for column, key in (("p50", "p50_us"), ("p99", "p99_us"))},
            "after send, p50": us(l["after_send_p50_us"]), "aimed at": f"at most {goal} after send" if goal and peer == "herring" else f"at least {TIMES[peer]}×, 1×" if peer in TIMES else ""}
    return grid(["p50", "p99", "after send, p50", "aimed at"], rows)


def ensemble_others_of(lines, _):
    return grid(["measured", "aimed at"], {what.format(**l): {"measured": measured.format(**l), "aimed at": goal.format(**l)}
                                           for l in lines if l["row"] in OTHERS for what, measured, goal in [OTHERS[l["row"]]]})


def list_of(lines, name):
    call, columns = LISTS[name]
    return grid(list(columns), {call(l): {name: cell(l) for name, cell in columns.items()} for l in lines})


KINDS = {"times": times_of, "cpu": cpu_of, "missed-speed": missed_speed, "missed-cpu": missed_cpu, "forms": forms_of, "ensemble": ensemble_of, "ensemble-others": ensemble_others_of,
         **dict.fromkeys(LISTS, list_of)}
MEASURED = {"ensemble-others": "ensemble", **{name: name for name in ("forms", "ensemble", *LISTS)}}  # kinds that are of one list of the JSON, and of which
BLOCK = re.compile(r"<!-- bench: (\S+)(.*?) -->\n(.*?)<!-- end -->", re.DOTALL)  # kind, suites, what lies between


def write(folder, json_paths):
    """Writes the blocks of a folder's pages anew for which there are rows: those of the suites that one names, or of any. Of a point
    that several files have the last counts. Returns the pages that are others now."""
    points, lists, source, written = {}, {}, {}, []
    for path in json_paths:
        with open(path) as file:
            result = json.load(file)
        bound = {(r["suite"], r["ranks"], r["bytes"]): r["bound_us"] for r in result["rows"]}
        judge(result["rows"], lambda *key: bound[key])  # by the targets of today
        for r in result["rows"]:
            points[r["suite"], r["ranks"], r["table"], r["what"].split(" (")[0], r["bytes"]] = r
        here = {name: result[name] for name in MEASURED.values() if result.get(name)}
        lists |= here
        for suite in {r["suite"] for r in result["rows"]} | set(here):
            source[suite] = f"`{result['facts']['command']}`, {result['facts']['CPU'].split(',')[0]}, {100 * result['steal']:.1f} % of the CPU stolen"

    def block(match):
        kind, suites = match[1], match[2].split() or list(TITLES)
        inside = lists.get(MEASURED[kind], []) if kind in MEASURED else [r for r in points.values() if r["suite"] in suites]
        if not inside:
            return match[0]
        sources = dict.fromkeys(source[suite] for suite in ([MEASURED[kind]] if kind in MEASURED else suites) if suite in source)
        return "\n".join([f"<!-- bench: {match[1]}{match[2]} -->", ";\n".join(sources) + ":", "", *KINDS[kind](inside, kind if kind in LISTS else suites), "<!-- end -->"])

    for path in sorted(glob.glob(os.path.join(folder, "*.md"))):
        with open(path) as file:
            before = file.read()
        after = BLOCK.sub(block, before)
        if after != before:
            written.append(path)
            with open(path, "w") as file:
                file.write(after)
    return written


if __name__ == "__main__":
    print("\n".join(write(sys.argv[1], sys.argv[2:])))
