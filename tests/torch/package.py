"""The package herring_torch: versions, targets, headers, and backends of other policies by compile()."""

import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import herring_torch
import ranks
import torch
import torch.distributed as dist
from herring_torch import _built, _libraries

POLICIES = "transport::checked<transport::tcp>, progress::thread"
FAST = "-O1"  # to compile, not to run


def over_compiled(rank, size, cache):
    os.environ["HERRING_TORCH_CACHE"] = cache
    name = herring_torch.compile(POLICIES, "checked", FAST)
    assert name == "herring-checked" and dist.get_backend() == "herring"
    group = dist.new_group(backend=name)
    t = torch.full((1000,), float(rank))
    dist.all_reduce(t, group=group)
    assert (t == sum(range(size))).all()
    assert group._get_backend(torch.device("cpu")).name() == name


def fails(kind, sentence, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as e:
        assert sentence in str(e), (sentence, str(e))
        return
    raise AssertionError(f"no {kind.__name__}: {sentence}")


def without_torch(code):
    """Runs Python with the package's files, and a torch that is none."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))


def main():
    # An installed package, its headers, its version.
    includes = pathlib.Path(herring_torch.includes())
    assert (includes / "herring/torch/collectives.hpp").is_file()
    said = subprocess.run([sys.executable, "-m", "herring_torch", "--includes"], capture_output=True, text=True)
    assert said.stdout.strip() == str(includes), said
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
        fails(ImportError, "has none of them", chosen)
    _built.TARGETS = targets
    print("ok: targets", flush=True)

    with tempfile.TemporaryDirectory() as cache:
        os.environ["HERRING_TORCH_CACHE"] = cache
        # A misfit: the library's own sentence.
        fails(herring_torch.CompileError, "[HRG-P", herring_torch.compile, "intra_node::shared_memory", "none", FAST)
        fails(herring_torch.CompileError, "nosuch", herring_torch.compile, "transport::nosuch", "none", FAST)
        fails(ValueError, "with commas", herring_torch.compile, 'transport::tcp); system("x"')
        fails(ValueError, "the name", herring_torch.compile, POLICIES, "a b", FAST)
        os.environ["CXX"] = "no-such-compiler"
        fails(herring_torch.CompileError, "there is no no-such-compiler", herring_torch.compile, POLICIES)
        del os.environ["CXX"]
        assert not list(pathlib.Path(cache).glob("*.so"))
        print("ok: refused", flush=True)

        # Compiled once, also by two ranks at a time; a damaged file again.
        compiler = pathlib.Path(cache) / "compiler"
        compiler.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) echo >> {cache}/runs ;; esac\nexec g++ "$@"\n')
        compiler.chmod(0o755)
        os.environ["CXX"] = str(compiler)
        ranks.run(2, over_compiled, cache, within=400)
        assert (pathlib.Path(cache) / "runs").read_text() == "\n"
        text = _libraries.source(POLICIES)
        library, digest = _libraries.compiled(text, FAST)
        assert _libraries.compiled(text, FAST) == (library, digest)
        assert (pathlib.Path(cache) / "runs").read_text() == "\n"
        library.write_bytes(library.read_bytes()[:1000])
        assert _libraries.compiled(text, FAST)[0] == library and library.stat().st_size > 100_000
        del os.environ["CXX"]
        print("ok: compiled", flush=True)
    os.environ["HERRING_TORCH_CACHE"] = "/proc/herring"
    fails(herring_torch.CompileError, "HERRING_TORCH_CACHE", herring_torch.compile, POLICIES, "x", FAST)
    print("passed")


if __name__ == "__main__":
    main()
