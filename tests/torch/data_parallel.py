"""herring_torch.DataParallel, against torch's own optimizers in float64 on the same data; and what it refuses."""

import atexit
import copy
import hashlib
import os
import sys
import tempfile
import time

import herring_torch
import ranks
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from herring_torch import _libraries
from herring_torch.data_parallel import DataParallel
from ranks import refused

POLICIES = "transport::tcp, intra_node::shared_memory"
HALF = "on_nonfinite<clipped<adamw>, nonfinite::skip_step>"
OUTER = "diloco<4, nesterov>"
WARM = "post_local<2, 3>"
SELECTIVE = "selective<selective_tuning{.threshold = 1e9f, .window = 3}>"
PACKS = [("double", "adamw"), ("double", WARM), ("double", SELECTIVE), ("double", "adamw, placement::dedicated"),
         ("float16", HALF), ("float", OUTER)]


def network(seed=1, kind=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(20, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 5)).to(kind)


def batch(rank, step, kind=torch.float64, rows=16):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(rows, 20, generator=generator, dtype=torch.float64).to(kind)
    return x, x[:, :5].argmax(1)


def loss_of(model, rank, step):
    x, y = batch(rank, step)
    return F.cross_entropy(model(x), y)


def all_batches(model, size, step):
    """The loss of all ranks: what one process without any would train on."""
    return sum(loss_of(model, r, step) for r in range(size)) / size


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def same_on_all(model, size, group=None):
    digests = [None] * size
    dist.all_gather_object(digests, hashlib.sha256(weights_of(model).numpy().tobytes()).hexdigest(), group)
    assert len(set(digests)) == 1, digests


def near(a, b, within=1e-9):
    assert torch.allclose(a, b, rtol=0, atol=within), (a - b).abs().max()


# ---- beside torch's own


def adamw(rank, size):
    """50 steps beside torch.optim.AdamW on the data of all ranks, with a schedule and two groups of parameters."""
    model = network(seed=1 + rank)  # rank 0's is what counts
    reference = network(seed=1)

    def groups(of):
        weights = [p for p in of.parameters() if p.dim() > 1]
        return [{"params": weights}, {"params": [p for p in of.parameters() if p.dim() == 1], "weight_decay": 0.0}]

    trained = DataParallel(model, "adamw", params=groups(model), lr=3e-3, weight_decay=0.1)
    theirs = torch.optim.AdamW(groups(reference), lr=3e-3, weight_decay=0.1)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(one, 60) for one in (trained.optimizer, theirs)]
    near(weights_of(model), weights_of(reference), 0)
    for step in range(50):
        loss = loss_of(trained, rank, step)
        loss.backward()
        trained.optimizer.step()
        trained.optimizer.zero_grad()
        alone = loss_of(reference, rank, step)
        near(loss.detach(), alone.detach(), 1e-5)
        theirs.zero_grad()
        all_batches(reference, size, step).backward()
        theirs.step()
        for one in schedules:
            one.step()
    assert loss < 0.8, loss
    near(weights_of(model), weights_of(reference))
    same_on_all(model, size)
    assert trained.outcome == "exchanged" and trained.gradient_norm is None
    trained.close()
    trained.close()  # once more does nothing
    return f"loss {loss.item():.3f}"


def cases(rank, size):
    """Accumulation, parameters without gradients, tied and frozen ones, gradients set by hand."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(20, 20)
            self.tied = nn.Linear(20, 20)
            self.tied.weight = self.first.weight
            self.unused = nn.Linear(7, 3)
            self.frozen = nn.Linear(20, 20).requires_grad_(False)
            self.empty = nn.Parameter(torch.empty(0, 4))
            self.norm = nn.BatchNorm1d(20)
            self.last = nn.Linear(20, 5)

        def forward(self, x):
            return self.last(self.norm(self.frozen(self.tied(self.first(x).tanh()))))

    torch.manual_seed(rank)
    model = Net().double()
    trained = DataParallel(model, "adamw", lr=1e-2)
    reference = copy.deepcopy(model)  # of rank 0's, by now
    theirs = torch.optim.AdamW(reference.parameters(), lr=1e-2)
    assert trained.module.tied.weight is trained.module.first.weight
    frozen = [None] * size
    dist.all_gather_object(frozen, model.frozen.weight.sum().item())
    assert len(set(frozen)) == 1
    for step in range(6):
        # Of each rank the gradients of its own batches are averaged: of the reference those of all are.
        with trained.no_sync():
            loss_of(trained, rank, 3 * step).backward()
            loss_of(trained, rank, 3 * step + 1).backward()
        assert model.last.weight.grad.data_ptr() == trained._gradients[trained._names.index("last.weight")].data_ptr()
        if step % 2:  # else all of them are sent by step()
            loss_of(trained, rank, 3 * step + 2).backward()
        model.unused.bias.grad = torch.ones(3, dtype=torch.float64)  # by hand
        trained.optimizer.step()
        model.zero_grad(set_to_none=step % 3 > 0)
        theirs.zero_grad()
        for n in range(3 if step % 2 else 2):
            for r in range(size):
                state = copy.deepcopy(reference.norm.state_dict())
                (loss_of(reference, r, 3 * step + n) / size).backward()
                if r != rank:
                    reference.norm.load_state_dict(state)  # each rank's buffers are its own
        reference.unused.bias.grad = torch.ones(3, dtype=torch.float64)
        reference.unused.weight.grad = torch.zeros(3, 7, dtype=torch.float64)
        reference.empty.grad = torch.zeros(0, 4, dtype=torch.float64)
        theirs.step()
        near(weights_of(model), weights_of(reference))
    near(model.norm.running_mean, reference.norm.running_mean)
    same_on_all(model, size)
    trained.close()


def on_its_way(rank, size):
    """A gradient that the reducer has is not read, written or added to; the step goes on."""
    model = network()
    trained = DataParallel(model, "adamw")
    loss_of(trained, rank, 0).backward()
    refused(RuntimeError, "on its way", nn.utils.clip_grad_norm_, model.parameters(), 1.0)
    refused(RuntimeError, "on its way", lambda: model[0].weight.grad.sum())
    assert repr(model[0].weight.grad) == "a gradient on its way"
    refused(RuntimeError, "no_sync", lambda: loss_of(trained, rank, 1).backward())
    model.zero_grad()
    refused(RuntimeError, "no_sync", lambda: loss_of(trained, rank, 1).backward())
    refused(ValueError, "closure", trained.optimizer.step, lambda: None)
    trained.optimizer.step()
    assert all(p.grad is None for p in model.parameters())
    kept = loss_of(trained, rank, 1)
    kept.backward(retain_graph=True)
    trained.optimizer.step()
    refused(RuntimeError, "modified by an inplace operation", kept.backward)  # weights are others now
    sparse = nn.Embedding(10, 3, sparse=True).double()
    other = DataParallel(sparse, "adamw")
    refused(RuntimeError, "sparse", lambda: other(torch.tensor([1])).sum().backward())
    sparse.weight.grad = None
    model.to(torch.float32)
    refused(RuntimeError, "close()", trained.optimizer.step)
    other.close()


def views(rank, size):
    """Memory lives as long as a view of it; a model that is closed is one without ranks again."""
    model = network()
    trained = DataParallel(model, "adamw")
    loss_of(trained, rank, 0).backward()
    trained.optimizer.step()
    before = weights_of(model)
    held = trained.state_dict()
    assert list(held) == list(model.state_dict()) and held["0.weight"].data_ptr() == model[0].weight.data_ptr()
    trained.close()
    near(weights_of(model), before, 0)
    near(held["0.weight"], model[0].weight, 0)
    assert held["0.weight"].data_ptr() != model[0].weight.data_ptr()
    del held
    plain = torch.optim.SGD(model.parameters(), 0.1)
    loss_of(model, rank, 1).backward()
    plain.step()
    again = DataParallel(model, "adamw")
    same_on_all(model, size)
    del again


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((20,), float(i), dtype=torch.float64)


def two_models(rank, size):
    """Two models by turns, one of which feeds the other, with a data loader that forks workers."""
    models = network(seed=2), nn.Linear(5, 20, dtype=torch.float64)
    first, second = (DataParallel(model, "adamw") for model in models)
    for _ in range(2):
        loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="fork")
        for x in loader:
            first(second(first(x + rank))).square().sum().backward()
            second.optimizer.step()
            first.optimizer.step()
    for model in models:
        same_on_all(model, size)
    first.close()
    second.close()


# ---- refused


def refusals(rank, size):
    """What it does not take: a sentence on every rank, and the process group goes on."""
    linear = nn.Linear(3, 3, dtype=torch.float64)
    refused(ValueError, "no memory yet", DataParallel, nn.Linear(3, 3, device="meta"))
    refused(ValueError, "no memory yet", DataParallel, nn.LazyLinear(3))
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        elsewhere = nn.Linear(3, 3, device="cuda")
    refused(ValueError, "cuda:0", DataParallel, elsewhere)
    refused(ValueError, "this model has torch.float32, torch.float64", DataParallel, nn.Sequential(linear, nn.Linear(3, 3)))
    refused(ValueError, "none that requires a gradient", DataParallel, nn.Linear(3, 3).requires_grad_(False))
    shared = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    shared[1].weight.data = shared[0].weight.data
    refused(ValueError, "share memory", DataParallel, shared)
    refused(ValueError, "in no group", DataParallel, linear, params=[linear.weight])
    refused(ValueError, "twice", DataParallel, linear, params=[linear.weight, linear.bias, linear.bias])
    refused(ValueError, "sync=", DataParallel, linear, torch.optim.SGD(linear.parameters(), 0.1))
    refused(ValueError, "commas", DataParallel, linear, 'adamw; system("x")')
    if rank == 0:  # it costs a compiler's run, and no other rank is waited for
        refused(herring_torch.CompileError, "[HRG-M14]", DataParallel, linear, "adamw", sync="every<4>")
    refused(TypeError, "no hyper value momentum; there are lr, beta1, beta2, eps, weight_decay", DataParallel, linear, "adamw",
            momentum=0.9)
    trained = DataParallel(linear, "adamw", lr=-1.0)
    said = refused(dist.DistBackendError, "rate", trained(torch.ones(1, 3, dtype=torch.float64)).sum().backward)
    trained.close()
    dist.barrier()
    return said


def shared_folder(rank, group=None):
    """A folder of all ranks, which goes with rank 0's process."""
    name = [None]
    if rank == 0:
        made = tempfile.TemporaryDirectory()
        atexit.register(made.cleanup)
        name = [made.name]
    dist.broadcast_object_list(name, 0, group)
    return name[0]


def differ(rank, size):
    """Ranks with other models, and with another number of parameters in a checkpoint."""
    odd = nn.Sequential(nn.Linear(3, 3), *([nn.Linear(3, 3)] if rank == 1 else [])).double()
    said = refused(dist.DistBackendError, "mismatch", DataParallel, odd, "adamw")
    dist.barrier()
    folder = shared_folder(rank)
    trained = DataParallel(nn.Linear(3, 3, dtype=torch.float64), "adamw")
    trained.save(folder)
    other = DataParallel(nn.Linear(3, 4, dtype=torch.float64), "adamw")
    before = weights_of(other)
    refused(dist.DistBackendError, "mismatch", other.load, folder)
    refused(dist.DistBackendError, "herring: rank", other.load, folder + "/nothing")
    near(weights_of(other), before, 0)
    other(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    other.optimizer.step()
    same_on_all(other, size)
    return said


def killed(rank, size):
    """A rank is killed in the middle of training: the others get an exception that names it."""
    trained = DataParallel(network(), "adamw")
    begin = time.monotonic()
    try:
        for step in range(1000):
            if rank == size - 1 and step == 3:
                os.kill(os.getpid(), 9)
            loss_of(trained, rank, step).backward()
            trained.optimizer.step()
    except dist.DistBackendError as e:
        assert f"rank {size - 1}" in str(e), str(e)
        return f"{time.monotonic() - begin:.2f} s: {str(e).splitlines()[0]}"
    raise AssertionError("no exception")


# ---- checkpoints and state


def checkpoint(rank, size):
    """Continued from a checkpoint, training has the bits of one that never stopped; state_dict has weights alone."""
    folder = shared_folder(rank)

    def model(seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(20, 600), nn.BatchNorm1d(600), nn.Tanh(), nn.Linear(600, 600), nn.Tanh(),
                             nn.Linear(600, 5)).double()

    def train(of, steps):
        for step in steps:
            loss_of(of, rank, step).backward()
            of.optimizer.step()

    trained = DataParallel(model(1), "adamw", lr=2e-3)
    train(trained, range(5))
    trained.optimizer.param_groups[0]["lr"] = 1e-3
    train(trained, range(5, 6))
    trained.save(folder, {"step": 6, "random": torch.arange(3)})
    buffers = [trained.module[1].running_mean.clone()]
    dist.broadcast(buffers[0], 0)
    saved = copy.deepcopy(trained.state_dict())

    # 1/R of the state is here, and all of it together.
    kept = torch.zeros(3, dtype=torch.int64)
    for _, array, _, values in trained.state():
        kept[array] += values.numel()
    elements = sum(p.numel() for p in trained.parameters())
    assert kept[1] == kept[2] <= elements / size * 1.05 + 1000, (kept, elements)
    share = kept[1].item() / elements
    dist.all_reduce(kept)
    assert kept.tolist() == [elements] * 3

    train(trained, range(6, 12))
    resumed = DataParallel(model(99), "adamw")
    extra = resumed.load(folder)
    assert extra["step"] == 6 and extra["random"].tolist() == [0, 1, 2]
    assert resumed.optimizer.param_groups[0]["lr"] == 1e-3
    near(resumed.module[1].running_mean, buffers[0], 0)
    train(resumed, range(6, 12))
    assert torch.equal(weights_of(resumed), weights_of(trained))
    same_on_all(resumed, size)

    # Weights by state_dict, in torch's own format: rank 0's are those of all.
    path = os.path.join(folder, f"{rank}.pt")
    torch.save(saved, path)
    resumed.load_state_dict(torch.load(path))
    assert not torch.equal(weights_of(resumed), weights_of(trained))
    assert torch.equal(resumed.state_dict()["0.weight"], saved["0.weight"])
    refused(RuntimeError, "Missing key", resumed.load_state_dict, {})
    around = nn.ModuleDict({"net": resumed})  # a module around it
    twice = {name: 2 * value for name, value in around.state_dict().items()}
    refused(ValueError, "assign", around.load_state_dict, twice, assign=True)
    around.load_state_dict(twice)
    near(resumed.state_dict()["0.weight"], 2 * saved["0.weight"], 0)
    train(resumed, range(2))
    same_on_all(resumed, size)
    return f"{share:.3f} of the state on rank {rank}"


# ---- sync policies, servers, 16 bits


def local_steps(rank, size):
    """torch's SGD on each rank, averaged after the steps that a policy names, beside the same by hand; clipped by torch."""
    for sync, exchanges in (WARM, [0, 1, 4, 7]), (SELECTIVE, [0, 1, 2, 3]):
        model = network()
        reference = copy.deepcopy(model)
        trained = DataParallel(model, torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5), sync=sync)
        theirs = torch.optim.SGD(reference.parameters(), lr=0.2, momentum=0.5)
        assert trained.optimizer.param_groups[0]["params"][0] is model[0].weight
        for step in range(8):
            for one, optimizer in ((trained, trained.optimizer), (reference, theirs)):
                optimizer.zero_grad()
                loss_of(one, rank, step).backward()
                nn.utils.clip_grad_norm_(one.parameters(), 0.3)
                optimizer.step()
            if step in exchanges:
                for p in reference.parameters():
                    dist.all_reduce(p.data, dist.ReduceOp.AVG)
                same_on_all(model, size)
            assert trained.outcome == ("exchanged" if step in exchanges else "local"), (sync, step)
            near(weights_of(model), weights_of(reference))
        folder = shared_folder(rank)
        trained.save(folder)
        before = weights_of(model)
        loss_of(trained, rank, 9).backward()
        trained.optimizer.step()
        trained.load(folder)
        near(weights_of(model), before, 0)
        trained.close()


def outer(rank, size):
    """DiLoCo: torch's AdamW on each rank, and Nesterov's step of all after four of them."""
    model = network(kind=torch.float32)
    trained = DataParallel(model, torch.optim.AdamW(model.parameters(), lr=1e-3), sync=OUTER, lr=0.7, momentum=0.8)
    assert trained._trainer.hyper(0) == [0.7, 0.8, 0.0]
    first = None
    for step in range(40):
        x, y = batch(rank, step, torch.float32)
        trained.optimizer.zero_grad()
        loss = F.cross_entropy(trained(x), y)
        loss.backward()
        trained.optimizer.step()
        first = first or loss.item()
    same_on_all(model, size)
    assert loss < first
    return f"loss {first:.3f} to {loss.item():.3f}"


def served(rank, size):
    """The last rank serves: weights as of torch's AdamW on the data of the others."""
    model = network(seed=1 + rank)
    model.register_buffer("seen", torch.full((3,), float(rank)))
    workers = dist.new_group(list(range(size - 1)))
    trained = DataParallel(model, "adamw", servers=1, lr=3e-3)
    if rank == size - 1:
        refused(RuntimeError, "serve()", trained, torch.ones(1, 20))
    if trained.serve():
        return "served"
    reference = network(seed=1)
    theirs = torch.optim.AdamW(reference.parameters(), lr=3e-3)
    for step in range(10):
        loss_of(trained, rank, step).backward()
        trained.optimizer.step()
        theirs.zero_grad()
        all_batches(reference, size - 1, step).backward()
        theirs.step()
    near(weights_of(model), weights_of(reference))
    same_on_all(model, size - 1, workers)
    folder = shared_folder(rank, workers)
    trained.save(folder)
    before = weights_of(model)
    losses = []
    for _ in range(2):  # the second time from the checkpoint
        losses.append(loss_of(trained, rank, 0))
        losses[-1].backward()
        trained.optimizer.step()
        trained.load(folder)
        near(weights_of(model), before, 0)
    assert losses[0] == losses[1]
    losses.clear()
    for _ in range(2):  # the servers take no part in what is loaded
        trained.load_state_dict({n: v + rank for n, v in trained.state_dict().items()})
        assert (model.seen == 0).all()
        near(weights_of(model), before, 0)
    trained.close()


def halves(rank, size):
    """float16 with the loss scaled: a gradient that is not finite skips the step, on all ranks."""
    model = network(kind=torch.float16)
    trained = DataParallel(model, HALF, lr=1e-2, clip=0.5)
    trained.scale_loss(64.0)
    first = None
    for step in range(30):
        x, y = batch(rank, step, torch.float16)
        loss = F.cross_entropy(trained(x), y)
        (loss * (float("inf") if step == 3 and rank == 1 else 64)).backward()
        before = weights_of(model)
        trained.optimizer.step()
        assert trained.outcome == ("skipped" if step == 3 else "exchanged")
        assert torch.equal(before, weights_of(model)) == (step == 3)
        if step != 3:
            assert 0 < trained.gradient_norm < 10, trained.gradient_norm
        first = first or loss.item()
    same_on_all(model, size)
    assert loss < first
    return f"loss {first:.3f} to {loss.item():.3f}"


def main():
    wanted = sys.argv[1:]

    def chosen(names):
        return [n for n in names if not wanted or any(w in n for w in wanted)]

    def together(size, *names):
        if chosen(names):
            ranks.run(size, ranks.several, [(n, globals()[n]) for n in chosen(names)], within=400)

    if not wanted:
        begin = time.monotonic()
        for element, policies in PACKS:
            _libraries.compiled(_libraries.training_source(element, f"{POLICIES}, {policies}"))
        print(f"ok: {len(PACKS)} reducers ({time.monotonic() - begin:.1f} s)", flush=True)
    together(2, "adamw", "cases", "on_its_way", "views", "two_models", "refusals", "differ", "checkpoint",
             "local_steps", "outer", "halves")
    together(3, "served")
    together(4, "adamw", "cases", "checkpoint", "local_steps")
    if chosen(["killed"]):
        values = ranks.run(3, killed, dies=(2,))
        print(f"ok: killed, 3 ranks; {'; '.join(sorted(str(v) for v in values.values()))}", flush=True)
    print("passed")


if __name__ == "__main__":
    main()
