#!/usr/bin/env python3
# herring: this tree against another one, an older one: the same points in paired rounds, and what is slower by more than noise.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/run --against DIR [--only shm,tcp,netns,models] [--sizes LIST] [--rounds N] [--quick] [--json FILE]
#   bench/against.py --self-test
#
# Each tree's herring_bench is built from its own sources and headers; DIR is only read. A round measures a point in both trees, one
# right behind the other, so that both find the same machine; the tree that goes first alternates. What counts is the median
# over rounds of the ratio new / old. A point that comes out slower is measured for as many rounds again before it is judged.
#
# Columns: medians in µs of a call with a barrier before it, and of one of many in a row; cpu: the ratio of the CPU seconds of
# the latter, which neighbours on the machine change less than its time.
#
# Slower: the median ratio is above 1.03 and so many rounds are above 1 that a coin would show it in 1 of 20 at most. Of 100 equal
# points some three can look so; `--against .` shows how many do here.
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT = 1.03
CHANCE = 0.05
STEAL = 0.03
COUNTED = "8,1024,16396,65536,1048576,4000012,16777216,67108864"


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def by_chance(above, rounds):
    """Probability that of so many fair coins at least `above` show heads."""
    return sum(math.comb(rounds, k) for k in range(above, rounds + 1)) / 2**rounds


def verdict(ratios):
    """«slower», «faster» or «», of the ratios new / old of paired rounds."""
    if not ratios:
        return ""
    over, under = sum(r > 1 for r in ratios), sum(r < 1 for r in ratios)
    if median(ratios) > LIMIT and by_chance(over, len(ratios)) <= CHANCE:
        return "slower"
    if median(ratios) < 1 / LIMIT and by_chance(under, len(ratios)) <= CHANCE:
        return "faster"
    return ""


def self_test():
    wanted = [
        ([1.0] * 8, ""), ([1.1] * 8, "slower"), ([0.8] * 8, "faster"), ([1.02] * 8, ""), ([1.1] * 4, ""), ([1.1] * 5, "slower"),
        ([1.2, 0.9, 1.3, 0.8, 1.1, 1.2, 0.7, 1.1], ""), ([1.2, 1.1, 1.3, 1.2, 1.1, 1.2, 0.7, 1.1], "slower"), ([], ""),
    ]
    failed = [(ratios, word, verdict(ratios)) for ratios, word in wanted if verdict(ratios) != word]
    for ratios, word, got in failed:
        print(f"FAILED: {ratios}: wants «{word}», got «{got}»")
    if failed or sys.argv[1:] == ["--self-test"]:
        print(f"against: {len(wanted) - len(failed)} of {len(wanted)} verdicts are as they must be")
    return bool(failed)


class trees:
    """Both trees' programs, and how they are started."""

    def __init__(self, new, old, build, work):
        self.root, self.build, self.work = {"new": new, "old": old}, build, work
        self.prefix = f"hrgcmp{os.getpid() % 10000}-"
        self.up = False

    def compile(self):
        new = self.root["new"]
        flags = ["g++", "-std=c++20", "-O3", "-march=native", "-pthread"]
        for name, root in self.root.items():
            os.makedirs(f"{self.build}/{name}", exist_ok=True)
            print(f"Building herring_bench of {root} ({' '.join(flags[1:4])})", flush=True)
            subprocess.run(flags + [f"-I{root}/include", f"{root}/bench/herring_bench.cpp", "-o", f"{self.build}/{name}/herring_bench"], check=True)
            # One source for both: it counts what the headers do.
            done = subprocess.run(["g++", "-std=c++20", "-O1", "-pthread", f"-I{root}/include", f"{new}/bench/counters.cpp", "-o", f"{self.build}/{name}/counters"],
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"SKIPPED: bench/counters.cpp does not compile with the headers of {root}: no counters are compared\n{done.stderr[:600]}")
                self.counts = False
        return getattr(self, "counts", True)

    def hosts(self, action):
        return subprocess.run([f"{self.root['new']}/bench/hosts.sh", action, self.prefix, "4"], check=False).returncode

    def start_hosts(self):
        if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
            print("SKIPPED: four hosts need root, ip and tc: no row of them below")
            return False
        if not self.up:
            self.up = True
            if self.hosts("up"):
                print("SKIPPED: network namespaces cannot be made here: no row of them below")
                return False
        return True

    def stop_hosts(self):
        if self.up:
            self.hosts("down")

    def run(self, tree, point, options):
        """The JSON line of one measurement, or None."""
        out = f"{self.work}/point.jsonl"
        if os.path.exists(out):
            os.remove(out)
        program = f"{self.build}/{tree}/herring_bench"
        given = options + point["options"] + ["--suite", point["suite"], "--out", out]
        if point["hosts"]:
            commands = [["ip", "netns", "exec", f"{self.prefix}{r}", "env", f"HERRING_RANK={r}", "HERRING_SIZE=4", "HERRING_ADDR=10.77.0.1:47177", program] + given for r in range(4)]
        else:
            commands = [[program, "--ranks", str(point["ranks"])] + given]
        processes = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for c in commands]
        said = []
        for p in processes:
            try:
                said.append(p.communicate(timeout=300)[1])
            except subprocess.TimeoutExpired:
                for other in processes:
                    other.kill()
                said.append("ran for more than 300 s")
        if any(p.returncode for p in processes) or not os.path.exists(out):
            print(f"FAILED: {tree}: {name_of(point)}: {' '.join(said).strip()[-300:]}", flush=True)
            return None
        with open(out) as file:
            return json.loads(file.readline())

    def counters(self, tree):
        found = {}
        for ranks in (2, 4):
            for memory in ("in_place", "callers"):
                out = f"{self.work}/counters.jsonl"
                if os.path.exists(out):
                    os.remove(out)
                subprocess.run([f"{self.build}/{tree}/counters", "--ranks", str(ranks), "--memory", memory, "--sizes", COUNTED, "--out", out], check=True, timeout=300)
                with open(out) as file:
                    for line in map(json.loads, file):
                        found[ranks, memory, line["bytes"]] = (line["messages_sent"], line["bytes_sent"], line["operations"])
        return found


def name_of(point):
    return f"{point['suite']}, {point['ranks']} ranks, {point['label']}"


def points_of(suites, sizes, data):
    """Every point that is measured, in order."""
    points = []

    def add(suite, ranks, memory, what, hosts=False, **options):
        flat = [x for key, value in options.items() for x in (f"--{key}", value)]
        size = int(what) if what.isdigit() else None
        points.append({"suite": suite, "ranks": ranks, "label": f"{memory}, {what}", "memory": memory, "bytes": size, "hosts": hosts,
                       "options": ["--memory", memory] + (["--sizes", what] if size else []) + flat})

    for ranks in (2, 4):
        for memory in ("in_place", "callers"):
            for size in sizes.split(","):
                if "shm" in suites:
                    add("shm", ranks, memory, size, node="shared_memory")
                if "tcp" in suites:
                    add("tcp", ranks, memory, size)
    if "netns" in suites:
        for memory in ("in_place", "callers"):
            for size in sizes.split(","):
                add("unshaped", 4, memory, size, hosts=True)
    if "models" in suites:
        for memory in ("in_place", "callers"):
            add("models", 4, memory, "resnet50", node="shared_memory", table=f"{data}/resnet50.csv")
            add("models-tcp", 4, memory, "resnet50", table=f"{data}/resnet50.csv")
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
        if free > 12e6:
            for memory in ("in_place", "callers"):
                add("models", 2, memory, "bert_large", node="shared_memory", table=f"{data}/bert_large.csv")
        else:
            print("SKIPPED: BERT-large needs 12 GB of free memory")
    points.sort(key=lambda p: ("shm", "tcp", "unshaped", "models", "models-tcp").index(p["suite"]))
    return points


def measure(both, point, options, turn):
    """Adds a round to the point: of each tree, the median of a call, and time and CPU of one of many in a row."""
    lines = {tree: both.run(tree, point, options) for tree in (("old", "new") if turn % 2 == 0 else ("new", "old"))}
    if None in lines.values():
        point["failed"] = point.get("failed", 0) + 1
        return
    point["wrong"] = point.get("wrong", 0) + sum(int(line["wrong"]) for line in lines.values())
    pair = {"stolen": max(line["steal"] for line in lines.values())}
    for tree, line in lines.items():
        samples = line["sorted_us"]
        pair[tree] = {"call": samples[len(samples) // 2], "row": line["stream_us"], "cpu": line["cpu_s"] * 1e6}
    point.setdefault("pairs", []).append(pair)


def ratios_of(point, which):
    pairs = point.get("pairs", [])
    quiet = [p for p in pairs if p["stolen"] <= STEAL]
    used = quiet if len(quiet) >= 5 else pairs
    return [p["new"][which] / p["old"][which] for p in used if p["old"][which] > 0]


def us(x):
    return f"{x:,.1f}" if x < 1000 else f"{x:,.0f}"


def cell(point, which):
    pairs, ratios = point["pairs"], sorted(ratios_of(point, which))
    old, new = (median([p[tree][which] for p in pairs]) for tree in ("old", "new"))
    return f"{us(old):>10}{us(new):>10}{median(ratios):8.3f}  {ratios[0]:5.2f} – {ratios[-1]:5.2f}  {verdict(ratios):7}"


def print_rows(points):
    print(f"\n{'':34}{'a call, with a barrier before it: µs':^45}   {'one of many in a row: µs':^43}")
    print(f"{'':34}" + f"{'old':>10}{'new':>10}{'new/old':>8}  {'from – to':^13}  {'':7}" * 2 + f"{'cpu':>7}{'rounds':>7}")
    last = None
    for point in points:
        if "pairs" not in point:
            print(f"{name_of(point):34}  {'FAILED in every round' if point.get('failed') else 'not measured'}")
            continue
        if last not in (None, (point["suite"], point["ranks"], point["memory"])):
            print()
        last = (point["suite"], point["ranks"], point["memory"])
        notes = (" WRONG RESULTS" if point.get("wrong") else "") + (f" {point['failed']} rounds failed" if point.get("failed") else "")
        print(f"{name_of(point)[:34]:34}{cell(point, 'call')}{cell(point, 'row')}{median(ratios_of(point, 'cpu') or [1]):7.2f}{len(point['pairs']):7}{notes}")


def compare_counters(both):
    old, new = both.counters("old"), both.counters("new")
    other = [(key, old[key], new[key]) for key in sorted(old) if old[key] != new.get(key)]
    print(f"\nCounters of one all_reduce over TCP, all ranks together (messages, bytes, operations): {len(old) - len(other)} of {len(old)} points are equal")
    for (ranks, memory, size), a, b in other:
        print(f"  DIFFERENT: {ranks} ranks, {memory}, {size} B: old {a}, new {b}")
    return [{"ranks": k[0], "memory": k[1], "bytes": k[2], "old": a, "new": b} for k, a, b in other], len(old)


def main():
    broken = self_test()
    if broken or sys.argv[1:] == ["--self-test"]:
        return broken
    ask = argparse.ArgumentParser(prog="bench/run --against")
    ask.add_argument("dir")
    ask.add_argument("--only", default="shm,tcp,netns,models")
    ask.add_argument("--sizes")
    ask.add_argument("--rounds", type=int)
    ask.add_argument("--quick", action="store_true")
    ask.add_argument("--json")
    ask.add_argument("--build")
    given = ask.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    root, old = os.path.dirname(here), os.path.abspath(given.dir)
    if not os.path.exists(f"{old}/bench/herring_bench.cpp"):
        sys.exit(f"bench/run: {old} has no bench/herring_bench.cpp: --against wants another checkout of Herring")
    sizes = given.sizes or ("1024,65536,1048576,16777216" if given.quick else "8,1024,16396,65536,1048576,4000012,16777216,67108864")
    rounds = given.rounds or (5 if given.quick else 8)
    seconds = "0.1" if given.quick else "0.25"
    options = ["--seconds", seconds, "--samples", "25" if given.quick else "60", "--warm-up", "0.03"]
    build = given.build or f"{root}/build/bench/against"
    os.makedirs(build, exist_ok=True)
    commit = lambda tree: subprocess.run(["git", "-C", tree, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip() or "no commit"
    print(f"old: {old} ({commit(old)})\nnew: {root} ({commit(root)})")
    subprocess.run([sys.executable, f"{here}/report.py", "facts", root], check=True)
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(dir=build) as work:
        both = trees(root, old, build, work)
        try:
            counts = both.compile()
            points = points_of(given.only.split(","), sizes, f"{here}/data")
            if any(p["hosts"] for p in points) and not both.start_hosts():
                points = [p for p in points if not p["hosts"]]
            try:
                for turn in range(rounds):
                    print(f"  round {turn + 1} of {rounds}: {len(points)} points", flush=True)
                    for number, point in enumerate(points):
                        measure(both, point, options, turn + number)
                again = [p for p in points if "slower" in (verdict(ratios_of(p, "call")), verdict(ratios_of(p, "row")))]
                if again:
                    print(f"  {len(again)} points came out slower: {rounds} rounds more of them", flush=True)
                for turn in range(rounds if again else 0):
                    for number, point in enumerate(again):
                        measure(both, point, options, rounds + turn + number)
            except KeyboardInterrupt:
                print("INTERRUPTED: what was measured until here follows", flush=True)
            different, compared = compare_counters(both) if counts else (None, 0)
        finally:
            both.stop_hosts()
    print_rows(points)
    slower = [(p, which) for p in points for which in ("call", "row") if verdict(ratios_of(p, which)) == "slower"]
    every = {which: [median(r) for p in points if (r := ratios_of(p, which))] for which in ("call", "row")}
    for which, words in (("call", "a call"), ("row", "one of many")):
        if every[which]:
            print(f"new / old of {words}: geometric mean of {len(every[which])} rows {math.exp(sum(map(math.log, every[which])) / len(every[which])):.3f}")
    print(f"Slower by more than noise: {len(slower)} of {2 * len(points)}")
    for point, which in slower:
        print(f"  SLOWER: {name_of(point)}, {'a call' if which == 'call' else 'in a row'}: {median(ratios_of(point, which)):.3f}")
    wrong = [name_of(p) for p in points if p.get("wrong")]
    failed = [name_of(p) for p in points if p.get("failed")]
    print("Results: " + (f"WRONG in {'; '.join(wrong)}" if wrong else "every one right") + (f"; rounds FAILED in {'; '.join(failed)}" if failed else ""))
    json_path = given.json or f"{build}/results.json"
    with open(json_path, "w") as file:
        json.dump({"old": commit(old), "new": commit(root), "points": points, "counters_compared": compared, "counters_different": different}, file, indent=1)
    print(f"JSON: {json_path}")
    return bool(slower or wrong or failed or different)


sys.exit(main())
