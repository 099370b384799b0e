"""PyTorch's own tests of a backend, which its wheel has, on two ranks: those of distributed_test.txt must pass.

    distributed_test.py BACKEND [MINUTES] [WORD ...]    all within MINUTES [15], or those whose names have a word

distributed_test.txt: a line for each test that runs on two ranks without a GPU: its name and the backends that pass it,
with a reason where not both do. Whoever makes a test pass adds the name of the backend: a list only grows.
"""

import os
import pathlib
import sys
import tempfile
import time
import unittest

backend = sys.argv[1]
# Imported as Gloo's: tests say which of PyTorch's own backends they are for, and no other has a name there.
os.environ.update(BACKEND="gloo", WORLD_SIZE="2", TEMP_DIR=tempfile.mkdtemp(), OMP_NUM_THREADS="1")
import torch  # noqa: E402
from torch.testing._internal.distributed import distributed_test as tests  # noqa: E402

if backend != "gloo":
    import herring_torch  # noqa: F401
tests.BACKEND = backend
torch.set_num_threads(1)


class OnTwoRanks(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)  # spawned, each would load torch again


class Result(unittest.TestResult):
    """Passed, skipped and failed tests by name."""

    def __init__(self):
        super().__init__()
        self.passed, self.why = set(), {}

    def addSuccess(self, test):
        self.passed.add(name_of(test))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        lines = [line for line in self.failures[-1][1].strip().splitlines() if line.strip()]
        self.why[name_of(test)] = next((line for line in reversed(lines) if "Error" in line), lines[-1])[:200]

    def addError(self, test, error):
        self.addFailure(test, error)


def name_of(test):
    return test.id().split(".")[-1]


def main():
    minutes, words = float((sys.argv[2:] or ["15"])[0]), sys.argv[3:]
    listed = {}
    for line in (pathlib.Path(__file__).with_suffix(".txt")).read_text().splitlines():
        if line and not line.startswith("#"):
            name, *backends = line.split("#")[0].split()
            listed[name] = backends
    result, end = Result(), time.monotonic() + 60 * minutes
    names = [n for n in unittest.TestLoader().getTestCaseNames(OnTwoRanks) if not words or any(w in n for w in words)]
    names.sort(key=lambda name: backend not in listed.get(name, ()))  # what must pass comes first
    left = []
    for name in names:
        if time.monotonic() > end:
            left.append(name)
            continue
        OnTwoRanks(name).run(result)
        if name in result.why:
            print(f"not passed: {name}: {result.why[name]}", flush=True)
    due = {name for name in names if backend in listed.get(name, ())}
    lost, new = due - result.passed - set(left), result.passed - due
    print(f"{backend}: {len(result.passed)} of PyTorch's own tests pass, {len(result.skipped)} are skipped, "
          f"{len(result.why)} do not pass, {len(left)} are left out for lack of time")
    for name in sorted(new):
        print(f"passes, and is not in distributed_test.txt: {name}")
    for name in sorted(lost):
        print(f"FAILED: {name} passed before: {result.why.get(name, 'it is skipped now')}")
    return 1 if lost else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what a test leaves behind does not matter
