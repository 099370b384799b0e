// herring: both ends of a shared-memory lane in one process, for tests; either can be played by hand.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_SHARED_LANE_PAIR_HPP
#define HERRING_TESTS_SHARED_LANE_PAIR_HPP

#include "herring/ensemble/shared_lane.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

namespace shared_lane_pair {

namespace ensembles = herring::detail::ensembles;
using herring::detail::descriptor;

inline descriptor copy_of(int file) { return descriptor(::fcntl(file, F_DUPFD_CLOEXEC, 0)); }

struct bells {
    descriptor frontend{}, member{};

    bells() {
        int both[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) != 0) std::abort();
        frontend = descriptor(both[0]);
        member = descriptor(both[1]);
    }
};

inline ensembles::lane_ends ends(descriptor bell, int memory) {
    ensembles::lane_ends made;
    made.wake_up = bell.release();
    made.memory = copy_of(memory).release();
    return made;
}

/// What came to a member.
struct job {
    std::uint64_t id, remaining_us;
    std::span<std::byte const> request;
    ensembles::place_index place;
};
struct asks {
    std::vector<job> all{};
    void asked(std::uint64_t id, std::uint64_t remaining_us, std::span<std::byte const> request,
               ensembles::place_index place) noexcept {
        all.push_back({id, remaining_us, request, place});
    }
};

/// What came to a frontend.
struct answer {
    std::uint64_t id;
    bool is_row;
    ensembles::place_index place;
    std::span<std::byte const> row;
    herring::decline reason;
};
struct answers {
    std::vector<answer> all{};
    void row(std::uint64_t id, ensembles::place_index place, std::span<std::byte const> bytes) noexcept {
        all.push_back({id, true, place, bytes, {}});
    }
    void declined(std::uint64_t id, herring::decline reason) noexcept {
        all.push_back({id, false, 0, {}, reason});
    }
};

/// A frontend's memory and its lane to one member, and that member's.
struct pair {
    ensembles::request_layout requests;
    ensembles::row_layout rows;
    ensembles::request_region region;
    descriptor frontend_bell{}, member_bell{};
    std::optional<ensembles::row_region> of_member{};
    std::optional<ensembles::shared_lane_frontend> frontend{};
    std::optional<ensembles::shared_lane_member> member{};

    explicit pair(
        ensembles::request_layout r = {.in_flight = 4, .request_bytes = 256, .peers = 3, .credits = 4},
        std::uint64_t row_bytes = 512, std::uint64_t peer = 1)
        : requests(r), rows{.peer = peer, .credits = r.credits, .row_bytes = row_bytes}, region(r) {
        connect();
    }

    /// A new incarnation of the member.
    void connect() {
        connect_frontend();
        connect_member();
    }
    /// The member's end stays in the hands of the test: its memory is `of_member`, its bell `member_bell`.
    void connect_frontend() {
        member.reset();
        frontend.reset();
        bells both;
        member_bell = std::move(both.member);
        of_member.emplace(rows);
        frontend.emplace(region, ends(std::move(both.frontend), of_member->descriptor()),
                         static_cast<ensembles::peer_index>(rows.peer), rows.credits, rows.row_bytes);
    }
    void connect_member() {
        member.emplace(std::move(*of_member), ends(std::move(member_bell), region.descriptor()));
        of_member.reset();
    }

    bool ask(ensembles::slot_index slot, std::uint64_t id, std::size_t bytes = 8) {
        std::span<std::byte> const to = region.slot(slot).first(bytes);
        std::memset(to.data(), static_cast<int>(id & 127), to.size());
        return frontend->ask(slot, id, 1000, to);
    }
    bool send(job const& what, std::size_t bytes = 16) {
        std::memset(member->row(what.place).data(), static_cast<int>(what.id & 127), bytes);
        return member->send(what.id, what.place, bytes);
    }
};

inline bool filled(std::span<std::byte const> bytes, std::uint64_t id) {
    for (std::byte const b : bytes)
        if (b != static_cast<std::byte>(id & 127)) return false;
    return true;
}

} // namespace shared_lane_pair

#endif // HERRING_TESTS_SHARED_LANE_PAIR_HPP
