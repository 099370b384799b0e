// herring: a transport without faults and without function, for the must-fail cases to break.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_MUST_FAIL_SOUND_TRANSPORT_HPP
#define HERRING_TESTS_MUST_FAIL_SOUND_TRANSPORT_HPP

#include "herring/transport/transport.hpp"

#include <string>
#include <vector>

struct sink {
    void operator()(herring::completion const&) noexcept {}
};

struct sound {
    using axis = herring::axes::transport;
    static constexpr char const* name = "sound";
    static constexpr herring::transport_facts facts{.max_message = 1 << 20};

    sound(herring::world&, herring::transport_needs const&);
    bool post_send(herring::peer_id, std::uint64_t, std::span<std::byte const>, std::uint64_t) noexcept;
    bool post_receive(herring::peer_id, std::uint64_t, std::span<std::byte>, std::uint64_t) noexcept;
    template <class OnCompletion> std::size_t poll(OnCompletion&&) noexcept;
    void wait(herring::time_point) noexcept;
    void wake() noexcept;
    void register_memory(std::span<std::byte>);
    char const* describe(herring::peer_id) const;
};
static_assert(herring::transport_policy<sound>);

#endif // HERRING_TESTS_MUST_FAIL_SOUND_TRANSPORT_HPP
