"""Trains a GPT on this project's documents, byte by byte, with DDP over a backend and over another in turn, by torchrun.

Prints loss, hash of the weights and step time of each; draws loss and step time into a picture.
"""

import argparse
import copy
import hashlib
import math
import pathlib
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

documents = pathlib.Path(__file__).parents[2] / "docs"
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--backend", default="herring")
parser.add_argument("--beside", default="", help="another backend [gloo, or beside gloo: none]")
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--heads", type=int, default=6)
parser.add_argument("--context", type=int, default=64, help="bytes that it sees")
parser.add_argument("--batch", type=int, default=4, help="texts a rank and step")
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--picture", default="gpt.svg")
options = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixes, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.thinks = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.mixes(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mixed(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.thinks(self.between(x))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, context):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.next = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        for weights in self.parameters():
            if weights.dim() > 1:
                nn.init.normal_(weights, std=0.02)
        self.next.weight = self.bytes.weight

    def forward(self, text):
        x = self.bytes(text) + self.places.weight[: text.shape[1]]
        return self.next(self.norm(self.blocks(x)))


def digest(model):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]


def train(rank, size, groups, text):
    """Of each name losses, seconds a step, and a hash on each rank: "alone" computes, and exchanges nothing."""
    torch.manual_seed(1)
    first = GPT(options.layers, options.width, options.heads, options.context)
    if rank == 0:
        print(f"{sum(p.numel() for p in first.parameters()) / 1e6:.1f} M parameters, {len(text)} bytes of text", flush=True)
    models = {"alone": copy.deepcopy(first)}
    models |= {name: DDP(copy.deepcopy(first), process_group=group) for name, group in groups.items()}
    optimizers = {name: torch.optim.AdamW(model.parameters(), lr=5e-4) for name, model in models.items()}
    losses, seconds = {name: [] for name in models}, {name: [] for name in models}
    draw = torch.Generator().manual_seed(100 + rank)  # each rank reads other places
    for step in range(options.steps):
        at = torch.randint(len(text) - options.context, (options.batch,), generator=draw)
        given = torch.stack([text[i : i + options.context + 1] for i in at])
        turn = step % len(models)  # each is the first in turn
        for name in [*models, *models][turn : turn + len(models)]:
            dist.barrier()
            begin = time.perf_counter()
            loss = F.cross_entropy(models[name](given[:, :-1]).flatten(0, 1), given[:, 1:].flatten())
            optimizers[name].zero_grad()
            loss.backward()
            optimizers[name].step()
            seconds[name].append(time.perf_counter() - begin)
            losses[name].append(loss.item())
        if rank == 0 and (step % 10 == 0 or step == options.steps - 1):
            print(f"step {step:4}  " + "  ".join(f"{name}: loss {losses[name][-1]:.3f}, {seconds[name][-1] * 1e3:.0f} ms"
                                                 for name in groups), flush=True)
    digests = [None] * size
    dist.all_gather_object(digests, {name: digest(models[name]) for name in groups})
    return losses, seconds, digests


def picture(path, title, losses, seconds):
    """Loss and step time over steps, as SVG."""
    colours = dict(zip(seconds, ("#777777", "#2f6fb0", "#e08e0b")))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 400" width="980" height="400" font-size="12" '
           'fill="#333333" font-family="system-ui, Helvetica, Arial, \'DejaVu Sans\', sans-serif">',
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           f'<text x="24" y="32" font-size="18" font-weight="600">{title}</text>']

    def chart(left, heading, series, unit):
        right, top, bottom = left + 310, 90, 350
        most, steps = max(max(one) for one in series.values()), max(len(one) for one in series.values())
        tick = next(t for e in range(-3, 6) for t in (10**e, 2 * 10**e, 5 * 10**e) if t >= most / 6)
        high = tick * math.ceil(most / tick)
        x = lambda step: left + (right - left) * step / max(1, steps - 1)  # noqa: E731
        y = lambda value: bottom - (bottom - top) * value / high  # noqa: E731
        out.append(f'<text x="{left}" y="{top - 18}" font-weight="600">{heading}</text>')
        for i in range(round(high / tick) + 1):
            out.append(f'<line x1="{left}" x2="{right}" y1="{y(i * tick):.1f}" y2="{y(i * tick):.1f}" stroke="#e5e5e5"/>'
                       f'<text x="{left - 8}" y="{y(i * tick) + 4:.1f}" text-anchor="end">{i * tick:g}</text>')
        for step in {0, steps // 4, steps // 2, steps * 3 // 4, steps - 1}:
            out.append(f'<text x="{x(step):.1f}" y="{bottom + 20}" text-anchor="middle">{step}</text>')
        lowest = 0  # of the labels at the right, which do not overlap
        for at, name in sorted((y(statistics.median(one[-len(one) // 4 :])), name) for name, one in series.items()):
            lowest = max(at, lowest + 15)
            value = series[name][-1] if unit == "" else statistics.median(series[name])
            out.append(f'<text x="{right + 8}" y="{lowest + 4:.1f}" fill="{colours[name]}" font-weight="600">'
                       f'{name} {value:.3g}{unit}</text>')
        for i, (name, one) in enumerate(series.items()):
            points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in enumerate(one))
            dashes = ' stroke-dasharray="6 5"' if i > 0 and unit == "" else ""  # over an equal one
            out.append(f'<polyline fill="none" stroke="{colours[name]}" stroke-width="1.7" points="{points}"{dashes}/>')

    chart(60, "loss over steps", {name: one for name, one in losses.items() if name != "alone"}, "")
    chart(530, "milliseconds a step, and their median", {name: [s * 1e3 for s in one] for name, one in seconds.items()}, " ms")
    pathlib.Path(path).write_text("\n".join([*out, "</svg>\n"]))


def main():
    if "herring" in options.backend + options.beside:
        import herring_torch  # noqa: F401  registers the backend

    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    beside = options.beside or ("gloo" if options.backend != "gloo" else "")
    groups = {options.backend: dist.group.WORLD} | ({beside: dist.new_group(backend=beside)} if beside else {})
    text = b"".join(path.read_bytes() for path in sorted(documents.glob("*.md")))
    text = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()

    losses, seconds, digests = train(rank, size, groups, text)
    if rank == 0:
        times = {name: statistics.median(one[len(one) // 5 :]) * 1e3 for name, one in seconds.items()}
        print(f"{size} ranks; forward, backward and AdamW alone: {times['alone']:.0f} ms")
        for name in groups:
            of = {one[name] for one in digests}
            assert len(of) == 1, digests
            print(f"{name}: loss {losses[name][-1]:.3f}, the same weights on all ranks ({of.pop()}), {times[name]:.0f} ms a step, "
                  f"{times[name] - times['alone']:.0f} more than alone")
        picture(options.picture, f"A GPT on {size} ranks, DDP over {' and '.join(groups)} in turn", losses, seconds)
        print(f"picture: {options.picture}")
    dist.destroy_process_group()


main()
