#!/usr/bin/env python3
# herring: turns the bench's JSON lines into tables: rounds merged, bounds and peers beside every row, targets checked.
# SPDX-License-Identifier: Apache-2.0
#
#   report.py facts ROOT COMMAND                    the machine, in words
#   report.py stolen LINES                          sizes (or "table") measured while more than 3 % of the CPU was stolen
#   report.py tables LINES FACTS STAT JSON          tables to stdout, everything to JSON
import json
import os
import subprocess
import sys

STEAL = 0.03
GOODPUT = 0.96  # of the rate: a frame of 1514 B, which tbf counts, carries 1448 B of TCP payload (0.956)
RATE = 1e9 / 8  # bytes a second of a shaped link
# Suites of n workers + k servers, at half that rate: bytes of the buffer that the busiest host sends, 2n(n−1) ÷ (n² + kn − 2k). By two levels
# in r racks of m hosts each sends 2(m−1) ÷ m + 2(r−1) ÷ (rm); its rack's uplink, at 3/4 of that rate, 2(r−1) ÷ r.
OPTIMUM = {"servers-4+4": 1, "servers-2+2": 1, "servers-4+2": 1.2, "racks-2x3": 5 / 3}
KIB, MIB = 1 << 10, 1 << 20

TITLES = {
    "shm": "Shared memory, one node",
    "tcp": "TCP on loopback",
    "unshaped": "Four hosts (network namespaces), unshaped",
    "1gbit": "Four hosts, 1 Gbit/s links",
    **{f"{place}-{operation}": f"{words}, {where}" for place, where in (("shm", "shared memory, one node"), ("tcp", "TCP on loopback"), ("1gbit", "hosts with 1 Gbit/s links"), ("unshaped", "four hosts"))
       for operation, words in (("all_reduce", "All-reduce from the caller's memory"), ("reduce_scatter", "Reduce-scatter"), ("all_gather", "All-gather"), ("broadcast", "Broadcast"), ("all_to_all", "All-to-all"), ("gather", "Gather"), ("scatter", "Scatter"), ("all_moments", "Mean and deviation"))},
    "servers-4+4": "4 workers and 4 servers, a host each, 500 Mbit/s links (Open MPI, Gloo and plain Herring: on the 4 workers' hosts alone; 4 machines were added for the servers)",
    "servers-2+2": "2 workers and 2 servers, a host each, 500 Mbit/s links",
    "servers-4+2": "4 workers and 2 servers, a host each, 500 Mbit/s links",
    "racks-2x3": "2 racks of 3 hosts, 500 Mbit/s links and uplinks of 375 Mbit/s (4:1); the bound is that of two levels",
    "models": "Gradient tables, shared memory on one node",
    "models-tcp": "Gradient tables, TCP on loopback",
    "models-1gbit": "Gradient tables, four hosts, 1 Gbit/s links",
}


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def shell(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.strip().split("\n")[0] or "not installed"


def facts(root, command="bench/run --against"):
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    version = lambda package: shell(f"dpkg-query -W -f '${{Version}}' {package} 2>/dev/null")
    for name, what in {
        "command": command,
        "CPU": f"{cpu}, {len(os.sched_getaffinity(0))} cores, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30} GiB",
        "kernel": shell("uname -sr"),
        "compiler": shell("g++ --version"),
        "peers": f"Open MPI {version('openmpi-bin')}, Gloo {version('libgloo-dev')}",
        "congestion control": shell("cat /proc/sys/net/ipv4/tcp_congestion_control"),
        "load at the start": f"{os.getloadavg()[0]:.2f}" + (" (others are at work here: expect wrong numbers)" if os.getloadavg()[0] > 0.5 else ""),
        "commit": shell(f"git -C '{root}' describe --always --dirty 2>/dev/null"),
    }.items():
        print(f"{name + ':':20}{what}")


# ---- rows -----------------------------------------------------------------------------------------------------------


def quantile(ordered, q):
    """Nearest rank."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


BLOCKS = ("-all_to_all", "-gather", "-scatter")


def wire_share(suite, ranks):
    """busbw / algbw: what of a buffer's bytes the operation's bound moves out of a rank."""
    if suite.endswith("-broadcast"):
        return 1
    return (ranks - 1) / ranks * (1 if suite.endswith(("-reduce_scatter", "-all_gather", *BLOCKS)) else 2)


def merge(lines):
    """One row for each (suite, what, ranks, bytes, table): the samples of all rounds; undisturbed rounds only, if there are any."""
    points = {}
    for line in lines:
        if "sorted_us" in line:
            points.setdefault((line["suite"], line["what"], line["ranks"], line["bytes"], line["table"]), []).append(line)
    rows = []
    for (suite, what, ranks, size, table), runs in points.items():
        quiet = [run for run in runs if run["steal"] <= STEAL]
        wrong = sum(run["wrong"] for run in runs)
        runs = quiet or runs
        samples = sorted(sample for run in runs for sample in run["sorted_us"])
        mean = lambda key: sum(run[key] for run in runs) / len(runs)
        median = quantile(samples, 0.5)
        rows.append({
            "suite": suite, "what": what, "ranks": ranks, "bytes": size, "table": table,
            "variant": " / ".join(sorted({run["candidate"] for run in runs})),
            "samples": sum(run["samples"] for run in runs), "rounds": len(runs),
            "min_us": samples[0], "median_us": median, "p99_us": quantile(samples, 0.99),
            "round_medians_us": [quantile(run["sorted_us"], 0.5) for run in runs],
            "back_to_back_us": mean("stream_us"), "start_skew_us": mean("skew_us"), "after_last_start_us": mean("after_last_start_us"), "cpu_s": mean("cpu_s"),
            "algbw_gb_s": size / median * 1e-3, "busbw_gb_s": size / median * 1e-3 * wire_share(suite, ranks),
            "wrong_elements": wrong, "disturbed": not quiet,
        })
    return rows


def bounds(lines, rows):
    """(suite, ranks, bytes) → µs that nothing can beat on this machine, or that nothing did."""
    memory = {(l["suite"], l["ranks"], l["bytes"]): l["bound_us"] for l in lines if l["what"] == "memory bound"}
    links = {l["suite"]: l for l in lines if l["what"] == "link"}

    def fastest(suite, gb_s):
        """Bytes on all wires together: of the measured link, or of a row that did better."""
        wired = [r for r in rows if r["suite"].replace("models-", "") == suite and "ofi<shm>" not in r["what"]]
        return max([gb_s] + [2 * (r["ranks"] - 1) * r["algbw_gb_s"] for r in wired])

    def bound(suite, ranks, size):
        if suite in ("shm", "models"):
            return memory.get((suite, ranks, size))
        wire = wire_share(suite, ranks) * size  # bytes a rank sends
        if suite in OPTIMUM:
            return OPTIMUM[suite] * size / (RATE / 2 * GOODPUT) * 1e6 if size >= MIB else None
        if "1gbit" in suite:
            return wire / (RATE * GOODPUT) * 1e6 if size >= MIB else None  # below, the burst of 128 kB counts
        link = links.get(suite.replace("models-", ""))
        return link and max(link["one_way_us"], wire * ranks / fastest(link["suite"], link["both_ways_gb_s"]) * 1e-3)

    return bound


def target(row):
    """What a Herring row is to reach: ("ratio" to the best peer | "row" ratio to the best peer, one call behind the other | "mpi row" that to Open MPI | "mpi" ratio to Open MPI | "tcp" ratio to Herring's own TCP | "bound" share, at least), or None."""
    suite, ranks, size, in_place = row["suite"], row["ranks"], row["bytes"], "in place" in row["what"]
    if "checked<" in row["what"]:
        return ("tcp", 1 / 1.5) if size >= 64 * KIB else None
    if "ofi<tcp>" in row["what"]:
        return ("tcp", 1 / 1.3) if size >= 64 * KIB else None
    if "ofi<shm>" in row["what"]:
        return ("tcp", 1)
    if suite.endswith(("-reduce_scatter", "-all_gather")):
        return ("row", 1)
    if suite.endswith(BLOCKS):
        return ("row", 2 if suite.startswith("shm") and size >= 64 * KIB else 1)
    if suite == "racks-2x3":
        return ("bound", 0.9) if "racks" in row["what"] and size == 16 * MIB else None
    if suite in OPTIMUM:
        if "dedicated" not in row["what"] and "optimal" not in row["what"] or size != 16 * MIB:
            return None
        return {"servers-4+4": ("ratio", 1.45), "servers-2+2": ("bound", 1 / 1.03), "servers-4+2": ("bound", 1 / 1.05)}[suite]
    if suite == "shm-broadcast":
        return ("mpi row", 2) if ranks == 4 and size == 16 * MIB else None
    if suite == "shm":
        if not in_place:
            return ("ratio", 3) if size == 64 * MIB else None
        return {64 * MIB: ("ratio", 5), 16 * MIB: ("ratio", 3)}.get(size, ("ratio", 1) if KIB <= size <= MIB else None)
    if suite == "models":
        return ("ratio", 4 if in_place else 2)
    if not in_place:
        return None
    if suite == "tcp" and ranks == 2:
        return ("ratio", 2) if size == 64 * MIB else ("ratio", 1) if KIB <= size <= 64 * MIB else None
    if suite == "tcp":
        if size == KIB:
            return ("mpi row", 1.1)
        return {64 * MIB: ("ratio", 1.6), 16 * MIB: ("ratio", 1.2), MIB: ("ratio", 1 / 1.2), 64 * KIB: ("ratio", 1 / 1.2)}.get(size)
    if suite == "unshaped":
        if size == KIB:
            return ("mpi row", 1.1)
        return ("ratio", 2) if size >= MIB else None
    if suite == "1gbit":
        return {16 * MIB: ("bound", 0.98), MIB: ("ratio", 1), 64 * KIB: ("ratio", 1), KIB: ("mpi", 1 / 1.3)}.get(size)
    return ("bound", 0.98) if suite == "models-1gbit" else None


def judge(rows, bound):
    """Adds bound, ratio and target to the rows."""
    for row in rows:
        here = [r for r in rows if all(r[k] == row[k] for k in ("suite", "ranks", "bytes", "table")) and "Herring" not in r["what"]
                and not r["wrong_elements"] and "all_moments" not in r["suite"]]  # a peer whose result is wrong sets no mark; those of all_moments are ways of ours
        best = min(here, key=lambda r: r["median_us"], default=None)
        mpi = next((r for r in here if r["what"].startswith("Open MPI")), None)
        tcp = next((r for r in rows if all(r[k] == row[k] for k in ("suite", "ranks", "bytes", "table")) and r["what"] == "Herring, in place"), None)
        row["bound_us"] = bound(row["suite"], row["ranks"], row["bytes"])
        row["of_bound"] = row["bound_us"] and row["bound_us"] / row["median_us"]
        best_row = min(here, key=lambda r: r["back_to_back_us"], default=None)
        row["times_best_row"] = None
        row["times_best_peer"] = row["cpu_of_best_peer"] = row["target"] = row["met"] = None
        if "Herring" not in row["what"]:
            continue
        if best:
            row["best_peer"] = best["what"]
            row["times_best_peer"] = best["median_us"] / row["median_us"]
            row["times_best_row"] = best_row["back_to_back_us"] / row["back_to_back_us"]
            # Over libfabric it is measured against Herring's own TCP, not against the peers.
            row["cpu_of_best_peer"] = row["cpu_s"] / best["cpu_s"] if best["cpu_s"] and "ofi<" not in row["what"] else None
        if wanted := target(row):
            kind, least = wanted
            has = {"ratio": row["times_best_peer"], "mpi": mpi and mpi["median_us"] / row["median_us"], "tcp": tcp and tcp["median_us"] / row["median_us"], "bound": row["of_bound"],
                   "row": row["times_best_row"], "mpi row": mpi and mpi["back_to_back_us"] / row["back_to_back_us"]}[kind]
            row["target"] = {"ratio": f"≥ {least:.3g}×", "mpi": f"≥ {least:.2g}× MPI", "tcp": f"≥ {least:.2g}× tcp", "bound": f"≥ {least:.0%} bound",
                             "row": f"row ≥ {least:.3g}×", "mpi row": f"row ≥ {least:.3g}× MPI"}[kind]
            row["met"] = None if has is None else has >= least
            row["reached"] = has and {"bound": f"{has:.1%} of the bound", "tcp": f"{has:.2f}× tcp"}.get(kind, f"{has:.2f}×")


# ---- tables ---------------------------------------------------------------------------------------------------------

COLUMNS = [
    ("bytes", 9, lambda r: bytes_text(r["bytes"])), ("min", 9, lambda r: us(r["min_us"])), ("median", 9, lambda r: us(r["median_us"])),
    ("p99", 9, lambda r: us(r["p99_us"])), ("in a row", 9, lambda r: us(r["back_to_back_us"])), ("skew", 7, lambda r: us(r["start_skew_us"])), ("algbw", 8, lambda r: gb_s(r["algbw_gb_s"])), ("busbw", 8, lambda r: gb_s(r["busbw_gb_s"])),
    ("cpu s/op", 9, lambda r: f"{r['cpu_s']:.2g}"), ("bound", 9, lambda r: us(r["bound_us"])),
    ("of bound", 9, lambda r: "-" if not r["of_bound"] else f"{r['of_bound']:.0%}"),
    ("x peer", 7, lambda r: times(r["times_best_peer"])), ("x row", 7, lambda r: times(r["times_best_row"])), ("cpu x", 6, lambda r: times(r["cpu_of_best_peer"])),
    ("check", 6, lambda r: "ok" if not r["wrong_elements"] else "WRONG"),
    ("target", 13, lambda r: r["target"] or ""), ("met", 4, lambda r: {True: "yes", False: "NO", None: "" if not r["target"] else "?"}[r["met"]]),
]


def us(x):
    return "-" if x is None else f"{x:,.1f}" if x < 1000 else f"{x:,.0f}"


def gb_s(x):
    return f"{x:.2f}" if x >= 0.1 else f"{x:.5f}"


def times(x):
    return "" if x is None else f"{x:.3g}"


def bytes_text(n):
    for unit, size in (("MiB", MIB), ("KiB", KIB)):
        if n >= size and n % size == 0:
            return f"{n // size} {unit}"
    return f"{n:,}"


def print_table(title, rows):
    print(f"\n{title}\n{'':27}" + "".join(f"{name:>{width + 1}}" for name, width, _ in COLUMNS))
    last = None
    for row in rows:
        if last not in (None, row["bytes"]):
            print()
        last = row["bytes"]
        name = row["what"] + (f" ({row['variant']})" if row["what"] == "Gloo" else "") + (" *" if row["disturbed"] else "")
        print(f"{name[:27]:27}" + "".join(f"{cell(row):>{width + 1}}" for _, width, cell in COLUMNS))


def print_shares(rows):
    """What reduce-scatter and all-gather take of the all-reduce's time, from 16 MiB up."""
    herring = {(r["suite"], r["ranks"], r["bytes"], r["what"]): r for r in rows if "Herring" in r["what"]}
    shares = []
    for (suite, ranks, size, what), row in sorted(herring.items()):
        place, _, operation = suite.partition("-")
        whole = herring.get((f"{place}-all_reduce", ranks, size, "Herring, caller's memory"))
        if operation in ("reduce_scatter", "all_gather") and whole and size >= 16 * MIB:
            # On loopback the cores limit, which also do all of the kernel's work for both ends: no mark.
            most = {"tcp": None, "1gbit": 0.55}.get(place, 1.15 * (ranks + 1) / (2 * ranks))
            share = row["back_to_back_us"] / whole["back_to_back_us"]
            shares.append(f"  {TITLES[suite] + f', {ranks} ranks, ' + bytes_text(size) + (', in place' if 'in place' in what else ''):70}in a row {share:6.2f}   with a barrier {row['median_us'] / whole['median_us']:6.2f}"
                          + (f"   at most {most:.2f}   met: {'yes' if share <= most else 'NO'}" if most else ""))
    if shares:
        print("\nShare of all_reduce's time, which has one buffer of the caller's; in place: this rank's range is where it belongs in the buffer\n" + "\n".join(shares))


def print_forms(lines):
    """Medians over launches, of each the least and the most; shares are of one launch, whose speed all forms have."""
    points = {}
    for line in lines:
        if line["suite"] == "forms":
            points.setdefault((line["ranks"], line["bytes"]), {}).setdefault(line["what"], []).append(line)
    if points:
        print("\nOne tensor over TCP on loopback, a node a rank: µs of a call in a row, median of all launches [least, most]; in times of a step in\n"
              "place of the same launch; share of what sockets alone take, by the medians")
    for (ranks, size), forms in sorted(points.items()):
        median = lambda of, key: quantile(sorted(line[key] for line in of), 0.5)
        bound = median(forms["mesh bound"], "bound_us") if "mesh bound" in forms else None
        for what, of in forms.items():
            key = "bound_us" if what == "mesh bound" else "us"
            taken = sorted(line[key] for line in of)
            print(f"  {ranks} ranks {bytes_text(size):>8}  {what:28}{us(median(of, key)):>10} [{us(taken[0])}, {us(taken[-1])}]"
                  + ("" if key == "bound_us" else f"   {median(of, 'share'):.2f}" + (f"   {bound / median(of, key):.0%} of the bound" if bound else "")))


def tables(lines, facts_text, steal):
    rows = merge(lines)
    judge(rows, bounds(lines, rows))
    print("\n" + facts_text.strip() + f"\n{'stolen CPU:':20}{steal:.1%} over the run")
    print("""
Times in µs of one isolated call (barrier before it): the slowest rank of each call, all rounds together. skew: how far apart the
ranks left the barrier, which the times contain. in a row: one call of many without a barrier between them, as in a loop that
does nothing else: skew is absorbed, and rows may rank otherwise than with a barrier. GB = 10^9 B; algbw = bytes / median, busbw = algbw x 2(n-1)/n; cpu s/op: all
ranks, back to back. x peer: how many times as fast as the fastest peer; x row: the same, in a row; cpu x: CPU seconds against that peer's.
Bounds: memory: each rank's buffer read once and written once, by as many threads as ranks or cores, as measured in this run;
loopback and unshaped hosts: 2(n-1) x bytes at the best two-way throughput in this run, of one connection alone or of any row, at
least a message's way;
shaped hosts: 2(n-1)/n x bytes at 96 % of 1 Gbit/s (1448 B of payload in the 1514 B that tbf counts), from 1 MiB up: the burst of
128 kB goes unshaped, which still shows at 1 MiB.
* measured while more than 3 % of the CPU was stolen, also when repeated.""")
    order = list(TITLES)
    groups = sorted({(order.index(r["suite"]), r["ranks"], r["table"]) for r in rows})
    for suite, ranks, table in groups:
        inside = [r for r in rows if (r["suite"], r["ranks"], r["table"]) == (order[suite], ranks, table)]
        inside.sort(key=lambda r: (r["bytes"], "Herring" not in r["what"]))
        print_table(f"{TITLES[order[suite]]}, {ranks} ranks{', ' + table if table else ''}", inside)

    drops = {}
    for line in lines:
        if line["what"] == "drops":
            key = (line["suite"], line["contender"])
            drops[key] = drops.get(key, 0) + line["drops"]
    if any("1gbit" in suite for suite, _ in drops):
        print("\nPackets dropped by the switch's queues of 256 kB (target for Herring: 0)")
        for (suite, who), n in drops.items():
            if "1gbit" in suite:
                print(f"  {TITLES[suite]:47}{who:16}{n:8}{'' if not who.startswith('herring') else '   met: ' + ('NO' if n else 'yes')}")
    print_shares(rows)
    print_forms(lines)
    waits = [l for l in lines if l["suite"] == "wait"]
    if waits:
        print("\nCPU of a rank that waits for a late one (target: under 2 % of a core)")
        for l in waits:
            share = l["cpu_s"] / l["waited_s"]
            print(f"  {l['what']:27}waited {l['waited_s']:.2f} s   {share:.2%} of a core   met: {'yes' if share < 0.02 else 'NO'}")
    uneven = [l for l in lines if l["suite"] == "uneven"]
    if uneven:
        print("\nOne double reduced between 100 to 500 us of computing, another time on each rank: us a step beyond the slowest rank's (or,\n"
              "with fewer cores than ranks, the cores' share of all) computing, and CPU of all ranks beyond their computing")
        for l in uneven:
            print(f"  {l['what']:27}{l['ranks']} ranks   {l['beyond_us']:8.1f} us   {l['cpu_beyond_us']:8.1f} us of CPU")
    for l in lines:
        if l["suite"] == "cost":
            print("\nOne translation unit with the reducer, tcp and shared_memory (g++ -O2)\n"
                  f"  {l['own_lines']:,} lines of Herring, {l['all_lines']:,} with all headers; {l['instantiations']:,} own functions; "
                  f"{l['object_bytes']:,} B object; {l['seconds']:.2f} s of CPU to compile, best of 3 (target: at most 5)   met: {'yes' if l['seconds'] <= 5 else 'NO'}")

    judged = [r for r in rows if r["met"] is not None]
    missed = [r for r in judged if not r["met"]]
    hungry = [r for r in rows if r["cpu_of_best_peer"] and r["cpu_of_best_peer"] > 1]
    compared = [r for r in rows if r["cpu_of_best_peer"]]
    print(f"\nTargets of speed: {len(judged) - len(missed)} of {len(judged)} met"
          + "".join(f"\n  missed: {place(r)}: {times(r['times_best_peer'])}x the best peer ({times(r['times_best_row'])}x in a row), "
                    + (f"{r['of_bound']:.1%} of the bound, " if r["of_bound"] else "") + f"wanted {r['target']}" for r in missed))
    print(f"Targets of CPU (not above the fastest peer's): {len(compared) - len(hungry)} of {len(compared)} met"
          + "".join(f"\n  missed: {place(r)}: {r['cpu_of_best_peer']:.2f}x the CPU of {r['best_peer']}" for r in hungry))
    wrong = [r for r in rows if r["wrong_elements"]]
    print("Results: " + ("every one right" if not wrong else "WRONG in " + "; ".join(map(place, wrong))))
    for line in lines:
        if line["suite"] in ("skipped", "failed"):
            print(f"{line['suite'].upper()}: {line['what']}")
    return {"rows": rows, "drops": [{"suite": s, "contender": w, "packets": n} for (s, w), n in drops.items()],
            "waits": waits, "uneven": uneven, "cost": [l for l in lines if l["suite"] == "cost"],
            "links": [l for l in lines if l["what"] == "link"], "skipped": [l["what"] for l in lines if l["suite"] == "skipped"],
            "failed": [l["what"] for l in lines if l["suite"] == "failed"]}


def place(row):
    return f"{TITLES[row['suite']].split(' (Open')[0]}, {row['ranks']} ranks, {row['table'] or bytes_text(row['bytes'])}, {row['what']}"


def main():
    action = sys.argv[1]
    if action == "facts":
        facts(*sys.argv[2:4])
    elif action == "stolen":
        hit = [line for line in read_lines(sys.argv[2]) if line.get("steal", 0) > STEAL]
        print("table" if any(line["table"] for line in hit) else ",".join(str(line["bytes"]) for line in hit))
    else:
        lines_path, facts_path, stat_path, json_path = sys.argv[2:6]
        with open(facts_path) as file:
            facts_text = file.read()
        with open(stat_path) as before, open("/proc/stat") as after:
            spent = [int(b) - int(a) for a, b in zip(before.readline().split()[1:9], after.readline().split()[1:9])]
        steal = spent[7] / max(1, sum(spent))
        result = {"facts": dict(line.split(":", 1) for line in facts_text.strip().split("\n")), "steal": steal}
        result["facts"] = {k: v.strip() for k, v in result["facts"].items()}
        lines = read_lines(lines_path)
        result.update(tables(lines, facts_text, steal))
        for suite in ("training", "optimizers", "checkpoints", "timeline", "forms", "gaps", "ensemble"):
            result[suite] = [line for line in lines if line["suite"] == suite]
        os.makedirs(os.path.dirname(os.path.abspath(json_path)), exist_ok=True)
        with open(json_path, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
