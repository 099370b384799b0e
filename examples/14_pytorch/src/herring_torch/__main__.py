"""python -m herring_torch --includes: the folder of the headers; without arguments: versions and policies."""

import sys

import herring_torch
from herring_torch import _backend, _built, _libraries

if sys.argv[1:] == ["--includes"]:
    print(herring_torch.includes())
elif sys.argv[1:]:
    sys.exit("usage: python -m herring_torch [--includes]")
else:
    default = _backend.describe(_libraries.table(_libraries.default()))
    print(f"herring {default['version']} for torch {_built.TORCH}, compiled for {', '.join(_built.TARGETS)}")
    print(f"backend herring: {default['policies']}")
