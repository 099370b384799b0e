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
    void until(std::uint64_t count) {
        ++waits;
        while (released_count < count && why == nullptr) release_one();
    }
    void submit(piece_place const& at, std::size_t elements) {
        execution e{.element_bytes = sizeof(int), .elements = elements};
        at.put_into(e);
        all.push_back(e);
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

/// Pieces on their way through bounce slots, as steps and collectives move them.
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

    std::vector<one_piece> pieces{};
    std::size_t next = 0; ///< piece to be submitted
    std::size_t out = 0;  ///< pieces copied out
    std::vector<std::size_t> submitted{};

    int* slot(std::size_t n) { return reinterpret_cast<int*>(memory.memory()) + n % 4 * slot_elements; }

    void begin() {
        bounce.begin();
        next = out = 0;
    }
    /// Submits pieces before `ready` that have room.
    void submit(std::size_t ready) {
        for (; next < ready; ++next) {
            one_piece const& one = pieces[next];
            if (one.elements == 0) continue;
            if (one.bounced && bounce.full()) return;
            piece_place at{.own = one.at};
            if (one.bounced) {
                detail::bounced_piece piece = bounce.next_piece(one.elements, sizeof(int));
                for (segment const& part : one.segments) piece.add(part);
                at = bounce.copy_in(piece, session.requested());
            }
            submitted.push_back(next);
            session.submit(at, one.elements);
        }
    }
    void advance(std::size_t ready) {
        for (; bounce.copy_out_next(session); ++out) submit(ready);
        submit(ready);
    }
    void drain() {
        for (advance(pieces.size()); !bounce.empty() && session.failed() == nullptr; advance(pieces.size()))
            session.until(bounce.awaited());
    }
};

std::byte const* in(int const* at) { return reinterpret_cast<std::byte const*>(at); }
std::byte* out(int* at) { return reinterpret_cast<std::byte*>(at); }

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
            on.pieces.push_back(
                {{{in(&from[n * slot_elements]), out(&to[n * slot_elements]), 0, slot_elements}}});
        for (int again = 0; again < 2; ++again) {
            std::fill(to.begin(), to.end(), 0);
            on.begin();
            on.drain();
            for (std::size_t i = 0; i < to.size(); ++i) CHECK(to[i] == 2 * static_cast<int>(i));
        }
        CHECK(on.session.all.size() == 2 * count);
    }
}

TEST_CASE("bounce_buffers: no more pieces are under way than there are slots; a free one is taken at once") {
    scene on;
    std::vector<int> from(10 * slot_elements), to(from.size());
    for (std::size_t n = 0; n < 10; ++n)
        on.pieces.push_back(
            {{{in(&from[n * slot_elements]), out(&to[n * slot_elements]), 0, slot_elements}}});
    on.begin();
    on.advance(0);
    CHECK(on.next == 0); // none is available yet
    on.submit(2);
    CHECK(on.next == 2);
    CHECK_FALSE(on.bounce.full());
    on.submit(10);
    CHECK(on.next == 4);
    CHECK(on.bounce.full());
    on.advance(10); // nothing is released
    CHECK(on.out == 0);
    on.session.release_one();
    on.session.release_one();
    on.advance(10);
    CHECK(on.out == 2);
    CHECK(on.next == 6);
    on.drain();
    CHECK(on.out == 10);
    CHECK(on.submitted == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
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
        on.pieces.push_back(piece);
    }
    on.session.run = twice;
    on.begin();
    on.drain();
    on.session.until(on.session.requested()); // the last one takes no slot
    CHECK(on.submitted == due);
    CHECK(on.session.all.size() == 8);
    for (std::size_t n = 0; n < 12; ++n) CHECK(buffer[n * slot_elements] == (n % 3 == 0 ? 2 : 1));
    CHECK(elsewhere[0] == 7 * 16);
    CHECK(on.session.all[1].own == out(elsewhere.data()));
}

TEST_CASE("bounce_buffers: a segment is read, written, both or neither; between segments there are zeroes") {
    scene on;
    std::vector<int> read(8, 5), written(8, 9), both(8, 3);
    // As a rank sees it: it gives one range, gets another, and gives and gets a third.
    on.pieces = {{{{in(read.data()), nullptr, 0, 6},
                   {nullptr, out(written.data()), 8, 8},
                   {in(both.data()), out(both.data()), 16, 7}}}};
    on.begin();
    for (std::size_t i = 0; i < slot_elements; ++i) on.slot(0)[i] = 100;
    on.submit(1);
    int const* const slot = on.slot(0);
    CHECK(slot[5] == 5);
    CHECK(slot[6] == 0);   // padding
    CHECK(slot[8] == 100); // what is only written is not read
    CHECK(slot[22] == 3);
    CHECK(slot[23] == 0);
    CHECK(slot[31] == 0);
    CHECK(on.session.all[0].lent_parts == 3); // what each rank reads and writes: the engine chooses by it
    on.session.run = twice;
    on.drain();
    CHECK(read == std::vector<int>(8, 5));
    CHECK(written == std::vector<int>(8, 200));
    CHECK(both == std::vector<int>{6, 6, 6, 6, 6, 6, 6, 3});
}

TEST_CASE("bounce_buffers: a slot that was exchanged changes its place, and nothing is copied out of it") {
    scene on;
    std::vector<int> others(slot_elements, 40), buffer(10 * slot_elements, 1);
    for (std::size_t n = 0; n < 9; ++n) {
        int* const at = &buffer[n * slot_elements];
        on.pieces.push_back({{{in(at), out(at), 0, slot_elements}}});
    }
    std::size_t number = 0;
    on.session.run = [&](execution& e) {
        if (number++ != 1) return twice(e);
        CHECK(e.lent_parts == 1);
        *reinterpret_cast<int*>(e.lent[0].to) = 77; // the exchange puts the result where it is due
        e.own = out(others.data());
        e.home = 1;
        e.how = herring::lending::swap;
    };
    on.begin();
    on.drain();
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
        on.pieces.push_back({{{in(&buffer[n * slot_elements]), out(&buffer[n * slot_elements]), 0, 8}}});
    failure const lost = failure::make(errc::peer_lost, 0, 1, "reduce", "it is gone");
    on.session.run = [&](execution&) {
        if (on.session.released_count == 2) on.session.why = &lost;
    };
    on.begin();
    on.drain();
    CHECK(on.out < 6);
    CHECK(on.session.waits == 2);
}
