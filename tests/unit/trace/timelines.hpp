// herring: timelines whose answers are known: events at chosen times, as data and as an image.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_TRACE_TIMELINES_HPP
#define HERRING_TESTS_UNIT_TRACE_TIMELINES_HPP

#include "herring/trace/timeline_data.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace timelines {

using herring::trace_event;

/// Events in the order of time.
struct schedule {
    herring::timeline_data data;

    explicit schedule(int rank = 0, int ranks = 4) {
        data.rank = rank;
        data.ranks = ranks;
        data.node_of.resize(static_cast<std::size_t>(ranks));
        for (int r = 0; r < ranks; ++r) data.node_of[static_cast<std::size_t>(r)] = r;
        data.bucket_bytes = {1000, 3000};
        data.tensor_names = {"weight", "bias"};
        data.host = "somewhere";
        data.version = "0";
    }
    schedule& at(std::int64_t ns, trace_event what, herring::timeline_record r = {}) {
        r.ns = ns;
        r.what = what;
        data.records.push_back(r);
        return *this;
    }
    schedule& submitted(std::int64_t ns, std::uint32_t execution, std::uint32_t bucket) {
        return at(ns, trace_event::bucket_submitted,
                  {.index = bucket, .execution = execution, .bytes = 1000});
    }
    schedule& reduced(std::int64_t ns, std::uint32_t execution, std::uint32_t bucket) {
        return at(ns, trace_event::bucket_reduced, {.index = bucket, .execution = execution});
    }
    schedule& arrived(std::int64_t ns, std::uint32_t execution, int peer, std::uint32_t message = 0) {
        return at(ns, trace_event::part_arrived, {.peer = peer, .execution = execution, .message = message});
    }
    schedule& wait(std::int64_t begin, std::int64_t end, int peer = -1) {
        at(begin, trace_event::wait_begin);
        at(end, trace_event::wait_end, {.peer = peer});
        return *this;
    }
    herring::timeline_data done() {
        std::stable_sort(data.records.begin(), data.records.end(),
                         [](auto const& a, auto const& b) { return a.ns < b.ns; });
        return data;
    }
};

/// An image of two rings, as a recorder writes it: one tick a nanosecond, `slots` places each.
struct image {
    herring::detail::timeline_header head{};
    std::vector<herring::detail::timeline_entry> rings[2];

    explicit image(std::uint64_t slots = 8) {
        using herring::detail::timeline_header;
        std::memcpy(head.magic, timeline_header::expected_magic, sizeof head.magic);
        head.order = timeline_header::expected_order;
        head.format = timeline_header::expected_format;
        head.ranks = 2;
        head.buckets = 1;
        head.tensors = 2;
        head.names_bytes = 4; // "a" and "b"
        head.now = timeline_header::state::running;
        head.first = {1000, 1'000'000, 10};
        head.second = {501'000, 1'500'000, 10};
        head.fixes[0] = head.fixes[1] = {0, 0, -1};
        for (auto& r : head.rings) r.slots = slots;
        for (auto& r : rings) r.resize(static_cast<std::size_t>(slots));
    }
    image& record(std::uint64_t ticks, trace_event what, int peer = -1) {
        int const which = herring::detail::is_of_engine(what) ? 1 : 0;
        herring::detail::timeline_entry e{};
        e.ticks = ticks;
        e.event = static_cast<std::uint8_t>(what);
        e.peer = peer;
        rings[which][static_cast<std::size_t>(head.rings[which].head++ % head.rings[which].slots)] = e;
        return *this;
    }
    std::vector<std::byte> bytes() const {
        auto const at = herring::detail::timeline_places::of(head);
        std::vector<std::byte> all(at.end);
        std::memcpy(all.data(), &head, sizeof head);
        std::int32_t const nodes[] = {0, 1};
        std::uint64_t const bucket = 4096;
        std::memcpy(all.data() + at.nodes, nodes, sizeof nodes);
        std::memcpy(all.data() + at.buckets, &bucket, sizeof bucket);
        std::memcpy(all.data() + at.names, "a\0b", 4);
        for (int i = 0; i < 2; ++i)
            std::memcpy(all.data() + at.rings[i], rings[i].data(),
                        rings[i].size() * sizeof(herring::detail::timeline_entry));
        return all;
    }
};

} // namespace timelines

#endif // HERRING_TESTS_UNIT_TRACE_TIMELINES_HPP
