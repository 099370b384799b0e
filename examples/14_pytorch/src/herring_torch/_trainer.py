"""The library behind DataParallel: a reducer that trains, by its table of calls. Knows tensors, not models."""

import ctypes
import math
import weakref

import torch
import torch.distributed as dist

from . import _libraries

OUTCOMES = ["exchanged", "partial", "local", "skipped"]  # herring::step
ELEMENTS = {torch.float32: "float", torch.float64: "double", torch.bfloat16: "bfloat16", torch.float16: "float16"}


# ---- herring/torch/training.hpp, in ctypes


class _Outcome(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("peer", ctypes.c_int32), ("text", ctypes.c_char * 640)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_size_t), ("group", ctypes.c_size_t)]


_any, _size, _failed = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Outcome)
_Reply = ctypes.CFUNCTYPE(None, _any, _any, _size)
_Range = ctypes.CFUNCTYPE(None, _any, _size, _size, _size, _any, _size)
_Gather = ctypes.CFUNCTYPE(_any, _any, _any, _size, _any, _Reply)


class _Training(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int32), ("size", ctypes.c_int32), ("servers", ctypes.c_int32), ("timeout_ms", ctypes.c_int64),
        ("context", _any), ("gather", _Gather), ("tensors", ctypes.POINTER(_Tensor)), ("count", _size),
    ]


_call = ctypes.CFUNCTYPE  # frees the GIL while it runs


class _Table(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), ("version", ctypes.c_char_p), ("hypers", _size),
        ("averages", ctypes.c_uint8),
        ("hyper_name", _call(ctypes.c_char_p, _size)),
        ("open", _call(_any, ctypes.POINTER(_Training), _failed)),
        ("close", _call(None, _any)),
        ("serve", _call(None, _any, _failed)),
        ("start", _call(None, _any, ctypes.c_int32, ctypes.POINTER(_any), _failed)),
        ("gradient", _call(_any, _any, _size)),
        ("weights", _call(_any, _any, _size)),
        ("ready", _call(None, _any, _size, _failed)),
        ("wait", _call(ctypes.c_int32, _any, _failed)),
        ("settle", _call(None, _any, _failed)),
        ("hyper", _call(None, _any, _size, ctypes.POINTER(ctypes.c_double))),
        ("set", _call(None, _any, _size, ctypes.POINTER(ctypes.c_double), _failed)),
        ("scale", _call(None, _any, ctypes.c_double, _failed)),
        ("norm", _call(ctypes.c_double, _any)),
        ("save", _call(None, _any, ctypes.c_char_p, ctypes.c_char_p, _size, _failed)),
        ("load", _call(None, _any, ctypes.c_char_p, _any, _Reply, _failed)),
        ("state", _call(None, _any, _any, _Range, _failed)),
    ]


# ---- the trainer


class Trainer:
    """A rank's part of a training. Its memory lives as long as this object or a view of it does.

    tensors: (name, tensor, group) of each, in the order in which backward ends their gradients, all of one type.
    Not kept: a tensor may be a view, which holds this object.
    """

    def __init__(self, policies, flags, tensors, servers, group, timeout):
        self._names = [name for name, _, _ in tensors]
        self._like = [torch.empty(t.shape, dtype=t.dtype, device="meta") for _, t, _ in tensors]
        source = _libraries.training_source(ELEMENTS[self._like[0].dtype], policies)
        library, _ = _libraries.compiled(source, flags)
        self._table = ctypes.cast(_libraries.table(library, "herring_torch_training"), ctypes.POINTER(_Table)).contents
        assert self._table.size == ctypes.sizeof(_Table), "herring_torch: _trainer.py is not of these headers"
        self._outcome = _Outcome()
        entries = (_Tensor * len(tensors))(*((n.encode(), t.numel(), g) for n, t, g in tensors))
        gathering = _gathering(group)
        with_ = _Training(dist.get_rank(group), dist.get_world_size(group), servers,
                          int(timeout.total_seconds() * 1000), None, gathering, entries, len(tensors))
        self._pointer = self._checked(self._table.open(with_, self._outcome))
        weakref.finalize(self, self._table.close, self._pointer)  # at the interpreter's end at the latest

    def _checked(self, result):
        if self._outcome.code != 0:
            self._outcome.code = 0
            raise dist.DistBackendError(self._outcome.text.decode(errors="replace"))
        return result

    def _call(self, function, *arguments):
        return self._checked(function(self._pointer, *arguments, self._outcome))

    def _view(self, address, like):
        if like.numel() == 0:
            return torch.empty_like(like, device="cpu")
        memory = (ctypes.c_ubyte * like.nbytes).from_address(address)
        memory.of = self  # a view holds its storage, which holds the memory, which holds this
        return torch.frombuffer(memory, dtype=like.dtype).view(like.shape)

    @property
    def averages(self):
        """The sync policy averages weights, which torch's optimizer updates."""
        return bool(self._table.averages)

    def serve(self):
        self._call(self._table.serve)

    def start(self, tensors):
        """All ranks have the weights that rank 0 has in these tensors, and the state is 0."""
        held = [tensor.detach().contiguous() for tensor in tensors]
        self._call(self._table.start, 0, (_any * len(held))(*(tensor.data_ptr() for tensor in held)))

    def weights(self):
        """Views, by tensor; behind start()."""
        return [self._view(self._table.weights(self._pointer, i), like) for i, like in enumerate(self._like)]

    def gradients(self):
        return [self._view(self._table.gradient(self._pointer, i), like) for i, like in enumerate(self._like)]

    def ready(self, i):
        self._call(self._table.ready, i)

    def wait(self):
        return OUTCOMES[self._call(self._table.wait)]

    def settle(self):
        self._call(self._table.settle)

    def names(self):
        """Of the hyper values."""
        return [(self._table.hyper_name(i) or b"value%d" % i).decode() for i in range(self._table.hypers)]

    def hyper(self, group):
        values = (ctypes.c_double * self._table.hypers)()
        self._table.hyper(self._pointer, group, values)
        return list(values)

    def set(self, group, values):
        self._call(self._table.set, group, (ctypes.c_double * len(values))(*values))

    def scale(self, loss_scale):
        self._call(self._table.scale, loss_scale)

    def norm(self):
        value = self._table.norm(self._pointer)
        return None if math.isnan(value) else value

    def save(self, folder, content):
        self._call(self._table.save, str(folder).encode(), content, len(content))

    def load(self, folder):
        content = []
        keep = _Reply(lambda _, bytes_, size: content.append(ctypes.string_at(bytes_, size)))
        self._call(self._table.load, str(folder).encode(), None, keep)
        return content[0]

    def state(self):
        """What this rank keeps: (name, array, offset, values), array 0 the weights, n the n-th number of state."""
        found = []
        number = torch.float64 if self._like[0].dtype == torch.float64 else torch.float32

        def take(_, tensor, array, offset, first, elements):
            like = torch.empty(elements, dtype=number, device="meta")
            found.append((self._names[tensor], array, offset, self._view(first, like)))

        self._call(self._table.state, None, _Range(take))
        return found


def _gathering(group):
    """Gathers bytes of the group's ranks, for join: by whatever backend the group has."""
    said = []  # lives as long as the function

    def gather(_, mine, size, to, reply):
        try:
            all_ = [None] * dist.get_world_size(group)
            dist.all_gather_object(all_, ctypes.string_at(mine, size), group)
            for one in all_:
                reply(to, one, len(one))
            return None
        except Exception as e:  # an exception does not cross C++
            said.append(ctypes.create_string_buffer(f"the process group did not gather: {e}"[:300].encode()))
            return ctypes.addressof(said[-1])

    return _Gather(gather)
