// herring: the spans of a timeline: flights of buckets, waits, folds, stalls; for reports and pictures.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_FLIGHTS_HPP
#define HERRING_TRACE_TIMELINE_FLIGHTS_HPP

#include "herring/base/config.hpp"
#include "herring/trace/timeline_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A span of time in nanoseconds of one rank's clock.
struct timeline_span {
    std::int64_t begin = 0, end = 0;

    double length() const noexcept { return static_cast<double>(end - begin); }
    double shared_with(timeline_span const& other) const noexcept {
        std::int64_t const from = std::max(begin, other.begin), to = std::min(end, other.end);
        return to > from ? static_cast<double>(to - from) : 0.0;
    }
};

/// One bucket of one step, from its submission to its result.
struct timeline_flight {
    std::uint32_t bucket = 0;
    std::uint32_t execution = 0;
    std::uint64_t bytes = 0;
    bool submitted = false; ///< false: only parts of it have arrived
    timeline_span of{};
    /// Time within a wait and behind the previous result. For a wait, these and the rest add up to its
    /// length.
    double exposed_ns = 0;
    std::map<int, std::int64_t> arrivals{}; ///< rank → arrival of its last part
};

/// Pairs the begins and ends of a timeline's records.
///
/// Cost:    O(records · log records); allocates.
struct timeline_flights {
    std::vector<timeline_flight> flights{}; ///< complete flights of buckets, in the order of results
    std::vector<timeline_flight> calls{};   ///< complete flights of buffers outside the layout
    std::vector<timeline_flight> open{};    ///< flights without a result: where a rank is stuck
    std::vector<timeline_span> waits{};     ///< complete waits
    std::vector<int> waits_peer{};          ///< wait → the rank that it waited for longest, or −1
    std::vector<timeline_span> busy{};      ///< union of all flights: ascending, disjoint
    std::vector<double> folds{};            ///< lengths in ns
    std::vector<std::pair<timeline_span, std::uint32_t>> fold_spans{}; ///< fold, bucket
    struct copy {
        timeline_span of{};
        std::uint32_t bucket = 0;
        std::uint64_t bytes = 0;
    };
    /// Copies of a device, one after the other; length 0: the end is not known.
    std::vector<copy> to_host{}, to_device{};
    struct stall {
        std::size_t count = 0;
        double ns = 0;
    };
    std::map<int, stall> stalls{};                           ///< rank → its stalls
    std::vector<std::pair<timeline_span, int>> waited_for{}; ///< span within a wait, rank
    std::map<int, double> waited{};                          ///< rank → ns within waits
    std::size_t outside = 0;                                 ///< pieces of calls on buffers
    bool is_waiting = false;                                 ///< the last wait has no end
    std::int64_t open_wait = 0;                              ///< its begin
    int open_peer = -1;                                      ///< the rank that it was last for

    timeline_flights() = default;
    HERRING_SETUP explicit timeline_flights(timeline_data const& of) {
        std::map<std::uint32_t, timeline_flight> begun;
        std::map<std::uint64_t, std::int64_t> stalled; // peer and message → begin of the stall
        std::map<std::uint32_t, timeline_record> copied_in, copied_out; // execution → begin of its copy
        std::int64_t fold_begin = 0;
        std::uint32_t folded = no_bucket;
        bool folding = false;
        for (timeline_record const& r : of.records) {
            switch (r.what) {
            case trace_event::bucket_submitted:
                submit(begun[r.execution], r);
                break;
            case trace_event::part_arrived:
                if (r.execution != no_execution) begun[r.execution].arrivals[r.peer] = r.ns;
                break;
            case trace_event::bucket_reduced:
                end(begun, r);
                break;
            case trace_event::wait_begin:
                open_wait = r.ns;
                is_waiting = true;
                open_peer = -1;
                break;
            case trace_event::wait_end:
                if (!std::exchange(is_waiting, false)) break;
                waits.push_back({open_wait, r.ns});
                waits_peer.push_back(r.peer);
                // No thread checks copies behind a wait: their ends would be found when the next step begins.
                for (auto const& [number, begin] : copied_out)
                    to_device.push_back({{begin.ns, begin.ns}, begin.index, begin.bytes});
                copied_out.clear();
                break;
            case trace_event::waits_for:
                open_peer = r.peer;
                break;
            case trace_event::fold_begin:
                fold_begin = r.ns;
                folded = r.index;
                folding = true;
                break;
            case trace_event::fold_end:
                if (!std::exchange(folding, false)) break;
                folds.push_back(static_cast<double>(r.ns - fold_begin));
                fold_spans.push_back({{fold_begin, r.ns}, folded});
                break;
            case trace_event::credit_stall:
                stalled[key(r)] = r.ns;
                ++stalls[r.peer].count;
                break;
            case trace_event::part_sent:
                if (auto const since = stalled.find(key(r)); since != stalled.end()) {
                    stalls[r.peer].ns += static_cast<double>(r.ns - since->second);
                    stalled.erase(since);
                }
                break;
            case trace_event::to_host_begin:
                copied_in[r.execution] = r;
                break;
            case trace_event::to_device_begin:
                copied_out[r.execution] = r;
                break;
            case trace_event::to_host_end:
                end_copy(copied_in, r, to_host);
                break;
            case trace_event::to_device_end:
                end_copy(copied_out, r, to_device);
                break;
            case trace_event::tensor_ready:
            case trace_event::result_sent:
            case trace_event::result_arrived:
                break;
            }
        }
        for (auto& [number, f] : begun)
            if (f.submitted) open.push_back(std::move(f));
        find_busy();
        expose();
        divide_waits(of);
    }

    /// Returns flight → lane, with the fewest lanes such that flights of one lane do not overlap.
    HERRING_SETUP static std::vector<std::size_t> lanes_of(std::vector<timeline_flight> const& flights) {
        std::vector<std::size_t> order(flights.size()), lane(flights.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return flights[a].of.begin < flights[b].of.begin;
        });
        std::vector<std::int64_t> free_at;
        for (std::size_t const i : order) {
            std::size_t l = 0;
            while (l < free_at.size() && free_at[l] > flights[i].of.begin) ++l;
            if (l == free_at.size()) free_at.push_back(0);
            free_at[l] = flights[i].of.end;
            lane[i] = l;
        }
        return lane;
    }

  private:
    static std::uint64_t key(timeline_record const& r) noexcept {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(r.peer)) << 32 | r.message;
    }
    HERRING_SETUP static void submit(timeline_flight& f, timeline_record const& r) {
        f.bucket = r.index;
        f.execution = r.execution;
        f.bytes = r.bytes;
        f.of.begin = r.ns;
        f.submitted = true;
    }
    HERRING_SETUP void end(std::map<std::uint32_t, timeline_flight>& begun, timeline_record const& r) {
        auto const at = begun.find(r.execution);
        if (at == begun.end()) return;
        timeline_flight f = std::move(at->second);
        begun.erase(at);
        if (!f.submitted) return; // submitted before the first record
        f.of.end = r.ns;
        if (f.bucket == no_bucket) {
            ++outside;
            calls.push_back(std::move(f));
        } else {
            flights.push_back(std::move(f));
        }
    }
    // Copies of one direction run one by one: a copy begins no earlier than the previous one ends.
    HERRING_SETUP static void end_copy(std::map<std::uint32_t, timeline_record>& begun,
                                       timeline_record const& r, std::vector<copy>& into) {
        auto const at = begun.find(r.execution);
        if (at == begun.end()) return;
        std::int64_t const free = into.empty() ? at->second.ns : into.back().of.end;
        into.push_back({{std::max(at->second.ns, free), r.ns}, at->second.index, at->second.bytes});
        begun.erase(at);
    }
    HERRING_SETUP void find_busy() {
        std::vector<timeline_span> all;
        for (timeline_flight const& f : flights) all.push_back(f.of);
        std::sort(all.begin(), all.end(),
                  [](timeline_span const& a, timeline_span const& b) { return a.begin < b.begin; });
        for (timeline_span const& s : all)
            if (busy.empty() || s.begin > busy.back().end)
                busy.push_back(s);
            else
                busy.back().end = std::max(busy.back().end, s.end);
    }
    // Results and waits are both in order.
    HERRING_SETUP void expose() noexcept {
        std::size_t w = 0;
        std::int64_t before = std::numeric_limits<std::int64_t>::min();
        for (timeline_flight& f : flights) {
            while (w < waits.size() && waits[w].end < f.of.end) ++w;
            if (w == waits.size()) return;
            std::int64_t const from = std::max(waits[w].begin, before);
            if (f.of.end > from) f.exposed_ns = static_cast<double>(f.of.end - from);
            before = f.of.end;
        }
    }
    // A rank is waited for from the record of it to the next such record, the next result, or the end of the
    // wait.
    HERRING_SETUP void divide_waits(timeline_data const& of) {
        std::size_t w = 0;
        timeline_span now{};
        int peer = -1;
        auto const close = [&](std::int64_t at) {
            if (peer < 0) return;
            now.end = at;
            for (; w < waits.size() && waits[w].end <= now.begin; ++w) {
            }
            if (w < waits.size() && now.shared_with(waits[w]) > 0) {
                waited[peer] += now.shared_with(waits[w]);
                waited_for.push_back(
                    {{std::max(now.begin, waits[w].begin), std::min(now.end, waits[w].end)}, peer});
            }
            peer = -1;
        };
        for (timeline_record const& r : of.records) {
            if (r.what != trace_event::waits_for && r.what != trace_event::bucket_reduced &&
                r.what != trace_event::wait_end)
                continue;
            close(r.ns);
            if (r.what != trace_event::waits_for) continue;
            peer = r.peer;
            now.begin = r.ns;
        }
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRACE_TIMELINE_FLIGHTS_HPP
