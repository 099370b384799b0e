"""What allreduce().wait() adds to the library's call, at 64 KiB on 2 ranks: medians in microseconds.

The library's call is the function of the table, called through ctypes in a loop: the same reducer, no PyTorch.
"""

import ctypes
import statistics
import time

import ranks
import torch
import torch.distributed as dist


class Call(ctypes.Structure):
    _fields_ = [("in_", ctypes.c_void_p), ("out", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("by", ctypes.c_uint8), ("root", ctypes.c_int32), ("timeout_ms", ctypes.c_int64),
                ("sends", ctypes.c_void_p), ("receives", ctypes.c_void_p)]


def measure(rank, size, turns):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    t = torch.zeros(16384)
    here, queued = dist.AllreduceOptions(), dist.AllreduceOptions()
    here.asyncOp, queued.asyncOp = False, True

    def of(options):
        times = []
        for _ in range(300):
            begin = time.perf_counter()
            backend.allreduce([t], options).wait()
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e6

    def whole():
        times = []
        for _ in range(300):
            begin = time.perf_counter()
            dist.all_reduce(t)
            times.append(time.perf_counter() - begin)
        return statistics.median(times) * 1e6

    found = {"caller's thread": [], "queue": [], "dist.all_reduce": []}
    for _ in range(turns):
        found["caller's thread"].append(of(here))
        time.sleep(0.01)
        found["queue"].append(of(queued))
        time.sleep(0.01)
        found["dist.all_reduce"].append(whole())
    return {k: (round(statistics.median(v), 1), round(min(v), 1)) for k, v in found.items()}


if __name__ == "__main__":
    print(ranks.run(2, measure, 15)[0])
