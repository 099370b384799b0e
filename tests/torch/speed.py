"""Times of collectives beside those of torch's Gloo, in turn in the same processes: medians in microseconds.

speed.py RANKS TURNS [cuda]: tensors of the host, or of the first CUDA device, which all ranks share; a call ends with the device.
With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set it is one of the ranks (hosts.sh).
"""

import os
import statistics
import sys
import time

import ranks
import torch
import torch.distributed as dist


def median_of(call, rounds):
    times = []
    for _ in range(rounds):
        dist.barrier(group=median_of.group)
        begin = time.perf_counter()
        call()
        if median_of.device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def measure(rank, size, turns, device):
    gloo = dist.new_group(backend="gloo")
    median_of.group, median_of.device = gloo, device
    groups = {"gloo": gloo, "herring": dist.group.WORLD}
    rows = []
    for elements in (256, 16384, 262144, 4194304, 16777216):
        rounds = max(5, min(50, 4194304 // elements))
        t = torch.ones(elements, device=device)
        found = {name: [] for name in groups}
        for _ in range(turns):
            for name, group in groups.items():
                t.fill_(1)
                found[name].append(median_of(lambda: dist.all_reduce(t, group=group), rounds))
        rows.append(("all_reduce", elements * 4, {n: statistics.median(v) for n, v in found.items()}))
    whole, part = torch.ones(4194304, device=device), torch.empty(4194304 // size, device=device)
    found = {name: [] for name in groups}
    for _ in range(turns):
        for name, group in groups.items():
            found[name].append(median_of(lambda: dist.reduce_scatter_tensor(part, whole, group=group), 5))
    rows.append(("reduce_scatter", whole.numel() * 4, {n: statistics.median(v) for n, v in found.items()}))
    found = {name: [] for name in groups}
    gathered = torch.empty(4194304, device=device)
    for _ in range(turns):
        for name, group in groups.items():
            found[name].append(median_of(lambda: dist.all_gather_into_tensor(gathered, part, group=group), 5))
    rows.append(("all_gather", whole.numel() * 4, {n: statistics.median(v) for n, v in found.items()}))
    return rows


def main():
    size, turns, device = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "cpu"
    if "RANK" in os.environ:
        import herring_torch  # noqa: F401
        torch.set_num_threads(1)
        dist.init_process_group("herring")
        rows, where = measure(dist.get_rank(), size, turns, device), "a host each"
        rank = dist.get_rank()
        dist.destroy_process_group()
        if rank != 0:
            return
    else:
        rows, where = ranks.run(size, measure, turns, device, within=400)[0], "one machine"
    print(f"{size} ranks, {where}, tensors of {device}; µs, medians of {turns} turns")
    for operation, n, times in rows:
        ratio = times["gloo"] / times["herring"]
        print(f"{operation:15} {n:>9} B  gloo {times['gloo']:>10.0f}  herring {times['herring']:>10.0f}  x {ratio:.1f}")


if __name__ == "__main__":
    main()
