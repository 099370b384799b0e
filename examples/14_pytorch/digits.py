"""Trains a small network on handwritten digits with DDP, FSDP2 or Herring's DataParallel, by torchrun; prints loss, hash
and step time."""

import argparse
import hashlib
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="herring")
how = parser.add_mutually_exclusive_group()
how.add_argument("--fsdp", action="store_true")
how.add_argument("--herring", action="store_true", help="weights are updated where gradients are summed")
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()

if options.herring or options.backend.startswith("herring"):
    import herring_torch  # registers the backend

dist.init_process_group(options.backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(1)
torch.manual_seed(1)

rows = [line.split(",") for line in (pathlib.Path(__file__).parents[1] / "data/digits.csv").read_text().split()]
rows = torch.tensor([[float(x) for x in row] for row in rows if row[0].strip("-.").isdigit()])
pixels, labels = rows[:, :-1] / 16, rows[:, -1].long()
pixels, labels = pixels[rank::size], labels[rank::size]  # each rank has its own part

model = nn.Sequential(nn.Linear(pixels.shape[1], 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
if options.herring:
    trained = herring_torch.DataParallel(model, "adamw", lr=1e-3)
    optimizer = trained.optimizer
elif options.fsdp:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    trained = model
else:
    trained = nn.parallel.DistributedDataParallel(model)
if not options.herring:
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-3)

times = []
for step in range(options.steps):
    begin = time.perf_counter()
    chosen = torch.randint(0, len(labels), (64,))
    loss = F.cross_entropy(trained(pixels[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - begin)
    if step % 50 == 0 and rank == 0:
        print(f"step {step:4}  loss {loss.item():.3f}")

weights = [p.full_tensor() if options.fsdp else p for p in model.parameters()]
digest = hashlib.sha256(b"".join(w.detach().numpy().tobytes() for w in weights)).hexdigest()[:16]
digests = [None] * size
dist.all_gather_object(digests, digest)
if rank == 0:
    assert len(set(digests)) == 1, digests
    print(f"{size} ranks over {options.backend}: loss {loss.item():.3f}, the same weights on all ranks ({digest}), "
          f"{sorted(times)[len(times) // 2] * 1e3:.2f} ms a step")
dist.destroy_process_group()
