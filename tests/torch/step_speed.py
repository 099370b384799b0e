"""Times of a training step of 10 million parameters: DDP with AdamW, over Gloo and over herring, beside DataParallel
and one process alone; in turn in the same processes, medians in milliseconds."""

import statistics
import sys
import time

import herring_torch
import ranks
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def measure(rank, size, turns):
    def model():
        torch.manual_seed(1)
        return nn.Sequential(*(m for _ in range(10) for m in (nn.Linear(1024, 1024), nn.GELU())))

    def ddp(group):
        trained = DistributedDataParallel(model(), process_group=group, gradient_as_bucket_view=True)
        return trained, torch.optim.AdamW(trained.parameters(), fused=True)

    trained = herring_torch.DataParallel(model(), "adamw")
    runs = {"DDP over gloo": ddp(dist.new_group(backend="gloo")), "DDP over herring": ddp(None),
            "DataParallel": (trained, trained.optimizer), "alone, no update": (model(), None)}
    x = torch.randn(16, 1024)
    times = {name: [] for name in runs}
    for _ in range(turns):
        for name, (one, optimizer) in runs.items():
            dist.barrier()
            begin = time.perf_counter()
            one(x).square().mean().backward()
            if optimizer:
                optimizer.step()
            times[name].append((time.perf_counter() - begin) * 1e3)
            one.zero_grad()
    trained.close()
    return {name: statistics.median(of[2:]) for name, of in times.items()}


def main():
    size, turns = int(sys.argv[1]), int(sys.argv[2])
    print(f"{size} ranks, one machine; ms a step, medians of {turns} turns")
    for name, took in ranks.run(size, measure, turns, within=400)[0].items():
        print(f"{name:17} {took:7.1f}")


if __name__ == "__main__":
    main()
