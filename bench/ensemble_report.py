#!/usr/bin/env python3
# herring: the tables of the ensemble bench: rounds merged, peers and targets beside every row.
# SPDX-License-Identifier: Apache-2.0
#
#   ensemble_report.py LINES OUT        tables to stdout, a line of JSON a row added to OUT; LINES: what the programs of the bench wrote
import collections
import json
import statistics
import sys

# Row: what the answer may take after the last member has encoded its row and begun to send it, in us at p50.
AFTER_SEND = {"shared": 100, "shared_asleep": 100, "shared_spin": 15, "shared_bf16": 180, "shared_bf16_asleep": 180, "shared_bf16_spin": 80,
              "shared_top64": 100, "shared_top64_asleep": 100, "shared_top64_spin": 20}
# Peer: how many times as fast Herring has to be at p50; its p99 must be no worse.
TIMES = {"zeromq": 2, "grpc": 3}
TAIL = 1.2  # most of p99 / p50 where 1 % of the members' answers come a hundred times later


def met(good):
    return f"   met: {'yes' if good else 'NO'}"


def main():
    lines_path, out_path = sys.argv[1:3]
    rounds = collections.defaultdict(list)
    with open(lines_path) as file:
        for line in file:
            one = json.loads(line)
            rounds[one["row"], one["contender"]].append(one)
    rows = {}
    for key, each in rounds.items():  # the median of the rounds
        rows[key] = {name: statistics.median(r[name] for r in each) if isinstance(value, (int, float)) else value for name, value in each[0].items()}
        rows[key]["rounds"] = len(each)
    print("\nEnsembles: us from the entry of ask to its return; after send: from the moment at which the last member has encoded its row and begins to send it")
    print(f"  {'row':19}{'contender':11}{'members':>8}{'elements':>10}{'p50':>11}{'p99':>11}{'p99.9':>11}{'after send p50':>16}{'p99':>9}")
    for (row, who), r in rows.items():
        if row in ("idle", "flood", "rules"):
            continue
        after = f"{r['after_send_p50_us']:16.1f}{r['after_send_p99_us']:9.1f}" if r["after_send_p50_us"] else f"{'':25}"
        verdict = ""
        if who == "herring" and row in AFTER_SEND:
            verdict = f"   at most {AFTER_SEND[row]}" + met(r["after_send_p50_us"] <= AFTER_SEND[row])
        elif who == "herring" and row == "late":
            verdict = f"   p99 / p50 {r['p99_us'] / r['p50_us']:.2f}, at most {TAIL}" + met(r["p99_us"] <= TAIL * r["p50_us"])
        elif who == "herring" and row in ("killed", "stopped"):
            verdict = f"   p99.9 at most {r['deadline_us'] + 200:.0f}, without an answer {r['unanswered']:.0f}" + met(r["p999_us"] <= r["deadline_us"] + 200 and not r["unanswered"])
        print(f"  {row:19}{who:11}{r['members']:8.0f}{r['elements']:10.0f}{r['p50_us']:11.1f}{r['p99_us']:11.1f}{r['p999_us']:11.1f}{after}{verdict}")
    for row in ("tcp", "tcp_asleep"):
        herring, bound = rows.get((row, "herring")), rows.get(("tcp", "sockets"))
        for peer, times in TIMES.items():
            other = rows.get(("tcp", peer))
            if herring and other:
                ratio = other["p50_us"] / herring["p50_us"]
                print(f"  {peer} {other.get('version', '')}: {ratio:.2f} times Herring's p50 ({row}), at least {times}" + met(ratio >= times)
                      + f"   p99 {other['p99_us'] / herring['p99_us']:.2f} times Herring's, at least 1" + met(other["p99_us"] >= herring["p99_us"]))
        if herring and bound:
            print(f"  {row}: {herring['p50_us'] / bound['p50_us']:.2f} of what bare sockets take whose ends sleep, {bound['p50_us']:.1f} us at p50")
    flood = rows.get(("flood", "herring"))
    if flood:
        share = flood["requests_per_s"] / flood["member_per_s"]
        print(f"  {flood['in_flight']:.0f} requests in flight: {flood['requests_per_s']:.0f} a second, {share:.2f} of what the slowest member does while all work without a frontend, at least 0.9" + met(share >= 0.9))
    idle = rows.get(("idle", "herring"))
    if idle:
        print(f"  an idle frontend takes {idle['idle_percent_of_a_core']:.2f} % of a core, an idle member {idle['idle_member_percent']:.2f} %, less than 1"
              + met(max(idle["idle_percent_of_a_core"], idle["idle_member_percent"]) < 1))
    rules = rows.get(("rules", "herring"))
    if rules:
        print(f"  the rules take {rules['rules_ns']:.0f} ns of a request with a quorum when nobody is late, {rules['rules_all_ns']:.0f} without, at most 1000"
              + met(rules["rules_ns"] <= 1000))
    with open(out_path, "a") as file:
        for row in rows.values():
            file.write(json.dumps({"what": row["row"], **row}) + "\n")


if __name__ == "__main__":
    main()
