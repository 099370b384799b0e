"""Herring as a backend of torch.distributed: init_process_group("herring"); and DataParallel, which trains.

Importing this package registers the backend. Collectives of tensors of the CPU run over shared memory
between ranks of one machine and over TCP between machines. `compile` makes a backend of other policies.
"""

import atexit
import datetime
import re

import torch
import torch.distributed

from . import _built, _libraries
from ._libraries import CompileError, includes

__all__ = ["CompileError", "DataParallel", "compile", "includes", "register"]
__version__ = _built.HERRING


def _minor(version):
    return version.split("+")[0].split(".")[:2]


if _minor(torch.__version__) != _minor(_built.TORCH):
    raise ImportError(
        f"herring_torch was compiled for torch {_built.TORCH}, and this is torch {torch.__version__}: a backend "
        "is bound to the minor version of torch; install it again by "
        "pip install --no-build-isolation --force-reinstall examples/14_pytorch"
    )
if not torch.distributed.is_available():
    raise ImportError("this torch has no torch.distributed; install one that was built with USE_DISTRIBUTED=1")

from . import _backend  # noqa: E402  behind the check: with another torch it lacks symbols
from .data_parallel import DataParallel  # noqa: E402


def _register(name, library):
    if name in _registered:
        return
    table = _libraries.table(library)

    # Looking for a device would initialise CUDA, which a process that is forked later could not use.
    devices = ["cpu", "cuda"] if torch.backends.cuda.is_built() else ["cpu"]

    def create(store, rank, size, timeout):
        return _backend.create(table, store, rank, size, timeout, name)

    torch.distributed.Backend.register_backend(name, create, devices=devices)
    _registered[name] = table


_registered = {}


def register():
    """Registers the backend "herring"; importing the package has done so."""
    _register("herring", _libraries.default())


def compile(policies, name=None, flags=None):  # noqa: A001  as torch.compile
    """Compiles a backend of these policies, registers it as "herring-<name>", and returns that name.

    policies: C++, as in herring::reducer<float, ...>: "transport::tcp, intra_node::shared_memory,
    progress::thread". Compiled without torch's headers, once: HERRING_TORCH_CACHE, else ~/.cache/herring_torch,
    keeps the result by policies, versions of Herring and of the compiler, and flags.
    name: what init_process_group takes behind "herring-"; without one it is made of the policies' digest.
    flags: of the compiler (CXX); without any those of HERRING_TORCH_FLAGS, else "-O2 -march=native". LDFLAGS are the
    linker's. ccache is used where it is installed.

    Raises CompileError with the sentence of the library where policies do not fit together, where there is
    no compiler (CXX), or where the cache cannot be written.
    """
    if name is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"compile: the name {name!r} has to be of letters, digits, - and _")
    library, digest = _libraries.compiled(_libraries.source(policies), flags)
    name = "herring-" + (name or digest[:8])
    _register(name, library)
    if _registered[name] != _libraries.table(library):
        raise ValueError(f"compile: {name} has other policies already; take another name")
    return name


register()
# Threads of the backend do not outlive the interpreter: what is in flight then has 5 s to end.
atexit.register(_backend.end_all, datetime.timedelta(seconds=5))
