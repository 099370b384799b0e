// herring: must not compile: a transport that runs handlers and keeps what they throw.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"
#include "sound_transport.hpp"

struct own : sound {
    using sound::sound;
    static constexpr herring::transport_facts facts{.runs_handlers = true};
    bool runs_handlers() const noexcept { return true; }
    bool has_exception() const noexcept { return false; }
#ifdef HERRING_TWIN
    std::exception_ptr take_exception() noexcept { return nullptr; }
#endif
};

using mine = pack<float, own>;

#include "use.hpp"
