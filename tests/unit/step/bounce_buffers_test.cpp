// herring: tests of step/bounce_buffers.hpp with a session that releases when the test says so: order, slots, segments.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/bounce_buffers.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"
#include "herring/step/host_tensors.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

using namespace herring;
using detail::piece_place;
using detail::segment;

namespace {

/// Executions that a test lets go on.
struct fake_session {
    std::vector<execution> all;
    std::uint64_t released_count = 0;
    failure const* why = nullptr;
    std::function<void(execution&)> run = [](execution&) {}; ///< at release
    int waits = 0;

    std::uint64_t requested() const { return all.size(); }
    std::uint64_t released() const { return released_count; }
    failure const* failed() const { return why; }
    execution const& ended(std::uint64_t number) const { return all[number]; }
    void release_one() { run(all[released_count++]); }
    void until(std::uint64_t count, time_point) {
        ++waits;
        while (released_count < count && why == nullptr) release_one();
    }
    void submit(piece_place const& at, std::size_t elements) {
        all.push_back({.own = at.own,
                       .home = at.home,
                       .elements = elements,
                       .lent_parts = static_cast<std::uint32_t>(at.lent.size()),
                       .lent = at.lent.data(),
                       .next = at.next});
    }
};

struct region {
    std::vector<std::byte> bytes;
    std::byte* memory() noexcept { return bytes.data(); }
};
constexpr std::size_t slot_elements = 32;
using store = detail::host_tensors;

struct one_piece {
    std::vector<segment> segments;
    std::size_t elements = slot_elements;
    bool bounced = true;
    std::byte* at = nullptr; // if it is not
};
struct list {
    std::vector<one_piece> all;
    std::size_t ready = 0;
    std::vector<std::size_t> submitted{};

    std::size_t available() const { return ready; }
    std::size_t elements(std::size_t n) const { return all[n].elements; }
    bool bounced(std::size_t n) const { return all[n].bounced; }
    std::byte* gather(std::size_t n, std::uint64_t) const { return all[n].at; }
    template <class Add> void for_each_segment(std::size_t n, Add const& add) const {
        for (segment const& part : all[n].segments) add(part);
    }
    std::span<std::byte const> next_in_slot(std::size_t, std::size_t) const { return {}; }
    void submit(fake_session& session, std::size_t n, piece_place const& at) {
        submitted.push_back(n);
        session.submit(at, elements(n));
    }
};

struct scene {
    plan made = [] {
        plan of_ints;
        of_ints.element_bytes = sizeof(int);
        return of_ints;
    }();
    memory_map map{.slot_elements = slot_elements};
    region memory{std::vector<std::byte>(4 * slot_elements * sizeof(int))};
    fake_session session{};
    store tensors{memory, made, map, 0};
    detail::bounce_buffers<store> bounce{tensors, 8};
    list pieces{};

    int* slot(std::size_t n) { return reinterpret_cast<int*>(memory.memory()) + n % 4 * slot_elements; }
};

std::byte const* in(int const* at) { return reinterpret_cast<std::byte const*>(at); }
std::byte* out(int* at) { return reinterpret_cast<std::byte*>(at); }
constexpr time_point no_deadline = time_point::max();

/// Doubles what lies in the slot.
void twice(execution& e) {
    auto* const at = reinterpret_cast<int*>(e.own);
    for (std::size_t i = 0; i < e.elements; ++i) at[i] *= 2;
}

} // namespace

TEST_CASE("bounce_buffers: pieces come back in order, whatever their number") {
    for (std::size_t const count : {1u, 3u, 4u, 5u, 23u}) {
        CAPTURE(count);
        scene on;
        on.session.run = twice;
        std::vector<int> from(count * slot_elements), to(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
        for (std::size_t n = 0; n < count; ++n)
            on.pieces.all.push_back(
                {{{in(&from[n * slot_elements]), out(&to[n * slot_elements]), 0, slot_elements}}});
        on.pieces.ready = count;
        for (int again = 0; again < 2; ++again) {
            std::fill(to.begin(), to.end(), 0);
            on.bounce.begin(on.session.requested());
            on.bounce.drain(on.session, on.pieces, count, no_deadline);
            for (std::size_t i = 0; i < to.size(); ++i) CHECK(to[i] == 2 * static_cast<int>(i));
        }
        CHECK(on.session.all.size() == 2 * count);
    }
}

TEST_CASE("bounce_buffers: no more pieces are under way than there are slots; a free one is taken at once") {
    scene on;
    std::vector<int> from(10 * slot_elements), to(from.size());
    for (std::size_t n = 0; n < 10; ++n)
        on.pieces.all.push_back(
            {{{in(&from[n * slot_elements]), out(&to[n * slot_elements]), 0, slot_elements}}});
    on.bounce.begin(on.session.requested());
    on.bounce.advance(on.session, on.pieces);
    CHECK(on.bounce.submitted() == 0); // none is available yet
    on.pieces.ready = 2;
    on.bounce.submit(on.session, on.pieces);
    CHECK(on.bounce.submitted() == 2);
    CHECK_FALSE(on.bounce.full());
    on.pieces.ready = 10;
    on.bounce.submit(on.session, on.pieces);
    CHECK(on.bounce.submitted() == 4);
    CHECK(on.bounce.full());
    on.bounce.advance(on.session, on.pieces); // nothing is released
    CHECK(on.bounce.done() == 0);
    on.session.release_one();
    on.session.release_one();
    on.bounce.advance(on.session, on.pieces);
    CHECK(on.bounce.done() == 2);
    CHECK(on.bounce.submitted() == 6);
    on.bounce.drain(on.session, on.pieces, 10, no_deadline);
    CHECK(on.bounce.done() == 10);
    CHECK(on.pieces.submitted == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE(
    "bounce_buffers: pieces without elements are no executions; those that take no slot keep their turn") {
    scene on;
    std::vector<int> buffer(12 * slot_elements, 1), elsewhere(slot_elements, 7);
    std::vector<std::size_t> due;
    for (std::size_t n = 0; n < 12; ++n) {
        int* const at = &buffer[n * slot_elements];
        one_piece piece{{{in(at), out(at), 0, slot_elements}}};
        if (n % 3 == 1) piece.elements = 0;
        if (n % 3 == 2) piece = {{}, slot_elements, false, out(elsewhere.data())};
        if (piece.elements > 0) due.push_back(n);
        on.pieces.all.push_back(piece);
    }
    on.pieces.ready = 12;
    on.session.run = twice;
    on.bounce.begin(on.session.requested());
    on.bounce.drain(on.session, on.pieces, 12, no_deadline);
    CHECK(on.pieces.submitted == due);
    CHECK(on.session.all.size() == 8);
    for (std::size_t n = 0; n < 12; ++n) CHECK(buffer[n * slot_elements] == (n % 3 == 0 ? 2 : 1));
    CHECK(elsewhere[0] == 7 * 16);
    CHECK(on.session.all[1].own == out(elsewhere.data()));
}

TEST_CASE("bounce_buffers: a segment is read, written, both or neither; between segments there are zeroes") {
    scene on;
    std::vector<int> read(8, 5), written(8, 9), both(8, 3);
    // As a rank sees it: it gives one range, gets another, and gives and gets a third.
    on.pieces.all = {{{{in(read.data()), nullptr, 0, 6},
                       {nullptr, out(written.data()), 8, 8},
                       {in(both.data()), out(both.data()), 16, 7}}}};
    on.pieces.ready = 1;
    on.bounce.begin(on.session.requested());
    for (std::size_t i = 0; i < slot_elements; ++i) on.slot(0)[i] = 100;
    on.bounce.submit(on.session, on.pieces);
    int const* const slot = on.slot(0);
    CHECK(slot[5] == 5);
    CHECK(slot[6] == 0);   // padding
    CHECK(slot[8] == 100); // what is only written is not read
    CHECK(slot[22] == 3);
    CHECK(slot[23] == 0);
    CHECK(slot[31] == 0);
    CHECK(on.session.all[0].lent_parts == 3); // what each rank reads and writes: the engine chooses by it
    on.session.run = twice;
    on.bounce.drain(on.session, on.pieces, 1, no_deadline);
    CHECK(read == std::vector<int>(8, 5));
    CHECK(written == std::vector<int>(8, 200));
    CHECK(both == std::vector<int>{6, 6, 6, 6, 6, 6, 6, 3});
}

TEST_CASE("bounce_buffers: a slot that was exchanged changes its place, and nothing is copied out of it") {
    scene on;
    std::vector<int> others(slot_elements, 40), buffer(10 * slot_elements, 1);
    for (std::size_t n = 0; n < 9; ++n) {
        int* const at = &buffer[n * slot_elements];
        on.pieces.all.push_back({{{in(at), out(at), 0, slot_elements}}});
    }
    on.pieces.ready = 9;
    std::size_t number = 0;
    on.session.run = [&](execution& e) {
        if (number++ != 1) return twice(e);
        CHECK(e.lent_parts == 1);
        *reinterpret_cast<int*>(e.lent[0].to) = 77; // the exchange puts the result where it is due
        e.own = out(others.data());
        e.home = 1;
        e.how = herring::lending::swap;
    };
    on.bounce.begin(on.session.requested());
    on.bounce.drain(on.session, on.pieces, 9, no_deadline);
    CHECK(buffer[slot_elements] == 77);
    CHECK(buffer[slot_elements + 1] == 1);
    CHECK(on.session.all[5].own == out(others.data())); // the same slot's next
    CHECK(on.session.all[5].home == 1);
    CHECK(on.session.all[4].own == out(on.slot(0)));
    CHECK(buffer[5 * slot_elements] == 2);
}

TEST_CASE("bounce_buffers: a failure ends a wait") {
    scene on;
    std::vector<int> buffer(6 * slot_elements);
    for (std::size_t n = 0; n < 6; ++n)
        on.pieces.all.push_back({{{in(&buffer[n * slot_elements]), out(&buffer[n * slot_elements]), 0, 8}}});
    on.pieces.ready = 6;
    failure const lost = failure::make(errc::peer_lost, 0, 1, "reduce", "it is gone");
    on.session.run = [&](execution&) {
        if (on.session.released_count == 2) on.session.why = &lost;
    };
    on.bounce.begin(on.session.requested());
    on.bounce.drain(on.session, on.pieces, 6, no_deadline);
    CHECK(on.bounce.done() < 6);
    CHECK(on.session.waits == 2);
}
