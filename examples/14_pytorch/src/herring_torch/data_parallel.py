"""DataParallel: gradients are summed while backward runs, and weights are updated where they are summed."""

import contextlib
import datetime
import io

import torch
import torch.distributed as dist

from ._trainer import ELEMENTS, Trainer

# PyTorch's words for hyper values of Herring's optimizers.
_WORDS = {"rate": "lr", "epsilon": "eps", "decay": "weight_decay"}


class DataParallel(torch.nn.Module):
    """Trains a model on all ranks of a process group.

        trained = herring_torch.DataParallel(model, "adamw", lr=1e-3)
        for x, y in data:
            F.cross_entropy(trained(x), y).backward()
            trained.optimizer.step()

    Parameters become views of the weights of a Herring reducer, one copy for the ranks of a node that share memory,
    and `.grad` views of its tensors. A hook hands each gradient over as soon as backward has ended it; step() returns
    when all ranks have the same weights. All ranks begin with those of rank 0.

    optimizer: one of Herring's, in C++ ("adamw", "clipped<lamb>"), which updates a weight on the one rank that sums
        its gradient, so that each of R ranks keeps 1/R of the state. With `sync`: one of torch.optim over the same
        parameters, which updates the weights of each rank.
    sync: a policy that averages weights in some steps alone: "every<8>", "selective<>", "diloco<64, nesterov>".
    servers: so many last ranks of the group sum and update for all others, which are workers; see serve().
    params: groups of parameters with hyper values of their own, as torch.optim takes them; all have to be there.
    group: the process group; it carries addresses when ranks join, and buffers at the start.
    policies, flags: of the reducer, as of compile(); compiled once.
    timeout: the longest wait for other ranks. A rank that is lost is found within seconds.
    hyper: hyper values, in PyTorch's words: lr, beta1, beta2, eps, weight_decay, momentum, clip. With `sync` those of
        diloco's outer optimizer.
    """

    def __init__(self, module, optimizer="adamw", sync=None, servers=0, *, params=None, group=None,
                 policies="transport::tcp, intra_node::shared_memory", flags=None,
                 timeout=datetime.timedelta(minutes=30), **hyper):
        super().__init__()
        theirs = isinstance(optimizer, torch.optim.Optimizer)
        if theirs and sync is None:
            raise ValueError("DataParallel: an optimizer of torch.optim goes with sync=\"every<8>\" or another policy "
                             "that averages weights; without one name Herring's, as in optimizer=\"adamw\", or use "
                             "DistributedDataParallel over the backend herring")
        self.module, self._group = module, group
        self._names, self._params = _trained(module)
        groups = _grouped(self._names, self._params, params)
        of = {p: i for i, one in enumerate(groups) for p in one["params"]}
        self._spread_others(group)
        policies = ", ".join([policies, *([] if theirs else [optimizer]), *([sync] if sync else []),
                              *(["placement::dedicated"] if servers and "placement::" not in policies else [])])
        self._trainer = Trainer(policies, flags, [(n, p, of[p]) for n, p in zip(self._names, self._params)], servers,
                                group, timeout)
        self._workers = dist.get_world_size(group) - servers
        self.serves = dist.get_rank(group) >= self._workers
        self._values = [_WORDS.get(name, name) for name in self._trainer.names()]
        for unknown in {*hyper, *(name for one in groups for name in one if name != "params")} - {*self._values}:
            raise TypeError(f"DataParallel: there is no hyper value {unknown}; there are {', '.join(self._values)}")
        self.outcome = None
        self._accumulates = False
        self._handles = []
        if self.serves:
            return
        self._gradients = self._trainer.gradients()
        self._away = [_Away(p) for p in self._params]
        self._start()
        values = dict(zip(self._values, self._trainer.hyper(0))) | hyper
        if theirs:
            self._trainer.set(0, [float(values[name]) for name in self._values])
            self.optimizer = optimizer
            self._handles = [optimizer.register_step_pre_hook(lambda *_: self._end_gradients()),
                             optimizer.register_step_post_hook(lambda *_: self._trainer.settle())]
        else:
            self.optimizer = _Optimizer(self, groups, values)
        self._handles += [p.register_post_accumulate_grad_hook(self._hook(i)) for i, p in enumerate(self._params)]
        self._handles.append(self.register_load_state_dict_post_hook(lambda *_: self._have_loaded()))

    # ---- what a training loop calls

    def forward(self, *inputs, **named):
        if self.serves:
            raise RuntimeError("DataParallel: this rank is a server, without data; call serve() in place of training")
        return self.module(*inputs, **named)

    def serve(self):
        """On a server: sums and updates until the workers have closed theirs, then returns True. Else False."""
        if self.serves:
            self._trainer.serve()
        return self.serves

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients of backward within it are added up, and stay here until the next backward outside, or step()."""
        before, self._accumulates = self._accumulates, True
        try:
            yield
        finally:
            self._accumulates = before

    def close(self):
        """Leaves the other ranks, between steps. The model keeps its weights, in memory of its own."""
        if self._trainer is None:
            return
        for handle in self._handles:
            handle.remove()
        self._detach()
        self._handles = self._gradients = self._weights = self._trainer = None

    # ---- weights and checkpoints

    def state_dict(self, *arguments, **named):
        """That of the model, by its own names."""
        return self.module.state_dict(*arguments, **named)

    def load_state_dict(self, state, strict=True):
        """Collective, between steps: all ranks go on with what rank 0 loads; the optimizer's state is 0 again. So is
        load_state_dict of a module around this one."""
        return super().load_state_dict(state, strict)

    def _load_from_state_dict(self, state, prefix, metadata, *rest):
        """What torch calls before the model's own, whichever module's load_state_dict was called."""
        if metadata.get("assign_to_params_buffers"):
            raise ValueError("DataParallel: load_state_dict(assign=True) replaces parameters, which are the reducer's; "
                             "leave assign out")
        for name in [name for name in state if name.startswith(prefix)]:
            state[f"{prefix}module.{name[len(prefix):]}"] = state.pop(name)
        self._detach()
        super()._load_from_state_dict(state, prefix, metadata, *rest)

    def _have_loaded(self):
        if any(True for _ in self._others()):
            ranks = dist.get_process_group_ranks(self._group or dist.group.WORLD)
            if self._workers < len(ranks):  # servers are in serve(), and take no part
                self._group = dist.new_group(ranks[:self._workers], backend=dist.get_backend(self._group),
                                             use_local_synchronization=True)
            self._spread_others(self._group)
        self._start()

    def save(self, folder, extra=None):
        """Collective, between steps: saves weights, the optimizer's state and rank 0's buffers in a folder that all
        ranks see, as a checkpoint of Herring's; and `extra`, of rank 0, of what torch.load takes with weights_only."""
        content = io.BytesIO()
        torch.save({"others": [one.detach() for one in self._others()], "extra": extra}, content)
        self._trainer.save(folder, content.getvalue())

    def load(self, folder):
        """Collective, between steps: goes on from what save() wrote, on any number of ranks. Returns `extra`."""
        content = torch.load(io.BytesIO(self._trainer.load(folder)), weights_only=True)
        for to, value in zip(self._others(), content["others"]):
            to.detach().copy_(value)
        if isinstance(self.optimizer, _Optimizer):
            self.optimizer.take(self._trainer)
        self._have_changed()
        return content["extra"]

    def state(self):
        """What this rank keeps: (name, array, offset, values) of parts of parameters, flattened. Array 0 are the
        weights, array n the n-th number that the optimizer keeps of each. All ranks together keep each once."""
        return self._trainer.state()

    @property
    def gradient_norm(self):
        """Of the last step, before it was clipped, with an optimizer that asks for norms; else None."""
        return self._trainer.norm()

    def scale_loss(self, scale):
        """Says by what the loss is multiplied from the next step on, with gradients of 16 bits."""
        self._trainer.scale(scale)

    # ---- a step

    def _hook(self, i):
        def backward_has_ended(p):
            if i in self._ready:
                raise RuntimeError(f"DataParallel: {self._names[i]} has its gradient of this step already; "
                                   "call optimizer.step(), or accumulate within no_sync()")
            self._take(i, p)
            if not self._accumulates:
                self._hand_over(i, p)

        return backward_has_ended

    def _take(self, i, p):
        """The gradient lies in its view: autograd makes the first of a step in memory of its own."""
        if p.grad is self._gradients[i]:
            return
        if p.grad is None:
            self._gradients[i].zero_()
        elif p.grad.layout != torch.strided:
            raise RuntimeError(f"DataParallel: the gradient of {self._names[i]} is sparse; it has to be dense, "
                               "as of Embedding(sparse=False)")
        else:
            self._gradients[i].copy_(p.grad.detach())
        p.grad = self._gradients[i]

    def _hand_over(self, i, p):
        if not self._trainer.averages:
            if not self._ready:
                self.optimizer.give(self._trainer)  # the values of this step
            p.grad = self._away[i]
        self._trainer.ready(i)
        self._ready.add(i)

    def _end_gradients(self):
        for i, p in enumerate(self._params):
            if p.data_ptr() != self._places[i] or not p.requires_grad:
                raise RuntimeError(f"DataParallel: {self._names[i]} was moved, replaced or frozen since it was made; "
                                   "call close(), change the model, and make DataParallel again")
            if i not in self._ready:
                self._take(i, p)
                self._hand_over(i, p)
        self.outcome = self._trainer.wait()
        self._ready.clear()

    def _end_step(self):
        self._end_gradients()
        self._have_changed()

    # ---- weights

    def _have_changed(self):
        """The reducer has written weights: autograd refuses graphs of the old ones."""
        for p in self._params:
            p.grad = None
            torch.autograd.graph.increment_version(p)

    def _start(self):
        self._trainer.start(self._params)
        self._weights = self._trainer.weights()
        for p, view in zip(self._params, self._weights):
            p.data, p.grad = view, None
        self._places = [p.data_ptr() for p in self._params]
        self._ready = set()

    def _detach(self):
        """The parameters' weights lie in memory of the model's."""
        for p in self._params:
            p.data, p.grad = p.data.clone(), None

    def _others(self):
        """Buffers, and parameters that are not trained: all but what the reducer has."""
        yield from self.module.buffers()
        yield from (p for p in self.module.parameters() if not p.requires_grad)

    def _spread_others(self, group):
        root = 0 if group is None else dist.get_global_rank(group, 0)
        for one in self._others():
            value = one.detach().contiguous()
            dist.broadcast(value, root, group)
            one.detach().copy_(value)


class _Optimizer(torch.optim.Optimizer):
    """The reducer's optimizer as PyTorch knows one: groups with hyper values, which schedulers change."""

    def __init__(self, trained, groups, values):
        super().__init__(groups, values)
        self._trained = trained

    def step(self, closure=None):
        """Ends the step: sends what is not on its way, and returns when all weights are updated."""
        if closure is not None:
            raise ValueError("DataParallel: step takes no closure; call backward() before")
        self._trained._end_step()

    def give(self, trainer):
        for i, group in enumerate(self.param_groups):
            values = [float(group[name]) for name in self.defaults]
            if values != trainer.hyper(i):
                trainer.set(i, values)

    def take(self, trainer):
        for i, group in enumerate(self.param_groups):
            group.update(zip(self.defaults, trainer.hyper(i)))


class _Away(torch.Tensor):
    """The gradient of a parameter while it is on its way: all that would read or write it is refused."""

    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype, device=like.device)

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        raise RuntimeError("DataParallel: this gradient is on its way to the other ranks; call optimizer.step(), "
                           "accumulate within no_sync(), clip by optimizer=\"clipped<adamw>\"")

    def __repr__(self):
        return "a gradient on its way"


def _trained(module):
    """Names and parameters that are trained, in the order in which backward ends their gradients."""
    found = {}
    for name, p in reversed(list(module.named_parameters())):
        if torch.nn.parameter.is_lazy(p) or p.is_meta:
            raise ValueError(f"DataParallel: {name} has no memory yet; call model.to_empty(device=\"cpu\") and "
                             "initialise it, or run a lazy model once")
        if p.device.type != "cpu" or p.layout != torch.strided or type(p.data) is not torch.Tensor:
            raise ValueError(f"DataParallel: {name} is a {type(p.data).__name__} on {p.device}; it takes plain, dense "
                             "parameters of the CPU, and DistributedDataParallel takes others")
        if p.requires_grad:
            found[name] = p
    kinds = {p.dtype for p in found.values()}
    if len(kinds) != 1 or not kinds <= {*ELEMENTS}:
        raise ValueError("DataParallel: it trains parameters of one type, "
                         f"{', '.join(str(kind) for kind in ELEMENTS)}; this model has "
                         f"{', '.join(sorted(str(kind) for kind in kinds)) or 'none that requires a gradient'}")
    end, of = 0, None
    for name, p in sorted(found.items(), key=lambda one: one[1].data_ptr()):
        if p.data_ptr() < end and p.numel() > 0:
            raise ValueError(f"DataParallel: {name} and {of} share memory; tie weights by one Parameter with two names")
        end, of = max(end, p.data_ptr() + p.nbytes), name
    return list(found), list(found.values())


def _grouped(names, params, given):
    """The groups of parameters, as torch.optim takes them; each parameter is in one."""
    groups = [{"params": list(params)}] if given is None else list(given)
    if groups and not isinstance(groups[0], dict):
        groups = [{"params": groups}]
    groups = [dict(one, params=list(one["params"])) for one in groups]
    known = [p for one in groups for p in one["params"]]
    missing = {*params} - {*known}
    for name, p in zip(names, params):
        if p in missing:
            raise ValueError(f"DataParallel: {name} is in no group of params; a parameter that is not trained has "
                             "requires_grad=False")
    if len(known) != len(params):
        raise ValueError("DataParallel: params has a parameter twice, or one that the model has not")
    return groups
