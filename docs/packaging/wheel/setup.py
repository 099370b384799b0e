# herring: installs the tree by CMake into the package herring_reducer, and gives it the version of the headers.
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

here = Path(__file__).resolve().parent
root = here.parents[2]
version = re.search(r'VERSION_STRING "(.*)"', (root / "include/herring/base/version.hpp").read_text())[1]


class with_headers(build_py):
    def run(self):
        super().run()
        to = Path(self.build_lib) / "herring_reducer"
        shutil.rmtree(to, ignore_errors=True)
        with tempfile.TemporaryDirectory() as build:
            switches = ["-DHERRING_BUILD_TESTS=OFF", "-DHERRING_BUILD_EXAMPLES=OFF", f"-DCMAKE_INSTALL_PREFIX={to}"]
            subprocess.run(["cmake", "-S", root, "-B", build, *switches], check=True)
            subprocess.run(["cmake", "--install", build], check=True)
        shutil.copy(here / "herring_reducer.py", to / "__init__.py")
        (to / "__main__.py").write_text("from herring_reducer import main\n\nmain()\n")


scratch = root / "build" / "packaging" / "setuptools"  # in place of this folder
scratch.mkdir(parents=True, exist_ok=True)
setup(version=version, options={"build": {"build_base": str(scratch)}, "egg_info": {"egg_base": str(scratch)}}, packages=["herring_reducer"], package_dir={"herring_reducer": "."}, py_modules=[], cmdclass={"build_py": with_headers})
