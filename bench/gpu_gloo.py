#!/usr/bin/env python3
# herring: PyTorch's Gloo with tensors on a GPU: lines as gpu_bench prints them, of the same sizes.
# SPDX-License-Identifier: Apache-2.0
#
#   bench/gpu_gloo.py [--ranks 2,4] [--sizes 4096,...] [--tables bench/data] [--seconds 0.1] [--device cuda]
#
# Processes on the first device, over TCP on loopback: beside the part `nodes` of gpu_bench, by processes. A line has medians in
# microseconds, from all_reduce until the device has ended, of the slowest rank; BERT-large goes in buckets of 25 MiB (the first: 1 MiB),
# packed, all started, waited for and copied back, as DistributedDataParallel does. Every element of the last result is compared.
# Where PyTorch or a device is missing it says so and does nothing. --device cpu: the same with tensors of the host.
import argparse
import os
import statistics
import sys
import time


def read_table(path):
    with open(path) as table:
        return [int(line.rsplit(",", 1)[1]) for line in list(table)[1:]]


def buckets_of(sizes):
    """Tensors in the order of the table: lists of their elements."""
    cap, bucket, all_of_them = 1 << 20, [], []
    for i, n in enumerate(sizes):
        bucket.append(n)
        if sum(bucket) * 4 >= cap or i + 1 == len(sizes):
            all_of_them.append(bucket)
            cap, bucket = 25 << 20, []
    return all_of_them


def rank_main(rank, ranks, options, port, wrong):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    device = torch.device(options.device)

    def synchronise():
        if device.type == "cuda":
            torch.cuda.synchronize()

    def largest(value):
        of_all = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(of_all, op=dist.ReduceOp.MAX)
        return of_all.item()

    def values(n, first):
        return (torch.arange(n, device=device) & 255).float() + first

    def median_us(call):
        def timed():
            start = time.perf_counter()
            call()
            synchronise()
            return (time.perf_counter() - start) * 1e6

        dist.barrier()
        timed()
        once = largest(timed())
        calls = max(3, min(300, int(options.seconds * 1e6 / once)))
        return largest(statistics.median(timed() for _ in range(calls)))

    # Each call divides, as Herring's average does, so that values stay what they are.
    def cell(tensors, call):
        for t in tensors:
            t.copy_(values(t.numel(), rank))
        us = median_us(call)
        right = all(torch.equal(t, values(t.numel(), (ranks - 1) / 2)) for t in tensors)
        if largest(0 if right else 1) == 0:
            return f" {us:11.1f}"
        wrong.value = 1
        return f" {'wrong':>11}"

    def average(buffer):
        dist.all_reduce(buffer)
        buffer.div_(ranks)

    line = f"{f'gloo, {ranks} processes,':<27} {'call':<20}"
    for size in options.sizes:
        buffer = torch.empty(size // 4, device=device)
        line += cell([buffer], lambda: average(buffer))

    buckets = []
    for sizes in buckets_of(read_table(f"{options.tables}/bert_large.csv")):
        buckets.append(([torch.empty(n, device=device) for n in sizes], torch.empty(sum(sizes), device=device)))

    def step():
        works = []
        for tensors, packed in buckets:
            torch.cat(tensors, out=packed)
            works.append(dist.all_reduce(packed, async_op=True))
        for work, (tensors, packed) in zip(works, buckets):
            work.wait()
            packed.div_(ranks)
            for t, part in zip(tensors, packed.split([t.numel() for t in tensors])):
                t.copy_(part)

    line += cell([t for tensors, _ in buckets for t in tensors], step)
    if rank == 0:
        print(line, flush=True)
    dist.destroy_process_group()


def main():
    numbers = lambda text: [int(n) for n in text.split(",")]
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--sizes", type=numbers, default=[4096, 65536, 1 << 20, 16 << 20, 64 << 20, 256 << 20])
    parser.add_argument("--tables", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "data"))
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    try:
        import torch
        import torch.multiprocessing as processes
    except ImportError:
        print("SKIPPED: gpu_gloo: PyTorch is not installed: no figures of Gloo's")
        return 0
    if options.device == "cuda" and not torch.cuda.is_available():
        print("SKIPPED: gpu_gloo: PyTorch finds no GPU: no figures of Gloo's")
        return 0
    print(f"\n{'gloo':<10} us, median; bytes of a rank:        ", end="")
    print("".join(f" {size:11}" for size in options.sizes) + f" {'bert_large':>11}; PyTorch {torch.__version__}", flush=True)
    start = processes.get_context("spawn")
    wrong = start.Value("i", 0)
    for ranks in options.ranks:
        port = 20000 + (os.getpid() + ranks) % 20000
        all_ranks = [start.Process(target=rank_main, args=(r, ranks, options, port, wrong)) for r in range(ranks)]
        for process in all_ranks:
            process.start()
        for process in all_ranks:
            process.join()
        if any(process.exitcode for process in all_ranks):
            print(f"FAILED: gloo, {ranks} processes")
            wrong.value = 1
    return wrong.value


if __name__ == "__main__":
    sys.exit(main())
