"""Shared libraries that know no torch: the package's, and those that compile() and DataParallel have compiled."""

import ctypes
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from . import _built

here = pathlib.Path(__file__).parent


class CompileError(RuntimeError):
    """What could not be compiled, in a sentence."""


def includes():
    """The folder with Herring's headers."""
    return str(here / "include")


_tables = {}


def table(library, exported="herring_torch_table"):
    """The address of a library's table of calls, which the exported function returns. The library stays loaded."""
    library = str(library)
    if library not in _tables:
        function = getattr(ctypes.CDLL(library), exported)
        function.restype = ctypes.c_void_p
        _tables[library] = function()
    return _tables[library]


_LEVELS = {  # the flags of /proc/cpuinfo that a level adds
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64-v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
}


def default(cpuinfo="/proc/cpuinfo"):
    """The package's library for this machine: the one that was compiled here, or the highest level that fits."""
    if "native" in _built.TARGETS:
        return here / "_collectives.native.so"
    has = set(re.search(r"^flags\s*:(.*)$", pathlib.Path(cpuinfo).read_text(), re.M)[1].split())
    needed = set()
    fits = None
    for level in reversed(_LEVELS):
        needed |= set(_LEVELS[level].split())
        if level in _built.TARGETS and needed <= has:
            fits = level
    if fits is None:
        raise ImportError(
            f"herring_torch was compiled for {', '.join(_built.TARGETS)}, and this machine has none of them; "
            "install it from source: pip install --no-build-isolation examples/14_pytorch"
        )
    return here / f"_collectives.{fits}.so"


def source(policies):
    """The C++ of a backend's collectives."""
    return _source(policies, "collectives", f"HERRING_TORCH_COLLECTIVES({policies})")


def training_source(element, policies):
    """The C++ of a reducer that trains. Optimizers and sync policies may be named without their axis."""
    return _source(policies, "training", "using namespace herring::optimizer;", "using namespace herring::sync;",
                   f"HERRING_TORCH_TRAINING({element}, {policies})")


def _source(policies, header, *lines):
    """Includes the headers that are named like a policy."""
    if re.search(r'[;#"\\\n]', policies):
        raise ValueError("compile: policies are types with commas between them, as in herring::reducer<float, ...>")
    headers = [h for h in (f"herring/{axis}/{policy}.hpp" for axis, policy in re.findall(r"(\w+)::(\w+)", policies))
               if (here / "include" / h).is_file()]
    headers = ["herring/herring.hpp", *dict.fromkeys(headers), f"herring/torch/{header}.hpp"]
    return "\n".join([*(f"#include <{h}>" for h in headers), "using namespace herring;", *lines, ""])


def _sentence(errors):
    """The library's own sentence in a compiler's output, else its first error."""
    own = re.search(r"\[HRG-\w+\][^\n]*", errors)
    if own:
        return own[0].rstrip('"')
    first = re.search(r"error: ([^\n]*)", errors)
    return first[1] if first else errors.strip()[:400]


def compiled(text, flags=None):
    """The library of this C++ and its digest, from the cache or compiled now: by one process of a machine."""
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    if shutil.which(compiler[0]) is None:
        raise CompileError(f"compile: there is no {compiler[0]}; install g++ 12 or later, or name a compiler by CXX")
    flags = flags or os.environ.get("HERRING_TORCH_FLAGS") or "-O2 -march=native"
    link = shlex.split(os.environ.get("LDFLAGS", ""))
    command = [*compiler, "-std=c++20", "-fPIC", "-fvisibility=hidden", "-pthread", *shlex.split(flags)]
    of_compiler = subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout
    digest = hashlib.sha256()
    for part in (text, _built.HERRING, *command, *link, of_compiler, _machine(flags), _headers()):
        digest.update(part.encode() + b"\0")
    for named in filter(os.path.isfile, command + link):  # a header of the program's, as in "-include lion.hpp"
        digest.update(pathlib.Path(named).read_bytes())
    digest = digest.hexdigest()
    folder = pathlib.Path(os.environ.get("HERRING_TORCH_CACHE") or pathlib.Path.home() / ".cache" / "herring_torch")
    text_of, library, sum_ = (folder / f"{digest}.{kind}" for kind in ("cpp", "so", "sha256"))

    def whole():  # a file that was cut off is compiled again
        try:
            return hashlib.sha256(library.read_bytes()).hexdigest() == sum_.read_text()
        except OSError:
            return False

    if whole():
        return library, digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{digest}.lock", "w") as lock, tempfile.TemporaryDirectory(dir=folder) as work:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of the ranks of a machine one compiles
            if whole():
                return library, digest
            made = pathlib.Path(work) / "made.so"
            text_of.write_text(text)
            ccache = ["ccache"] if shutil.which("ccache") and "ccache" not in compiler else []  # which keeps no links
            for step in ([*ccache, *command, f"-I{includes()}", "-c", str(text_of), "-o", f"{work}/made.o"],
                         [*command, "-shared", f"{work}/made.o", *link, "-o", str(made)]):
                ran = subprocess.run(step, capture_output=True, text=True)
                if ran.returncode != 0:
                    raise CompileError(f"compile: {_sentence(ran.stderr)}")
            content = hashlib.sha256(made.read_bytes()).hexdigest()
            made.with_suffix(".sha256").write_text(content)
            os.replace(made, library)
            os.replace(made.with_suffix(".sha256"), sum_)
    except OSError as e:
        raise CompileError(f"compile: the cache {folder} cannot be written ({e.strerror}); "
                           "name another folder by HERRING_TORCH_CACHE") from e
    return library, digest


def _machine(flags):
    """What -march=native means here: a cache may be shared between machines."""
    if "native" not in flags:
        return ""
    found = re.search(r"^(flags|Features)\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found[2] if found else ""


def _headers():
    """A digest of the headers."""
    digest = hashlib.sha256()
    for path in sorted((here / "include").rglob("*.*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
