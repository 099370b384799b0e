"""What users of torch.distributed do, over the backend herring: DDP, FSDP2, checkpoints, objects, groups."""

import datetime
import functools
import os
import sys
import tempfile
import threading
import time

import ranks
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

refused = functools.partial(ranks.refused, dist.DistBackendError)


def everything(rank, size, folder):
    """The check of a user: collectives, objects, DDP, FSDP2, a distributed checkpoint."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel as DDP

    x = torch.full((1000,), float(rank + 1))
    dist.all_reduce(x)
    assert (x == sum(range(1, size + 1))).all()
    b = torch.full((3,), rank, dtype=torch.uint8)
    dist.broadcast(b, 1)
    assert (b == 1).all()
    o = [None] * size
    dist.all_gather_object(o, {"r": rank})
    assert o == [{"r": r} for r in range(size)]
    words = ["from", rank] if rank == 0 else [None, None]
    dist.broadcast_object_list(words, 0)
    assert words == ["from", 0]

    torch.manual_seed(rank)
    m = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10))
    d = DDP(m, bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(d.parameters(), lr=1e-2)
    torch.manual_seed(100 + rank)
    for _ in range(20):
        data = torch.randn(32, 64)
        loss = F.cross_entropy(d(data), data[:, :10].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    same_on_all(torch.cat([q.detach().flatten() for q in m.parameters()]), size)

    u = DDP(nn.Linear(8, 4), find_unused_parameters=True)
    u(torch.randn(2, 8)).sum().backward()

    f = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 10))
    mesh = init_device_mesh("cpu", (size,))
    for q in f:
        fully_shard(q, mesh=mesh)
    fully_shard(f, mesh=mesh)
    optimizer = torch.optim.SGD(f.parameters(), lr=1e-2)
    for _ in range(3):
        f(torch.randn(4, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dcp.save({"m": m.state_dict()}, checkpoint_id=folder)
    dist.barrier()
    loaded = {"m": {k: torch.zeros_like(v) for k, v in m.state_dict().items()}}
    dcp.load(loaded, checkpoint_id=folder)
    assert all(torch.equal(v, m.state_dict()[k]) for k, v in loaded["m"].items() if v.dim() > 0 and "running" not in k)
    dist.barrier()


def same_on_all(p, size):
    ps = [torch.empty_like(p) for _ in range(size)]
    dist.all_gather(ps, p)
    assert all(torch.equal(ps[0], q) for q in ps)


def inputs(size, kind, elements=777):
    """The tensors of all ranks, alike on every rank."""
    made = []
    for r in range(size):
        generator = torch.Generator().manual_seed(r)
        if kind.is_floating_point:
            made.append((torch.rand(elements, generator=generator) * 4 - 2).to(kind))
        elif kind == torch.bool:
            made.append(torch.randint(0, 2, (elements,), generator=generator).to(kind))
        else:
            low = 0 if kind == torch.uint8 else -5
            made.append(torch.randint(low, 6, (elements,), generator=generator).to(kind))
    return made


def expected(tensors, rule):
    """Folded in the order of ranks, in float for 16-bit floats, rounded once: the bits that herring has."""
    kind = tensors[0].dtype
    wide = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.bool: torch.int32}.get(kind, kind)
    total = tensors[0].to(wide)
    for t in tensors[1:]:
        t = t.to(wide)
        if rule in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            total = total + t
        elif rule == dist.ReduceOp.PRODUCT:
            total = total * t
        elif rule == dist.ReduceOp.MIN:
            total = torch.minimum(total, t)
        else:
            total = torch.maximum(total, t)
    if rule == dist.ReduceOp.AVG:
        total = total / len(tensors)
    return total.to(kind)


FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8, torch.bool]
RULES = [dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]


def rules_and_types(rank, size):
    for kind in FLOATS + INTEGERS:
        for rule in RULES:
            if rule == dist.ReduceOp.AVG and kind in INTEGERS:
                refused("AVG", dist.all_reduce, torch.ones(3, dtype=kind), rule)
                continue
            given = inputs(size, kind)
            total = expected(given, rule)
            mine = given[rank].clone()
            dist.all_reduce(mine, rule)
            assert torch.equal(mine, total), (kind, rule, mine[:5], total[:5])
            mine = given[rank].clone()
            dist.reduce(mine, size - 1, rule)
            assert torch.equal(mine, total if rank == size - 1 else given[rank]), (kind, rule)
            given = inputs(size, kind, 96 * size)
            total = expected(given, rule)
            part = torch.empty(96, dtype=kind)
            dist.reduce_scatter_tensor(part, given[rank], rule)
            assert torch.equal(part, total[rank * 96 : rank * 96 + 96]), (kind, rule)
            part.zero_()
            dist.reduce_scatter(part, list(given[rank].chunk(size)), rule)
            assert torch.equal(part, total[rank * 96 : rank * 96 + 96]), (kind, rule)
    for rule in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        refused("SUM, AVG, MIN, MAX or PRODUCT", dist.all_reduce, torch.ones(3, dtype=torch.int32), rule)
    c = torch.full((4,), complex(rank, 1))
    dist.all_reduce(c)
    assert (c == complex(sum(range(size)), size)).all()


def movements(rank, size):
    for kind in FLOATS + INTEGERS + [torch.complex64]:
        for n in (1, 7, 1000):
            def of(r):
                return (torch.arange(n) % 5 + r).to(kind)

            t = of(rank)
            dist.broadcast(t, size - 1)
            assert torch.equal(t, of(size - 1))
            all_ = torch.empty(size * n, dtype=kind)
            dist.all_gather_into_tensor(all_, of(rank))
            assert torch.equal(all_, torch.cat([of(r) for r in range(size)]))
            parts = [torch.empty(n, dtype=kind) for _ in range(size)]
            dist.all_gather(parts, of(rank))
            assert all(torch.equal(parts[r], of(r)) for r in range(size))
            parts = [torch.empty(n, dtype=kind) for _ in range(size)] if rank == 1 else None
            dist.gather(of(rank), parts, 1)
            assert rank != 1 or all(torch.equal(parts[r], of(r)) for r in range(size))
            got = torch.empty(n, dtype=kind)
            dist.scatter(got, [of(r) for r in range(size)] if rank == 1 else None, 1)
            assert torch.equal(got, of(rank))
            out = torch.empty(size * n, dtype=kind)
            dist.all_to_all_single(out, torch.cat([of(rank + 2 * r) for r in range(size)]))
            assert torch.equal(out, torch.cat([of(r + 2 * rank) for r in range(size)]))
            sizes = [(rank + r) % 3 for r in range(size)]
            outs = [torch.empty(s, dtype=kind) for s in sizes]
            dist.all_to_all(outs, [torch.full((s,), rank).to(kind) for s in sizes])
            assert all((outs[r] == torch.full((sizes[r],), r).to(kind)).all() for r in range(size))
            out = torch.empty((sum(sizes), 2), dtype=kind)
            dist.all_to_all_single(out, torch.full((sum(sizes), 2), rank).to(kind), sizes, sizes)
            want = torch.cat([torch.full((sizes[r], 2), r) for r in range(size)]).to(kind)
            assert torch.equal(out, want)
    wide = torch.full((2, 3, 4, 4), float(rank)).to(memory_format=torch.channels_last)
    dist.all_reduce(wide)
    assert (wide == sum(range(size))).all()
    empty, empties = torch.empty(0), [torch.empty(0) for _ in range(size)]
    dist.all_reduce(empty)
    dist.reduce(empty, 0)
    dist.all_gather(empties, empty)
    dist.all_gather_into_tensor(empty, torch.empty(0))
    dist.broadcast(empty, 0)
    dist.gather(empty, empties if rank == 0 else None, 0)
    dist.scatter(empty, empties if rank == 0 else None, 0)
    dist.reduce_scatter_tensor(empty, torch.empty(0))
    dist.reduce_scatter(empty, empties)
    dist.all_to_all_single(empty, torch.empty(0))
    dist.all_to_all(empties, [torch.empty(0) for _ in range(size)])
    rows = torch.empty(0, 3)
    dist.all_to_all_single(rows, torch.empty(0, 3), [0] * size, [0] * size)


def in_place(rank, size):
    """A rank's part lies where it belongs in the whole, as in FSDP."""
    whole = torch.full((size * 5,), -1.0)
    whole[rank * 5 : rank * 5 + 5] = rank
    dist.all_gather_into_tensor(whole, whole[rank * 5 : rank * 5 + 5])
    assert torch.equal(whole, torch.arange(float(size)).repeat_interleave(5))
    parts = list(whole.chunk(size))
    dist.all_gather(parts, parts[rank])
    assert torch.equal(whole, torch.arange(float(size)).repeat_interleave(5))
    for kind in (torch.float32, torch.bfloat16, torch.int8):
        whole = torch.arange(size * 5).to(kind)
        mine = whole[rank * 5 : rank * 5 + 5]
        dist.reduce_scatter_tensor(mine, whole)
        assert torch.equal(mine, (torch.arange(size * 5) * size)[rank * 5 : rank * 5 + 5].to(kind))
    # The worker's thread has a mode of gradients of its own.
    outs = [torch.zeros(3, requires_grad=True) for _ in range(size)]
    with torch.no_grad():
        dist.all_gather(outs, torch.full((3,), float(rank)), async_op=True).wait()
    assert all((outs[r] == r).all() and outs[r].is_leaf for r in range(size))


def single(rank, size):
    """A group of one rank."""
    t = torch.full((5,), 3.0)
    dist.all_reduce(t, dist.ReduceOp.AVG)
    dist.broadcast(t, 0)
    out = [torch.empty(5) for _ in range(3)]
    dist.all_gather(out[:1], t)
    dist.all_to_all(out[1:2], [t])
    dist.gather(t, out[2:])
    assert all(torch.equal(one, t) for one in out)
    out = torch.empty(5)
    dist.reduce_scatter(out, [t])
    assert torch.equal(out, t)
    out.zero_()
    dist.scatter(out, [t])
    assert torch.equal(out, t)


def coalesced(rank, size):
    ones = [torch.full((5,), float(rank)), torch.full((3,), float(2 * rank))]
    with dist._coalescing_manager():
        for t in ones:
            dist.all_reduce(t)
    assert (ones[0] == sum(range(size))).all() and (ones[1] == 2 * sum(range(size))).all()
    outs = [torch.empty(size * 4), torch.empty(size * 2)]
    with dist._coalescing_manager():
        dist.all_gather_into_tensor(outs[0], torch.full((4,), float(rank)))
        dist.all_gather_into_tensor(outs[1], torch.full((2,), float(rank)))
    assert torch.equal(outs[1], torch.arange(size).repeat_interleave(2).float())
    outs = [torch.empty(4), torch.empty(2)]
    with dist._coalescing_manager():
        dist.reduce_scatter_tensor(outs[0], torch.ones(size * 4))
        dist.reduce_scatter_tensor(outs[1], torch.ones(size * 2))
    assert (outs[0] == size).all() and (outs[1] == size).all()
    import torch.distributed._functional_collectives as functional

    assert (functional.all_reduce(torch.ones(3), "sum", list(range(size))).wait() == size).all()


def asynchronous(rank, size):
    """Work and Future: results, order, callbacks, several in flight."""
    works = []
    for i in range(50):
        t = torch.full((100 + i,), float(rank + i))
        works.append((i, t, dist.all_reduce(t, async_op=True)))
    for i, t, w in works:
        assert w.wait() and w.is_completed() and w.is_success()
        assert (t == sum(r + i for r in range(size))).all()
    for i in range(200):  # nobody waits for them, or keeps their tensors
        dist.all_reduce(torch.ones(1 + i), async_op=True)
    t = torch.ones(10)
    future = dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert (future.wait() == 2 * size).all()
    w = dist.all_reduce(torch.ones(10), async_op=True)
    w.wait()
    assert (w.get_future().wait()[0] == size).all() and (w.result()[0] == size).all()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.AllreduceOptions()
    options.asyncOp = False
    w = backend.allreduce([t], options)
    assert w.wait() and (t == size * size).all()
    time.sleep(0.1)  # the worker is idle
    w = backend.allreduce([t], options)
    assert w.is_completed() and (t == size**3).all()


def callbacks(rank, size):
    """A callback calls, and waits for what it called, before anything that was called behind it."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
    from torch.nn.parallel import DistributedDataParallel as DDP

    def again(future):
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

    for _ in range(50):
        t, u = torch.full((1000,), float(rank + 1)), torch.full((1000,), 2.0)
        twice = dist.all_reduce(t, async_op=True).get_future().then(again)
        behind = dist.all_reduce(u, async_op=True)
        assert (twice.wait() == size * sum(range(size + 1))).all()
        behind.wait()
        assert (u == 2 * size).all()
    torch.manual_seed(1)
    d = DDP(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 8)), bucket_cap_mb=0.01)
    d.register_comm_hook(power.PowerSGDState(None, start_powerSGD_iter=2), power.powerSGD_hook)
    torch.manual_seed(rank)
    for _ in range(5):
        d.zero_grad()
        d(torch.randn(8, 64)).square().sum().backward()
        for p in d.parameters():
            same_on_all(p.grad.flatten(), size)


def callback_behind(rank, size):
    """A callback that waits for a call behind its own, or for its own, is told so, and the group goes on."""
    store = dist.distributed_c10d._get_default_store()
    t, u = torch.ones(3), torch.ones(3)
    if rank > 0:  # calls when the callbacks are there, and the call behind them is queued
        store.wait(["queued"])
        for one in (t, u):
            dist.all_reduce(one)
    else:
        first = dist.all_reduce(t, async_op=True)
        afters = [first.get_future().then(lambda _: first.wait()), first.get_future().then(lambda _: behind.wait())]
        behind = dist.all_reduce(u, async_op=True)
        store.set("queued", "")
        for after in afters:
            ranks.refused(RuntimeError, "cannot end before the callback does", after.wait)
        assert first.wait() and behind.wait()
    assert (t == size).all() and (u == size).all()


def threads(rank, size):
    """Threads with a group each, and two that share one."""
    own, faults = [dist.new_group() for _ in range(3)], []

    def calls(group, waits):
        try:
            for i in range(150):
                t = torch.full((50,), 1.0)
                work = dist.all_reduce(t, group=group, async_op=waits == "later")
                if waits == "later":
                    work.wait()
                assert (t == size).all()
        except Exception as e:
            faults.append(e)

    running = [threading.Thread(target=calls, args=(group, waits))
               for group, waits in zip([*own, own[0]], ["now", "later", "now", "later"])]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert not faults, faults
    for group in own:
        dist.destroy_process_group(group)


def groups(rank, size):
    """The world, two halves, even and odd ranks: five groups at once, three calls in flight."""
    half = [dist.new_group(list(range(size // 2))), dist.new_group(list(range(size // 2, size)))]
    comb = [dist.new_group(list(range(0, size, 2))), dist.new_group(list(range(1, size, 2)))]
    mine, other = half[rank // (size // 2)], comb[rank % 2]
    for i in range(50):
        a, b, c = (torch.full((64 + i,), float(rank)) for _ in range(3))
        works = [
            dist.all_reduce(a, async_op=True),
            dist.all_reduce(b, group=mine, async_op=True),
            dist.all_reduce(c, group=other, async_op=True),
        ]
        for w in works:
            w.wait()
        low = rank // (size // 2) * (size // 2)
        assert (a == sum(range(size))).all()
        assert (b == sum(range(low, low + size // 2))).all()
        assert (c == sum(range(rank % 2, size, 2))).all()
    dist.destroy_process_group(other)
    t = torch.ones(3)
    dist.all_reduce(t, group=mine)
    assert (t == size // 2).all()


def leaves_a_group(rank, size):
    """A rank leaves a group: the others of that group are told, and their other groups go on."""
    for _ in range(3):  # a name in the store that was in use before
        again = dist.new_group(list(range(size)), use_local_synchronization=True)
        t = torch.ones(3)
        dist.all_reduce(t, group=again)
        assert (t == size).all()
        dist.destroy_process_group(again)
    half = [dist.new_group(list(range(size // 2))), dist.new_group(list(range(size // 2, size)))]
    t = torch.ones(3)
    dist.all_reduce(t, group=half[rank // (size // 2)])
    if rank == 1:
        dist.destroy_process_group(half[0])
    elif rank == 0:
        refused("rank 1", dist.all_reduce, torch.ones(3), group=half[0])
    else:
        dist.all_reduce(t, group=half[1])
    dist.all_reduce(t)


def two_models(rank, size):
    """The gradients of two DDP models, interleaved."""
    from torch.nn.parallel import DistributedDataParallel as DDP

    torch.manual_seed(1)
    a, b = DDP(nn.Linear(300, 200), bucket_cap_mb=0.1), DDP(nn.Linear(200, 300), bucket_cap_mb=0.1)
    for step in range(5):
        torch.manual_seed(rank + 10 * step)
        x = torch.randn(8, 300)
        b(a(x)).square().sum().backward()
        a(x).sum().backward()
        for p in list(a.parameters()) + list(b.parameters()):
            same_on_all(p.grad.flatten(), size)
            p.grad = None


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.tensor(float(i * i))


def loader_workers(rank, size):
    """Worker processes of a data loader are forked off while the group lives."""
    from torch.nn.parallel import DistributedDataParallel as DDP

    d = DDP(nn.Linear(1, 1))
    for _ in range(2):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="fork")
        for x in loader:
            d(x.unsqueeze(1)).sum().backward()
    t = torch.ones(3)
    dist.all_reduce(t)
    assert (t == size).all()


def in_child(rank, size):
    """A forked child that calls is refused with a sentence, and its end does not touch the parent's group."""
    sys.stdout.flush()
    if rank == 1:
        time.sleep(0.5)
    in_flight = dist.all_reduce(torch.ones(3), async_op=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            dist.all_reduce(torch.ones(3))
        except Exception as e:
            code = 0 if "forked" in str(e) else 2
        import gc

        dist.distributed_c10d._world.pg_map.clear()
        gc.collect()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert in_flight.wait()
    t = torch.ones(3)
    dist.all_reduce(t)
    assert (t == size).all()


def again_after_end(rank, size):
    """A group is destroyed and made again in the same process."""
    for i in range(3):
        t = torch.ones(5)
        dist.all_reduce(t)
        assert (t == size).all()
        dist.destroy_process_group()
        ranks.again()


def same_store(rank, size, folder):
    """Groups one after the other over one store, of TCP and of a file."""
    dist.destroy_process_group()
    stores = [dist.TCPStore("127.0.0.1", ranks.port(), size, rank == 0), dist.FileStore(f"{folder}/store", size)]
    for store in stores:
        for i in range(3):
            dist.init_process_group("herring", store=store, rank=rank, world_size=size)
            t = torch.ones(5)
            dist.all_reduce(t)
            assert (t == size).all()
            if i == 1:
                slip = torch.ones(3, dtype=torch.int64 if rank == 1 else torch.float32)
                refused("in all_reduce of 3 Long", dist.all_reduce, slip)
            dist.destroy_process_group()
    ranks.again()


def misuse(rank, size):
    """A misuse of one rank, or of all, is an exception, and the group goes on."""
    refused("layout", dist.all_reduce, torch.eye(3).to_sparse())
    refused("contiguous", dist.all_reduce, torch.ones(4, 4)[:, ::2])
    refused("contiguous", dist.all_gather_into_tensor, torch.ones(4 * size, 4), torch.ones(4, 4).t())
    refused("gloo", dist.send, torch.ones(4), (rank + 1) % size)
    refused("are not reduced", dist.all_reduce, torch.ones(4).to(torch.float8_e4m3fn))
    refused("elements", dist.all_gather, [torch.ones(4) for _ in range(size)], torch.ones(5))
    refused("times the ranks", dist.reduce_scatter_tensor, torch.ones(4), torch.ones(4 * size + 1))
    freed = torch.ones(8)
    freed.untyped_storage().resize_(0)
    refused("freed", dist.all_reduce, freed)
    if rank == 0:
        refused(f"rank {rank}: all_reduce", dist.all_reduce, torch.eye(3).to_sparse())
    t = torch.ones(3)
    dist.all_reduce(t)
    assert (t == size).all()


def differ(rank, size, slip):
    """Ranks in different calls get an exception, all of them, and can make a group again."""
    if slip != "first":  # the first call of a type makes its reducer: the slip may be there
        warm = [torch.ones(3), torch.ones(3, dtype=torch.int64)]
        for t in warm:
            dist.all_reduce(t)
        dist.broadcast(warm[0], 0)
    begin = time.monotonic()
    odd = rank == 1
    try:
        if slip == "size":
            dist.all_reduce(torch.ones(11 if odd else 10))
        elif slip in ("type", "first"):
            dist.all_reduce(torch.ones(10, dtype=torch.int64 if odd else torch.float32))
        elif slip == "rule":
            dist.all_reduce(torch.ones(10), dist.ReduceOp.MAX if odd else dist.ReduceOp.SUM)
        elif slip == "order":
            for call in [0, 1] if odd else [1, 0]:
                dist.all_reduce(torch.ones(10)) if call else dist.broadcast(torch.ones(10), 0)
        elif slip == "root":
            dist.broadcast(torch.ones(10), 1 if odd else 0)
        elif slip == "barrier":
            dist.barrier() if odd else dist.all_reduce(torch.ones(10))
    except dist.DistBackendError as e:
        assert "herring: rank" in str(e), str(e)
        said = str(e).splitlines()[0]
    else:
        raise AssertionError(f"no exception on rank {rank}")
    took = time.monotonic() - begin
    assert took < 8, took
    dist.destroy_process_group()
    ranks.again()
    t = torch.ones(5)
    dist.all_reduce(t)
    assert (t == size).all()
    return f"{took:.2f} s: {said}"


def killed(rank, size):
    """A rank is killed: all others get an exception that names it."""
    t = torch.ones(1000)
    dist.all_reduce(t)
    begin = time.monotonic()
    if rank == size - 1:
        os.kill(os.getpid(), 9)
    try:
        while True:
            dist.all_reduce(t)
    except dist.DistBackendError as e:
        assert f"rank {size - 1}" in str(e), str(e)
        took = time.monotonic() - begin
        assert took < 6, took
        return f"{took:.2f} s: {str(e).splitlines()[0]}"


def leaves(rank, size):
    """A rank leaves the group while the others call."""
    dist.all_reduce(torch.ones(3))
    begin = time.monotonic()
    if rank == 1:
        dist.destroy_process_group()
        return "left"
    try:
        dist.all_reduce(torch.ones(1000))
    except dist.DistBackendError as e:
        assert "rank 1" in str(e), str(e)
        assert time.monotonic() - begin < 8
        return f"{time.monotonic() - begin:.2f} s: {str(e).splitlines()[0]}"
    raise AssertionError("no exception")


def late(rank, size):
    """The timeout that set_timeout sets ends a call that a rank does not join."""
    dist.all_reduce(torch.ones(3))
    dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(datetime.timedelta(seconds=2))
    begin = time.monotonic()
    if rank == 1:
        time.sleep(5)
        return None
    try:
        dist.all_reduce(torch.ones(3))
    except dist.DistBackendError as e:
        assert "rank 1" in str(e), str(e)
        assert 1.5 < time.monotonic() - begin < 4.5, time.monotonic() - begin
        return str(e).splitlines()[0]
    raise AssertionError("no exception")


def aborted(rank, size):
    """abort() ends calls in flight of all ranks."""
    dist.all_reduce(torch.ones(3))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 1:
        time.sleep(0.5)
        backend.abort()
        refused("rank 1", dist.all_reduce, torch.ones(3))
        return
    work = dist.all_reduce(torch.ones(3), async_op=True)
    after = work.get_future().then(lambda future: future.value())
    refused("rank 1", work.wait)
    refused("rank 1", work.get_future().wait)
    refused("rank 1", dist.all_reduce, torch.ones(3))
    ranks.refused(RuntimeError, "rank 1", after.wait)


def destroyed_and_aborted(rank, size):
    """One thread destroys a group that waits for a rank; another asks for its error meanwhile, and aborts it."""
    dist.all_reduce(torch.ones(3))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 1:
        time.sleep(3)
        refused("rank 0", dist.all_reduce, torch.ones(3))
        return
    work = dist.all_reduce(torch.ones(3), async_op=True)
    ends = threading.Thread(target=dist.destroy_process_group)
    ends.start()
    time.sleep(0.5)
    get_error = getattr(backend, "get_error", lambda: None)  # not in all versions
    begin = time.monotonic()
    get_error()
    assert ends.is_alive() and time.monotonic() - begin < 1, time.monotonic() - begin
    backend.abort()
    ends.join(20)
    assert not ends.is_alive()
    refused("abort", work.wait)
    get_error()
    backend.abort()


def exits_in_flight(rank, size):
    """The interpreter ends with work in flight, which rank 1 joins late."""
    dist.all_reduce(torch.ones(3))
    if rank == 1:
        time.sleep(1)
    keep = [dist.all_reduce(torch.ones(100), async_op=True) for _ in range(5)]
    keep[2].get_future().then(lambda future: future.value()[0] * 2)
    __import__("atexit").register(lambda: keep.clear())
    dist.destroy_process_group = lambda: None  # as scripts that forget it
    return None


def exits_of_many(rank, size):
    """The interpreter of rank 0 ends with calls in flight in several groups, which no other rank joins: its 5 s are for all."""
    several = [None, *(dist.new_group() for _ in range(4))]
    dist.all_reduce(torch.ones(3))
    dist.destroy_process_group = lambda: None
    if rank == 0:
        exits_of_many.works = [dist.all_reduce(torch.ones(3), group=group, async_op=True) for group in several]
        return
    time.sleep(9)
    for group in several:
        refused("rank 0", dist.all_reduce, torch.ones(3), group=group)


def detail(rank, size):
    """TORCH_DISTRIBUTED_DEBUG=DETAIL wraps the group and compares calls by Gloo."""
    assert os.environ["TORCH_DISTRIBUTED_DEBUG"] == "DETAIL"
    t = torch.ones(3)
    dist.all_reduce(t)
    assert (t == size).all()
    o = [None] * size
    dist.all_gather_object(o, rank)
    from torch.nn.parallel import DistributedDataParallel as DDP

    d = DDP(nn.Linear(4, 4))
    d(torch.ones(2, 4)).sum().backward()
    from torch.distributed.fsdp import fully_shard

    f = fully_shard(nn.Linear(64, 64), mesh=dist.init_device_mesh("cpu", (size,)))
    f(torch.randn(4, 64)).sum().backward()
    own = dist.new_group(list(range(size)))
    dist.all_reduce(t, group=own, async_op=True).wait()
    assert (t == size * size).all()
    ranks.refused(RuntimeError, "mismatch", dist.all_reduce, torch.ones(3 + rank))


SLIPS = ["size", "type", "first", "rule", "order", "root", "barrier"]


def main():
    wanted = sys.argv[1:]

    def chosen(names):
        return [n for n in names if not wanted or any(w in n for w in wanted)]

    def together(size, *names):
        if chosen(names):
            with tempfile.TemporaryDirectory() as folder:
                calls = []
                for name in chosen(names):
                    case, *words = name.split()
                    calls.append((name, globals()[case], *words, *([folder] if case in ("everything", "same_store") else [])))
                ranks.run(size, ranks.several, calls)

    def alone(size, function, dies=(), forked=True):
        if chosen([function.__name__]):
            begin = time.monotonic()
            values = ranks.run(size, function, dies=dies, forked=forked)
            said = "; ".join(sorted({str(v) for v in values.values() if v is not None}))
            print(f"ok: {function.__name__}, {size} ranks ({time.monotonic() - begin:.1f} s) {said}", flush=True)

    together(2, "everything", "rules_and_types", "movements", "in_place", "coalesced", "asynchronous", "callbacks",
             "callback_behind", "threads", "two_models", "loader_workers", "in_child", "again_after_end", "same_store", "misuse",
             *(f"differ {slip}" for slip in SLIPS))
    together(4, "everything", "rules_and_types", "groups", "leaves_a_group", "callbacks", "differ type")
    together(3, "movements", "in_place")
    together(1, "single")
    alone(3, killed, dies=(2,))
    alone(3, leaves)
    alone(2, late)
    alone(2, aborted)
    alone(2, destroyed_and_aborted)
    alone(2, exits_in_flight, forked=False)
    alone(2, exits_of_many, forked=False)
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    alone(2, detail, forked=False)
    print("passed")


if __name__ == "__main__":
    main()
