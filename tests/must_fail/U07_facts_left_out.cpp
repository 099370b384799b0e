// herring: must not compile: a rule with an 'if', which vectors do not have, and no word about vectors.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

struct last_that_is_set {
    using axis = herring::axes::update;
    static constexpr char const* name = "last_that_is_set";
    template <class T> static constexpr bool supports = true;
#ifdef HERRING_TWIN
    static constexpr herring::update_facts facts{};
#endif
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        if (b != 0) return b;
        return a;
    }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};

using element = float;
using gradients = herring::reducer<element, herring::transport::inproc, last_that_is_set>;

#include "train.hpp"
