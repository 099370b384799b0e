"""The examples, small, one after the other in the same two processes, as torchrun starts each."""

import os
import pathlib
import runpy
import sys

import ranks
import torch.distributed as dist

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/14_pytorch"


def example(rank, size, name, *words):
    dist.destroy_process_group()
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_PORT=str(ranks.port()))
    sys.argv = [name, *words]
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    ranks.again()


def main():
    lines = ["digits.py --steps 20 --fsdp", "digits.py --steps 20 --herring",
             f"gpt.py --layers 2 --width 64 --heads 4 --steps 10 --picture {sys.argv[1]}"]
    ranks.run(2, ranks.several, [(line, example, *line.split()) for line in lines])


if __name__ == "__main__":
    main()
