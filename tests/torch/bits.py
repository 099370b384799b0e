"""all_reduce over the backend has the bits that the C++ library has for the same inputs. Takes the program of bits.cpp."""

import pathlib
import subprocess
import sys
import tempfile

import ranks
import torch
import torch.distributed as dist

TYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64]
RULES = ["SUM", "PRODUCT", "MAX", "AVG"]
ELEMENTS = 100_003


def inputs(rank, kind):
    """Of all magnitudes, so that each order of additions has other bits; zeros of both signs, infinities."""
    draw = torch.Generator().manual_seed(1000 + rank)
    if not kind.is_floating_point:
        return torch.randint(-(2**62), 2**62, (ELEMENTS,), generator=draw)
    made = torch.randn(ELEMENTS, generator=draw) * 10 ** (torch.rand(ELEMENTS, generator=draw) * 6 - 3)
    made[rank::97] = 0.0
    made[rank + 1 :: 97] = -0.0
    made[::1009] = float("inf")
    return made.to(kind)


def bytes_of(tensor):
    return bytes(tensor.contiguous().view(torch.uint8).numpy())


def over_backend(rank, size, folder):
    for kind in TYPES:
        for rule in RULES:
            if rule == "AVG" and not kind.is_floating_point:
                continue
            t, name = inputs(rank, kind), f"{str(kind).split('.')[1]}.{rule}"
            dist.all_reduce(t, getattr(dist.ReduceOp, rule))
            wanted = (pathlib.Path(folder) / name).read_bytes()
            assert bytes_of(t) == wanted, f"{name}: {sum(a != b for a, b in zip(bytes_of(t), wanted))} bytes differ"
            part, length = torch.empty(ELEMENTS // size, dtype=kind), ELEMENTS // size
            dist.reduce_scatter_tensor(part, inputs(rank, kind)[: length * size], getattr(dist.ReduceOp, rule))
            size_of = part.element_size() * length
            assert bytes_of(part) == wanted[size_of * rank : size_of * (rank + 1)], f"reduce_scatter, {name}"


def main():
    for size in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            for kind in TYPES:
                for r in range(size):
                    (pathlib.Path(folder) / f"{str(kind).split('.')[1]}.{r}").write_bytes(bytes_of(inputs(r, kind)))
            subprocess.run([sys.argv[1], folder, str(size), str(ELEMENTS)], check=True, timeout=100)
            ranks.run(size, over_backend, folder)
        print(f"ok: bits of the library, {size} ranks", flush=True)


if __name__ == "__main__":
    main()
