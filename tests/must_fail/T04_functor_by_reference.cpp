// herring: must not compile: poll that takes its functor by non-const reference.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

#ifndef HERRING_TWIN
struct own : sound {
    using sound::sound;
    std::size_t poll(sink& on_completion) noexcept;
};
#else
struct own : sound {
    using sound::sound;
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept;
};
#endif

using mine = pack<float, own>;

void use(mine*) {}
void use() { use(static_cast<mine*>(nullptr)); }
using element = mine::element;
