"""The package herring_torch: versions, targets, headers, and backends of other policies by compile()."""

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest.mock

import herring_torch
import ranks
import torch
import torch.distributed as dist
from herring_torch import _built, _libraries
from ranks import refused

POLICIES = "transport::checked<transport::tcp>, progress::thread"


def count_libraries(cache):
    """From now on this process adds a line to a file for each library that it links."""
    run = subprocess.run

    def counted(command, **named):
        if "-shared" in command:
            with open(cache / "runs", "a") as file:
                file.write("linked\n")
        return run(command, **named)

    _libraries.subprocess = types.SimpleNamespace(run=counted)


def over_compiled(rank, size, cache):
    os.environ["HERRING_TORCH_CACHE"] = str(cache)
    count_libraries(cache)
    name = herring_torch.compile(POLICIES, "checked")
    assert name == "herring-checked" and dist.get_backend() == "herring"
    group = dist.new_group(backend=name)
    t = torch.full((1000,), float(rank))
    dist.all_reduce(t, group=group)
    assert (t == sum(range(size))).all()
    assert group._get_backend(torch.device("cpu")).name() == name


def without_torch(code):
    """Runs Python with the package's files, and a torch that is none."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))


def main():
    # An installed package, its headers, its version.
    includes = pathlib.Path(herring_torch.includes())
    assert (includes / "herring/torch/collectives.hpp").is_file()
    said = subprocess.run([sys.executable, "-m", "herring_torch", "--includes"], capture_output=True, text=True)
    assert said.stdout.strip() == str(includes), said
    # A process that has looked for devices has initialised CUDA, which those that it forks off could not use.
    looked = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import torch; torch.cuda.is_available = None; import herring_torch"],
        capture_output=True, text=True)
    assert looked.returncode == 0, looked.stderr
    herring_torch.register()
    from importlib.metadata import entry_points

    found = [e for e in entry_points(group="torch.distributed.backends") if e.name == "herring"]
    assert found and found[0].load() is herring_torch.register
    another = without_torch(
        "import torch; torch.__version__ = '2.99.0'\n"
        "try:\n    import herring_torch\nexcept ImportError as e: print(e)"
    )
    assert "was compiled for torch" in another.stdout and "2.99.0" in another.stdout, another
    print("ok: installed", flush=True)

    # The library of a wheel that travels.
    targets, _built.TARGETS = _built.TARGETS, ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as cpu:
        def chosen(*levels):
            cpu.seek(0)
            cpu.truncate()
            cpu.write("flags\t: " + " ".join(_libraries._LEVELS[level] for level in levels) + "\n")
            cpu.flush()
            return _libraries.default(cpu.name).name

        assert chosen("x86-64-v2") == "_collectives.x86-64-v2.so"
        assert chosen("x86-64-v2", "x86-64-v3") == "_collectives.x86-64-v3.so"
        assert chosen("x86-64-v2", "x86-64-v3", "x86-64-v4") == "_collectives.x86-64-v4.so"
        assert chosen("x86-64-v2", "x86-64-v4") == "_collectives.x86-64-v2.so"
        refused(ImportError, "has none of them", chosen)
    _built.TARGETS = targets
    print("ok: targets", flush=True)

    # The cache's folder has the same name in each run, for ccache.
    cache = pathlib.Path(os.environ["HERRING_TORCH_CACHE"]) / "package"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    os.environ["HERRING_TORCH_CACHE"] = str(cache)

    # A misfit: the library's own sentence.
    refused(herring_torch.CompileError, "[HRG-P", herring_torch.compile, "intra_node::shared_memory", "none")
    refused(herring_torch.CompileError, "nosuch", herring_torch.compile, "transport::nosuch", "none")
    refused(ValueError, "with commas", herring_torch.compile, 'transport::tcp); system("x"')
    refused(ValueError, "the name", herring_torch.compile, POLICIES, "a b")
    with unittest.mock.patch.dict(os.environ, CXX="no-such-compiler"):
        refused(herring_torch.CompileError, "there is no no-such-compiler", herring_torch.compile, POLICIES)
    assert not list(cache.glob("*.so"))
    print("ok: refused", flush=True)

    # Compiled once, also by two ranks at a time; a damaged file again.
    count_libraries(cache)
    ranks.run(2, over_compiled, cache, within=400)
    _libraries.compiled(_libraries.source(POLICIES))
    assert (cache / "runs").read_text() == "linked\n"
    library, _ = _libraries.compiled("int short_text;\n")
    content = library.read_bytes()
    library.write_bytes(content[:1000])
    for _ in range(2):
        assert _libraries.compiled("int short_text;\n")[0] == library and library.read_bytes() == content
    assert (cache / "runs").read_text() == "linked\n" * 3
    print("ok: compiled", flush=True)
    os.environ["HERRING_TORCH_CACHE"] = "/proc/herring"
    refused(herring_torch.CompileError, "HERRING_TORCH_CACHE", herring_torch.compile, POLICIES, "x")
    print("passed")


if __name__ == "__main__":
    main()
