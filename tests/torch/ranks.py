"""Runs a function in some processes, each a rank of a group, and fails if one does."""

import atexit
import datetime
import multiprocessing.forkserver
import os
import socket
import time
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# What ranks import, and what those import when they are used: loaded once, by the server that ranks are forked off.
mp.set_forkserver_preload(["herring_torch", "torch._dynamo", "torch.distributed.checkpoint", "torch.distributed.fsdp"])
atexit.register(multiprocessing.forkserver._forkserver._stop)  # and is waited for: else its time is not counted


def refused(kind, sentence, function, *arguments, **named):
    """Calls a function, which raises an exception of this kind with this sentence; returns what it says."""
    try:
        function(*arguments, **named)
    except kind as e:
        assert sentence in str(e), (sentence, str(e))
        return str(e)
    raise AssertionError(f"no {kind.__name__}: {sentence}")


def port():
    """A port that nothing else had, alike on all ranks."""
    return _present[3].pop(0)


def again():
    """Makes the process group, after another one was destroyed."""
    rank, size, backend, _, timeout = _present
    os.environ["MASTER_PORT"] = str(port())
    dist.init_process_group(backend, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=timeout))


def _rank(rank, size, backend, ports, timeout, function, arguments, results, forked):
    global _present
    _present = rank, size, backend, ports, timeout
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    if backend.startswith("herring"):
        import herring_torch  # noqa: F401
    try:
        again()
        value = function(rank, size, *arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
        results.put((rank, None, value))
        if forked:  # multiprocessing leaves them out
            atexit._run_exitfuncs()
    except BaseException:
        results.put((rank, traceback.format_exc(), None))
        results.close()
        results.join_thread()
        os._exit(1)


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def run(size, function, *arguments, backend="herring", timeout=60, dies=(), within=200, forked=True):
    """Returns what the function returned, by rank. Ranks of `dies` may end without a result. Those that are not forked
    are interpreters of their own, which see today's environment, and end as those do."""
    forked = forked and not torch.cuda.is_available()  # a process that was forked off one that has seen a device has none
    context = mp.get_context("forkserver" if forked else "spawn")
    results = context.Queue()
    ports = free_ports(24)
    processes = [
        context.Process(target=_rank, args=(r, size, backend, ports, timeout, function, arguments, results, forked))
        for r in range(size)
    ]
    for one in processes:
        one.start()
    values, faults, end = {}, [], time.monotonic() + within
    while len(values) + len(faults) < size - len(dies):
        try:
            rank, fault, value = results.get(timeout=max(0.1, end - time.monotonic()))
        except Exception:
            faults.append(f"ranks {sorted(set(range(size)) - set(values))} did not end within {within} s")
            break
        if fault:
            faults.append(f"rank {rank}: {fault}")
            end = min(end, time.monotonic() + 20)
        else:
            values[rank] = value
    for one in processes:
        one.join(2 if faults else 100)  # a machine with much else to do takes long to end a process
        if one.is_alive():
            faults.append(f"process {one.pid} did not end")
            one.kill()
            one.join()
    codes = [one.exitcode for r, one in enumerate(processes) if r not in dies]
    if not faults and any(codes):
        faults.append(f"exit codes {codes}")
    if faults:
        raise AssertionError(f"{function.__name__} on {size} ranks of {backend}:\n" + "\n".join(faults))
    return values


def several(rank, size, calls):
    """Runs one case after the other in the same processes. `calls`: of each its name, function and further arguments."""
    for name, function, *arguments in calls:
        begin = time.monotonic()
        value = function(rank, size, *arguments)
        dist.barrier()
        if rank == 0:
            print(f"ok: {name}, {size} ranks ({time.monotonic() - begin:.1f} s) {value or ''}", flush=True)
