// herring: fuzz target of ensemble/shared_lane.hpp: memory of the other end that holds anything and changes at any time.
// SPDX-License-Identifier: Apache-2.0
//
// Input: a byte (who is hostile: 0 the member, 1 the frontend, 2 and 3 the facts at the start of their memory), then records.
// A record says what the hostile end does (bytes anywhere in its memory, a message, a bell), or what the sound end does.
#include "fuzz.hpp"

#include "shared_lane_pair.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <sys/socket.h>

using namespace herring::detail::ensembles;
using fuzz::require;
using shared_lane_pair::pair;

namespace {

constexpr request_layout requests{.in_flight = 2, .request_bytes = 40, .peers = 2, .credits = 3};
constexpr std::uint64_t row_bytes = 48, most_polled = 8;

/// Every byte of what was handed out can be read.
std::uint64_t sum(std::span<std::byte const> bytes) {
    std::uint64_t all = 0;
    for (std::byte const b : bytes) all += std::to_integer<std::uint64_t>(b);
    return all;
}

struct watched_frontend {
    pair& p;
    std::array<std::uint64_t, 3> asked{}; // id of each place; 0: none
    std::array<bool, 3 + spare_places> landed{};
    std::uint64_t polled = 0;

    void row(std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
        require(place < landed.size() && !landed[place], "a row comes in a place that is free");
        require(bytes.size() <= row_bytes, "and fits it");
        require(place >= 3 || (id != 0 && asked[place] == id), "and was asked for, or is of a spare place");
        (void)sum(bytes);
        landed[place] = true;
        if (place < 3) asked[place] = 0;
        ++polled;
    }
    void declined(std::uint64_t id, herring::decline) noexcept {
        auto const found = std::find(asked.begin(), asked.end(), id);
        require(id != 0 && found != asked.end(), "what is declined was asked for");
        *found = 0;
        ++polled;
    }
};

struct watched_member {
    std::array<std::uint64_t, 3> jobs{}; // id + 1
    std::uint64_t polled = 0;

    void asked(std::uint64_t id, std::uint64_t, std::span<std::byte const> bytes,
               place_index place) noexcept {
        require(place < jobs.size() && jobs[place] == 0, "a request comes with a place that is free");
        require(bytes.size() <= requests.request_bytes, "and fits");
        (void)sum(bytes);
        jobs[place] = id + 1;
        ++polled;
    }
};

void scribble(std::byte* memory, std::size_t size, fuzz::input& in) {
    std::size_t const at = in.number(2) % size;
    auto const bytes = in.bytes(1 + in.number(1) % 64);
    std::memcpy(memory + at, bytes.data(), std::min(bytes.size(), size - at));
}
ring_message message(fuzz::input& in) {
    ring_message m;
    for (std::uint64_t& word : m) { // small, or at a limit
        word = in.number(1);
        if (word >= 0xf0) word = in.number(8);
        if (word == 0xef) word = ~std::uint64_t{0};
    }
    return m;
}
void ring(herring::detail::descriptor const& bell) {
    std::byte const packet{1};
    (void)!::send(bell.get(), &packet, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void hostile_member(fuzz::input& in) {
    pair p(requests, row_bytes);
    p.connect_frontend();
    row_region& theirs = *p.of_member;
    ring_writer writer(theirs.answers(), theirs.layout().cells(), theirs.origin());
    std::byte* const memory = theirs.row(0).data() - theirs.layout().rows_at();
    watched_frontend sink{p};
    bool good = true;
    std::uint64_t id = 0;
    while (!in.empty()) {
        switch (in.number(1) % 7) {
        case 0:
            scribble(memory, theirs.layout().bytes(), in);
            break;
        case 1:
            writer.fill(message(in));
            writer.publish();
            break;
        case 2:
            ring(p.member_bell);
            break;
        case 3: {
            ++id;
            if (!p.ask(static_cast<slot_index>(id % 2), id)) break;
            for (std::uint64_t c = 0; c < requests.cells(); ++c) { // which place it took is in the ring
                ring_cell const& cell = p.region.asks(1)[c];
                if (cell.words[0] != id) continue;
                auto const place = static_cast<place_index>(cell.words[2].load());
                require(place < 3 && sink.asked[place] == 0 && !sink.landed[place], "a free place is asked");
                sink.asked[place] = id;
            }
            break;
        }
        case 4: {
            auto const place = static_cast<place_index>(in.number(1));
            p.frontend->release(place);
            if (place < sink.landed.size()) sink.landed[place] = false;
            break;
        }
        case 5:
            (void)p.frontend->try_sleep();
            p.frontend->rung();
            break;
        default: {
            sink.polled = 0;
            bool const now = p.frontend->poll(sink);
            require(good || !now, "what is broken stays broken");
            require(now == p.frontend->error().empty(), "and says why");
            require(sink.polled <= most_polled, "a poll ends");
            good = now;
        }
        }
    }
}

void hostile_frontend(fuzz::input& in) {
    pair p(requests, row_bytes);
    p.connect_frontend();
    std::uint64_t const origin = p.of_member->origin();
    // The frontend's bell is the pair's: a second one, so that it can be rung by hand.
    shared_lane_pair::bells bells;
    p.member_bell = std::move(bells.member);
    p.connect_member();
    ring_writer writer(p.region.asks(1), requests.cells(), origin);
    std::byte* const memory = p.region.slot(0).data() - requests.slot_at(0) - request_layout::slot_head;
    watched_member sink;
    bool good = true;
    while (!in.empty()) {
        switch (in.number(1) % 8) {
        case 0:
            scribble(memory, requests.section_at(2), in);
            break;
        case 1: {
            ring_message m = message(in);
            if (in.number(1) % 2 == 0) p.region.put(static_cast<slot_index>((m[2] >> 32) % 2), m[0], {});
            writer.fill(m);
            writer.publish();
            break;
        }
        case 2:
            ring(bells.frontend);
            break;
        case 3: {
            auto const place = static_cast<place_index>(in.number(1) % 3);
            if (sink.jobs[place] == 0) break;
            std::uint64_t const id = sink.jobs[place] - 1;
            sink.jobs[place] = 0;
            (void)p.member->holds(place);
            if (in.number(1) % 2 == 0)
                (void)p.member->send(id, place, in.number(1));
            else
                (void)p.member->decline(id, place, herring::decline::overloaded);
            (void)p.member->decline(id, place, herring::decline::overloaded); // unless it was sent
            break;
        }
        case 4: {
            place_index place = 0;
            if (!p.member->take(place)) break;
            require(place >= 3 && place < 3 + spare_places, "a spare place is one");
            (void)p.member->send(7, place, 8);
            break;
        }
        case 5:
            (void)p.member->try_sleep();
            break;
        default: {
            sink.polled = 0;
            bool const now = p.member->poll(sink);
            require(good || !now, "what is broken stays broken");
            require(now == p.member->error().empty(), "and says why");
            require(sink.polled <= most_polled, "a poll ends");
            good = now;
        }
        }
    }
}

template <class View, class... Due> void facts(fuzz::input& in, std::uint64_t bytes, Due... due) {
    sealed_memory memory(bytes);
    memory.allocate(0, bytes);
    auto const given = in.bytes(64);
    std::memcpy(memory.data(), given.data(), given.size());
    try {
        View const view(shared_lane_pair::copy_of(memory.descriptor()), due...);
        require(view.layout().is_sound() && view.layout().bytes() == bytes, "what is taken has its size");
    } catch (herring::error const&) {
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    fuzz::memory::begin();
    switch (in.number(1) % 4) {
    case 0:
        hostile_member(in);
        break;
    case 1:
        hostile_frontend(in);
        break;
    case 2:
        facts<request_view>(in, requests.bytes(), peer_index{1});
        break;
    default: {
        constexpr row_layout due{.peer = 1, .credits = 3, .row_bytes = row_bytes};
        facts<row_view>(in, due.bytes(), due);
    }
    }
    fuzz::memory::require_below(1 << 16, 1 << 20);
    return 0;
}
