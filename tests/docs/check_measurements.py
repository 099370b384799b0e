#!/usr/bin/env python3
# herring: the tables of bench/run on pages are of what bench/pages.py knows, and none is empty. Writes one anew, too.
# SPDX-License-Identifier: Apache-2.0
import json
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "bench"))
import pages  # noqa: E402


def faults(text):
    for kind, suites, between in pages.BLOCK.findall(text):
        if kind not in pages.KINDS:
            yield f"there is no kind '{kind}' of tables"
        for suite in suites.split():
            if suite not in pages.TITLES:
                yield f"'{kind}': bench/run has no suite '{suite}'"
        if "|---|" not in between:
            yield f"'{kind}{suites}' has no table: bench/pages.py"
    if text.count("<!-- bench:") != len(pages.BLOCK.findall(text)):
        yield "a table has no <!-- end -->"


def self_test():
    row = {"suite": "shm", "what": "Herring, in place", "ranks": 2, "bytes": 1024, "table": "", "median_us": 0.7, "back_to_back_us": 0.6, "cpu_s": 1e-6,
           "disturbed": False, "wrong_elements": 0, "bound_us": 0.1}
    peer = {**row, "what": "Open MPI (4.1.4)", "median_us": 0.8, "back_to_back_us": 0.75}
    result = {"rows": [row, peer], "facts": {"command": "bench/run", "CPU": "a CPU, 2 cores"}, "steal": 0.004}
    head, end = "<!-- bench: times shm -->\n", "<!-- end -->\n"
    with tempfile.TemporaryDirectory() as folder:
        page, lines = Path(folder) / "a.md", Path(folder) / "r.json"
        lines.write_text(json.dumps(result))
        page.write_text(f"before\n{head}old\n{end}<!-- bench: times tcp -->\nkept\n{end}")
        pages.write(folder, [lines])
        table = "| | 1 KiB |\n|---|---|\n| 2 ranks, in place | 0.7 (1.1×, 1.2×) |\n| 2 ranks, Open MPI | 0.8 |\n| 2 ranks, bound | 0.1 |\n"
        assert page.read_text() == (f"before\n{head}`bench/run`, a CPU, 0.4 % of the CPU stolen:\n\n{table}{end}"
                                    f"<!-- bench: times tcp -->\nkept\n{end}"), page.read_text()
        assert list(faults(page.read_text())) == ["'times tcp' has no table: bench/pages.py"]
    assert list(faults(f"<!-- bench: time shm -->\n|---|\n{end}<!-- bench: cpu rdma -->\n|---|\n{end}")) == [
        "there is no kind 'time' of tables", "'cpu': bench/run has no suite 'rdma'"]
    assert list(faults(head)) == ["a table has no <!-- end -->"]


self_test()
found = [f"{page.relative_to(root)}: {fault}" for page in sorted((root / "docs").rglob("*.md")) for fault in faults(page.read_text())]
print("\n".join(found) or "measurements: every table of bench/run is there")
sys.exit(bool(found))
