"""python -m herring_torch --includes: the folder of the headers; without arguments: versions and policies."""

import sys

import herring_torch

if sys.argv[1:] == ["--includes"]:
    print(herring_torch.includes())
elif sys.argv[1:]:
    sys.exit("usage: python -m herring_torch [--includes]")
else:
    from herring_torch import _backend, _built, _here, _table

    default = _backend.describe(_table(_here / "_collectives.so"))
    print(f"herring {default['version']} for torch {_built.TORCH}, compiled with {_built.FLAGS}")
    print(f"backend herring: {default['policies']}")
