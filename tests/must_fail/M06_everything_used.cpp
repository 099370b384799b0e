// herring: must not compile: a rule that is not associative, where the ranks of a node are combined first.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/inproc.hpp"

struct minus : herring::update::sum {
    static constexpr char const* name = "minus";
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a - b; }
};

using element = float;
#ifndef HERRING_TWIN
using gradients =
    herring::reducer<element, herring::transport::inproc, minus, herring::intra_node::shared_memory>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, minus, herring::intra_node::none>;
#endif

#include "train.hpp"
