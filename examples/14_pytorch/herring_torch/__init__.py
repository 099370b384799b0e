"""Herring as a backend of torch.distributed: init_process_group("herring").

Importing this package registers the backend. Collectives of tensors of the CPU run over shared memory
between ranks of one machine and over TCP between machines.
"""

import atexit
import ctypes
import datetime
import pathlib

import torch
import torch.distributed

from . import _built

__version__ = _built.HERRING

_here = pathlib.Path(__file__).parent


def _minor(version):
    return version.split("+")[0].split(".")[:2]


if _minor(torch.__version__) != _minor(_built.TORCH):
    raise ImportError(
        f"herring_torch was compiled for torch {_built.TORCH}, and this is torch {torch.__version__}: a backend "
        "is bound to the minor version of torch; install it again with "
        "'pip install --no-build-isolation --force-reinstall --no-deps examples/14_pytorch'"
    )
if not torch.distributed.is_available():
    raise ImportError("this torch has no torch.distributed; install one that was built with USE_DISTRIBUTED=1")

from . import _backend  # noqa: E402  after the check of the version, which would be an undefined symbol


def includes():
    """The folder with Herring's headers."""
    return str(_here / "include")


def _table(library):
    """The address of the table of calls that a shared library has. The library stays loaded."""
    loaded = ctypes.CDLL(str(library))
    loaded.herring_torch_table.restype = ctypes.c_void_p
    return loaded.herring_torch_table()


def _register(name, library):
    if hasattr(torch.distributed.Backend, name.upper()):
        return
    table = _table(library)

    def create(store, rank, size, timeout):
        return _backend.create(table, store, rank, size, timeout, name)

    torch.distributed.Backend.register_backend(name, create, devices=["cpu"])


def register():
    """Registers the backend "herring"; importing the package has done so."""
    _register("herring", _here / "_collectives.so")


register()
# Threads of the backend may not outlive the interpreter: what is in flight then has 5 s to end.
atexit.register(_backend.end_all, datetime.timedelta(seconds=5))
