// herring: must not compile: poll that takes its functor by non-const reference.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
#ifndef HERRING_TWIN
    std::size_t poll(sink& on_completion) noexcept;
#else
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept;
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
