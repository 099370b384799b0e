// herring: fuzz target of ensemble/tcp_lane.hpp: any bytes at either end of a data connection, beside what that end does itself.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which end; then records. A record is a message, bytes as they are, or something that the end does: it asks, lets go of
// a request's bytes, gives a place back, answers, declines. Its bytes are read a second time, by the layout in data_frames.hpp
// alone, and both have to find the same.
#include "fuzz.hpp"

#include "herring/ensemble/tcp_lane.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <sys/socket.h>

using namespace herring::detail::ensembles;
using fuzz::require;
using herring::decline;
using herring::detail::descriptor;

namespace {

constexpr lane_sizes sizes{.credits = 3, .request_bytes = 300, .row_bytes = 200};

std::array<int, 2> sockets() {
    int both[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0, "a socket");
    return {both[0], both[1]};
}
std::uint64_t number_at(std::vector<std::byte> const& from, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(from[at + i]);
    return value;
}

/// What has to be found in the bytes that were sent.
struct reference {
    std::vector<std::byte> bytes;
    std::size_t at = 0;
    bool is_broken = false;

    struct message {
        std::uint64_t kind, reason, id, remaining_us;
        std::span<std::byte const> payload;
    };
    /// False: the next one is not complete, or none. `head_alone`: its payload may come later, and is left out.
    bool next(message& m, bool at_member, bool head_alone = false) {
        if (is_broken || bytes.size() < at + data_head_bytes) return false;
        m = {number_at(bytes, at + 4, 1),
             number_at(bytes, at + 5, 1),
             number_at(bytes, at + 8, 8),
             number_at(bytes, at + 16, 8),
             {}};
        std::uint64_t const size = number_at(bytes, at + 24, 4);
        bool const zeros = number_at(bytes, at + 6, 2) == 0 && number_at(bytes, at + 28, 4) == 0;
        bool const sound = number_at(bytes, at, 4) == 0x31455248 && zeros && m.reason < 6 &&
                           (m.kind == 3 || m.reason == 0) && (m.kind != 3 || size == 0) &&
                           (m.kind == 1 || m.remaining_us == 0);
        bool const due = at_member ? m.kind == 1 && size <= sizes.request_bytes
                                   : (m.kind == 2 && size <= sizes.row_bytes) || m.kind == 3;
        if (!sound || !due) {
            is_broken = true;
            return false;
        }
        if (!head_alone) {
            if (bytes.size() - at - data_head_bytes < size) return false;
            m.payload = std::span(bytes).subspan(at + data_head_bytes, static_cast<std::size_t>(size));
        }
        at += data_head_bytes + static_cast<std::size_t>(size);
        return true;
    }
};

constexpr std::uint64_t own_ids = std::uint64_t{1} << 63; // of requests that the frontend sends

struct frontend {
    std::array<int, 2> both = sockets();
    tcp_lane_frontend lane{descriptor(both[0]), sizes};
    reference found;
    std::array<bool, sizes.credits + tcp_lane_frontend::spare + early_places> held{};
    std::array<std::byte, 300> request{};
    std::uint64_t asked = own_ids;

    ~frontend() { ::close(both[1]); }

    void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
        reference::message m{};
        require(found.next(m, false) && m.kind == 2 && m.id == id, "the rows that were sent are reported");
        require(std::equal(bytes.begin(), bytes.end(), m.payload.begin(), m.payload.end()), "as they were");
        require(place < held.size() && !held[place], "and their places are free until then");
        require(lane.row(place).data() == bytes.data() && lane.row(place).size() == bytes.size(),
                "where they stay");
        held[place] = true;
    }
    void declined(std::uint64_t id, decline why) noexcept {
        if (id >= own_ids && why == decline::expired && id < asked)
            return; // withdrawn, or said by the member
        reference::message m{};
        require(found.next(m, false, why == decline::overloaded) && m.id == id,
                "what was declined is reported");
        require(m.kind == 3
                    ? static_cast<std::uint64_t>(why) == m.reason
                    : why == decline::overloaded && std::find(held.begin(), held.end(), false) == held.end(),
                "as it was, or a row without a place");
    }
    bool poll() { return lane.poll(*this); }
    void act(fuzz::input& in) {
        auto const what = in.number(1);
        if (what % 3 == 0) {
            auto const size = std::min<std::size_t>(in.number(2), 400);
            std::vector<std::byte> const large(size);
            bool const sent = lane.ask(static_cast<slot_index>(what / 3 % 4), asked++, 1, large);
            require(!sent || size <= sizes.request_bytes, "a request is as large as agreed");
            lane.detach(static_cast<slot_index>(what / 3 % 4)); // its bytes go away here
        } else if (what % 3 == 1) {
            auto const place = static_cast<place_index>(what / 3 % (held.size() + 1));
            // Without effect behind the last; a place that it does not hold may have a row that is coming in.
            if (place < held.size() && !std::exchange(held[place], false)) return;
            lane.release(place);
        } else {
            take_what_it_sent();
        }
    }
    void take_what_it_sent() {
        std::byte piece[4096];
        while (::recv(both[1], piece, sizeof piece, MSG_DONTWAIT) > 0) {
        }
    }
};

struct member {
    std::array<int, 2> both = sockets();
    tcp_lane_member lane{descriptor(both[0]), sizes};
    reference found;
    struct job {
        bool busy = false;
        std::uint64_t id = 0;
        std::span<std::byte const> request, sent;
    };
    std::array<job, sizes.credits> jobs{};

    ~member() { ::close(both[1]); }

    void asked(std::uint64_t id, std::uint64_t remaining_us, std::span<std::byte const> request,
               place_index place) noexcept {
        reference::message m{};
        require(found.next(m, true) && m.id == id && m.remaining_us == remaining_us,
                "the requests that were sent are reported");
        require(place < jobs.size() && !jobs[place].busy, "each in a place of its own");
        jobs[place] = {true, id, request, m.payload};
        is_whole(jobs[place]);
    }
    static void is_whole(job const& j) noexcept {
        require(std::equal(j.request.begin(), j.request.end(), j.sent.begin(), j.sent.end()),
                "a request's bytes are those that were sent until it is answered");
    }
    bool poll() {
        bool const whole = lane.poll(*this);
        for (job const& each : jobs)
            if (each.busy) is_whole(each);
        return whole;
    }
    void act(fuzz::input& in) {
        auto const what = in.number(1);
        job& j = jobs[what / 4 % jobs.size()];
        auto const place = static_cast<place_index>(&j - jobs.data());
        if (what % 4 < 2 && j.busy) {
            is_whole(j);
            j.busy = false;
            if (what % 4 == 0)
                (void)lane.send(j.id, place, in.number(1) % (sizes.row_bytes + 1));
            else
                (void)lane.decline(j.id, place, decline::overloaded);
        } else if (what % 4 == 2) {
            place_index spare = 0;
            if (!lane.take(spare)) return;
            require(spare >= sizes.credits && spare < sizes.credits + tcp_lane_member::spare,
                    "no request has a spare place");
            lane.row(spare)[0] = std::byte{1};
            (void)((what & 4) != 0 ? lane.send(7, spare, 10) : lane.decline(7, spare, decline::unspecified));
        } else {
            std::byte piece[4096];
            while (::recv(both[1], piece, sizeof piece, MSG_DONTWAIT) > 0) {
            }
        }
    }
};

template <class End> void run(fuzz::input& in, bool at_member) {
    auto const end = std::make_unique<End>();
    end->found.bytes.reserve(std::size_t{1} << 17); // requests have spans of it
    fuzz::memory::begin();
    bool whole = true;
    while (!in.empty() && whole && end->found.bytes.size() < (std::size_t{1} << 16)) {
        auto const what = in.number(1);
        if (what % 4 == 0) {
            end->act(in);
            whole = end->poll();
            continue;
        }
        std::size_t const at_once = 1 + in.number(1) * in.number(1);
        std::vector<std::byte> bytes;
        if (what % 4 == 1) {
            auto const raw = in.bytes(in.number(1));
            bytes.assign(raw.begin(), raw.end());
        } else {
            data_head head{.kind = at_member ? data_kind::ask : data_kind::row, .id = in.number(1)};
            if (at_member) head.remaining_us = in.number(2);
            if (!at_member && (what & 4) != 0)
                head = {.kind = data_kind::declined,
                        .reason = static_cast<decline>(in.number(1) % (herring::declines + 1)),
                        .id = in.number(1)};
            else
                head.length = static_cast<std::uint32_t>(in.number((what & 8) != 0 ? 4 : 1));
            if ((what & 16) != 0) head.kind = static_cast<data_kind>(in.number(1));
            bytes.resize(data_head_bytes);
            encode(head, bytes.data());
            if ((what & 32) != 0)
                bytes[in.number(1) % data_head_bytes] ^= static_cast<std::byte>(in.number(1));
            auto const body = in.bytes(std::min<std::uint64_t>(head.length, in.number(1)));
            bytes.insert(bytes.end(), body.begin(), body.end());
            if (what % 4 == 3) bytes.resize(data_head_bytes + std::min<std::size_t>(head.length, 400));
        }
        std::span<std::byte const> rest(bytes);
        while (!rest.empty() && whole) {
            auto const part = rest.first(std::min(at_once, rest.size()));
            ssize_t const sent = ::send(end->both[1], part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent <= 0) break;
            rest = rest.subspan(static_cast<std::size_t>(sent));
            end->found.bytes.insert(end->found.bytes.end(), part.begin(), part.begin() + sent);
            whole = end->poll();
        }
    }
    reference::message left{};
    bool const more = end->found.next(left, at_member);
    if (whole) {
        require(!more && !end->found.is_broken,
                "nothing that was complete is left, and nothing wrong was taken");
        require(end->lane.error().empty(), "a lane that is whole has no error");
    } else {
        require(!end->lane.error().empty(), "why a lane broke is said");
        if (more) { // all credits of a member were taken
            bool all = at_member;
            if constexpr (std::is_same_v<End, member>)
                for (auto const& each : end->jobs) all = all && (each.busy || end->lane.wants_write());
            require(all, "what is sound breaks no lane");
        }
    }
    fuzz::memory::require_below(std::size_t{1} << 16, std::size_t{1} << 22);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    if (in.number(1) % 2 == 0)
        run<frontend>(in, false);
    else
        run<member>(in, true);
    return 0;
}
