"""Builds herring_torch: a Python module against the installed torch, and collectives without torch.

HERRING_TORCH_TARGETS: "native" (the default) compiles for this machine. A wheel that travels names levels:
"x86-64-v2 x86-64-v3 x86-64-v4"; Python takes the highest that fits. CXX and CXXFLAGS as usual; without CXX g++, behind
ccache where that is installed.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import setuptools
import torch
import torch.utils.cpp_extension
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = pathlib.Path(__file__).resolve().parent
include = here.parents[1] / "include"
version = re.search(r'HERRING_VERSION_STRING "([^"]+)"', (include / "herring/base/version.hpp").read_text())[1]
targets = os.environ.get("HERRING_TORCH_TARGETS", "native").split()
more = shlex.split(os.environ.get("CXXFLAGS", ""))
flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", *more]
compiler = shlex.split(os.environ.get("CXX") or ("ccache g++" if shutil.which("ccache") else "g++"))
# Newer versions of PyTorch (2.15) take CXX as one word, and put ccache before it themselves.
wraps = hasattr(torch.utils.cpp_extension, "_wrap_compiler")
os.environ["CXX"] = shlex.join(compiler[1:] if wraps and compiler[0].endswith("ccache") else compiler)


class Build(BuildExtension):
    def run(self):
        to = (here / "src" if self.inplace else pathlib.Path(self.build_lib)) / "herring_torch"
        to.mkdir(parents=True, exist_ok=True)
        objects = pathlib.Path(self.build_temp)
        objects.mkdir(parents=True, exist_ok=True)
        steps = []
        for target in targets:
            made, command = str(objects / f"_collectives.{target}.o"), [*compiler, *flags, f"-march={target}"]
            steps.append(shlex.join([*command, f"-I{include}", "-c", str(here / "collectives.cpp"), "-o", made]))
            steps.append(shlex.join([*command, "-shared", made, "-o", str(to / f"_collectives.{target}.so")]))
        # Beside the module, which takes as long as one of them.
        running = subprocess.Popen(["sh", "-c", " && ".join(steps)])
        try:
            super().run()
        finally:
            code = running.wait()
        if code != 0:
            raise RuntimeError(f"herring_torch: {compiler[-1]} could not compile collectives.cpp; it needs C++20: "
                               "g++ 12 or clang 14, named by CXX")
        shutil.rmtree(to / "include", ignore_errors=True)
        shutil.copytree(include, to / "include")
        (to / "_built.py").write_text(
            f"HERRING = {version!r}\nTORCH = {torch.__version__.split('+')[0]!r}\nTARGETS = {targets!r}\n"
        )


setuptools.setup(
    version=version,
    ext_modules=[
        CppExtension(
            "herring_torch._backend",
            [os.path.relpath(here / "module.cpp")],
            include_dirs=[str(include)],
            extra_compile_args=["-std=c++20", "-O1", "-g0", "-fvisibility=hidden", *more],
        )
    ],
    cmdclass={"build_ext": Build},
)
