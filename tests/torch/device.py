"""Collectives, streams, DDP and FSDP2 on tensors of a CUDA device, which ranks may share; told to, of the CPU where there is none."""

import sys

import check
import ranks
import torch
import torch.distributed as dist
import torch.nn as nn

HAS_DEVICE = torch.cuda.is_available()


def place(rank):
    if not HAS_DEVICE:
        return torch.device("cpu")
    torch.cuda.set_device(rank % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def device_rules(rank, size):
    """The bits are those of tensors of the CPU."""
    at = place(rank)
    for kind in check.FLOATS + check.INTEGERS:
        for rule in check.RULES:
            if rule == dist.ReduceOp.AVG and kind in check.INTEGERS:
                continue
            given = check.inputs(size, kind, 96 * size)
            total = check.expected(given, rule)
            mine, part = given[rank].to(at), torch.empty(96, dtype=kind, device=at)
            dist.reduce_scatter_tensor(part, mine, rule)
            dist.all_reduce(mine, rule)
            assert torch.equal(mine.cpu(), total), (kind, rule)
            assert torch.equal(part.cpu(), total[rank * 96 : rank * 96 + 96]), (kind, rule)


def device_movements(rank, size):
    at = place(rank)

    def of(r):
        return torch.arange(1000.0, device=at) + 1000 * r

    t = of(rank)
    dist.broadcast(t, 1)
    assert torch.equal(t, of(1))
    whole, parts = torch.empty(1000 * size, device=at), [torch.empty(1000, device=at) for _ in range(size)]
    dist.all_gather_into_tensor(whole, of(rank))
    dist.all_gather(parts, of(rank))
    assert torch.equal(whole, torch.cat(parts)) and torch.equal(parts[1], of(1))
    out = torch.empty(1000 * size, device=at)
    dist.all_to_all_single(out, torch.cat([of(rank + 10 * r) for r in range(size)]))
    assert torch.equal(out, torch.cat([of(r + 10 * rank) for r in range(size)]))
    dist.gather(of(rank), parts if rank == 0 else None, 0)
    dist.scatter(t, parts if rank == 0 else None, 0)
    assert torch.equal(t, of(rank))
    if HAS_DEVICE:
        check.refused("one device", dist.all_to_all, [torch.empty(3) for _ in range(size)],
                      [torch.empty(3, device=at) for _ in range(size)])
    dist.barrier()


def device_streams(rank, size):
    """A call comes behind what the caller's stream has to do, and its results before what the stream does next."""
    at = place(rank)
    matrix = torch.randn(2048 if HAS_DEVICE else 64, 2048 if HAS_DEVICE else 64, device=at)
    side = torch.cuda.Stream() if HAS_DEVICE else None
    for step in range(20):
        with torch.cuda.stream(side):
            for _ in range(20):
                matrix = torch.tanh(matrix @ matrix)  # keeps the stream busy
            t = torch.full((100_000,), float(rank + step), device=at)
            work = dist.all_reduce(t, async_op=True)
            twice = work.get_future().then(lambda future: future.value()[0] * 2)
            work.wait()
            total = t + 1
            doubled = twice.wait()
        if side:
            side.synchronize()
        wanted = sum(range(size)) + size * step
        assert (total == wanted + 1).all() and (doubled == 2 * wanted).all()


def device_training(rank, size):
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel as DDP

    at = place(rank)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10)).to(at)
    trained = DDP(model, bucket_cap_mb=0.05)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        trained(torch.randn(32, 64, device=at)).square().mean().backward()
        optimizer.step()
    check.same_on_all(torch.cat([p.detach().flatten() for p in model.parameters()]), size)
    sharded = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 10)).to(at)
    fully_shard(sharded, mesh=dist.init_device_mesh(at.type, (size,)))
    before = sharded[0].weight.full_tensor().clone()
    optimizer = torch.optim.SGD(sharded.parameters(), lr=1e-2)
    for _ in range(3):
        sharded(torch.randn(4, 64, device=at)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    after = sharded[0].weight.full_tensor()
    check.same_on_all(after.flatten(), size)
    assert not torch.equal(before, after)


def main():
    wanted = sys.argv[1:]
    if not HAS_DEVICE and "device" not in wanted:
        return
    calls = [device_rules, device_movements, device_streams, device_training]
    calls = [one for one in calls if not wanted or any(w in one.__name__ for w in wanted)]
    if calls:
        ranks.run(2, ranks.several, [(one.__name__, one) for one in calls])
        print(f"passed on {torch.cuda.get_device_name() if HAS_DEVICE else 'the CPU, for there is no CUDA device'}")


if __name__ == "__main__":
    main()
