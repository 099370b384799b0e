// herring: the picture that perfetto.hpp writes: tracks of slices of all ranks, on one clock.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_PICTURE_HPP
#define HERRING_TRACE_TIMELINE_PICTURE_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/text.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_flights.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A slice of a track, or an instant: begin == end.
struct picture_slice {
    std::int64_t begin_ns = 0, end_ns = 0; ///< since the begin of the picture
    std::string name{};
    std::int64_t bytes = -1, peer = -1, execution = -1; ///< −1: none
    std::uint64_t flow_out = 0, flow_in = 0;            ///< of a message: equal at both ends; 0: none
};

/// A track of slices in the order of their begins; each is nested in the previous one or lies behind it.
struct picture_track {
    std::string name{};
    std::vector<picture_slice> slices{};
};

/// The tracks of one rank.
struct picture_process {
    int rank = 0;
    std::string name{};
    std::vector<picture_track> tracks{};
};

/// The timelines of all ranks as tracks of slices.
///
/// Cost:    O(records · log records); allocates.
class timeline_picture {
  public:
    std::vector<picture_process> processes{};

    HERRING_SETUP explicit timeline_picture(std::span<timeline_data const> ranks) {
        for (timeline_data const& of : ranks)
            if (!of.records.empty()) begin_ = std::min(begin_, of.common_ns(of.records.front().ns));
        for (timeline_data const& of : ranks) draw(of);
    }

  private:
    HERRING_SETUP void draw(timeline_data const& of) {
        picture_process p{of.rank, text({"rank ", of.rank}), {}};
        if (!of.host.empty()) append(p.name, {" on ", of.host});
        if (of.is_aligned()) append(p.name, {", clock to within ", (of.bound_ns() + 999) / 1000, " us"});
        timeline_flights const found(of);
        std::int64_t const last = of.records.empty() ? 0 : of.records.back().ns;
        p.tracks.push_back(step_track(of, found, last));
        flight_tracks(of, found, last, p.tracks);
        picture_track folds{"folds", {}};
        for (auto const& [when, bucket] : found.fold_spans) {
            folds.slices.push_back(slice(of, when, name_of("fold", bucket)));
        }
        copy_track(of, found.to_host, "copies to the host", p.tracks);
        p.tracks.push_back(std::move(folds));
        copy_track(of, found.to_device, "copies to the device", p.tracks);
        message_tracks(of, p.tracks);
        for (picture_track& t : p.tracks)
            std::stable_sort(
                t.slices.begin(), t.slices.end(), [](picture_slice const& a, picture_slice const& b) {
                    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
                });
        std::erase_if(p.tracks, [](picture_track const& t) { return t.slices.empty(); });
        processes.push_back(std::move(p));
    }

    picture_slice slice(timeline_data const& of, timeline_span const& when, std::string name) const {
        // The order of a rank's times stays, so a slice that has a length keeps one.
        return {of.common_ns(when.begin) - begin_, of.common_ns(when.end) - begin_, std::move(name)};
    }
    static std::string name_of(char const* what, std::uint32_t bucket) {
        return bucket == no_bucket ? std::string("call") : text({what, " ", bucket});
    }

    // The track of the caller: tensors that become ready until `wait()`, waits, and the ranks waited for.
    HERRING_SETUP picture_track step_track(timeline_data const& of, timeline_flights const& found,
                                           std::int64_t last) const {
        picture_track t{"step", {}};
        std::int64_t first_ready = 0;
        bool any = false;
        auto const end_ready = [&](std::int64_t at) {
            if (std::exchange(any, false)) t.slices.push_back(slice(of, {first_ready, at}, "backward"));
        };
        for (timeline_record const& r : of.records) {
            if (r.what == trace_event::tensor_ready) {
                if (!any) first_ready = r.ns;
                any = true;
                picture_slice ready = slice(of, {r.ns, r.ns},
                                            r.index < of.tensor_names.size() ? of.tensor_names[r.index]
                                                                             : text({"tensor ", r.index}));
                ready.bytes = r.bytes;
                t.slices.push_back(std::move(ready));
            } else if (r.what == trace_event::wait_begin) {
                end_ready(r.ns);
            }
        }
        end_ready(last);
        for (std::size_t w = 0; w < found.waits.size(); ++w) {
            picture_slice wait = slice(of, found.waits[w], "wait");
            wait.peer = found.waits_peer[w];
            t.slices.push_back(std::move(wait));
        }
        if (found.is_waiting) {
            picture_slice wait = slice(of, {found.open_wait, last}, "wait without end");
            wait.peer = found.open_peer;
            t.slices.push_back(std::move(wait));
        }
        for (auto const& [when, peer] : found.waited_for)
            t.slices.push_back(slice(of, when, text({"for rank ", peer})));
        return t;
    }

    HERRING_SETUP void flight_tracks(timeline_data const& of, timeline_flights const& found,
                                     std::int64_t last, std::vector<picture_track>& into) const {
        std::vector<timeline_flight> all = found.flights;
        all.insert(all.end(), found.calls.begin(), found.calls.end());
        std::size_t const complete = all.size();
        for (timeline_flight f : found.open) {
            f.of.end = last;
            all.push_back(std::move(f));
        }
        std::vector<std::size_t> const lanes = timeline_flights::lanes_of(all);
        std::size_t const first = into.size();
        for (std::size_t i = 0; i < all.size(); ++i) {
            while (into.size() <= first + lanes[i])
                into.push_back({text({"in flight ", into.size() - first + 1}), {}});
            timeline_flight const& f = all[i];
            picture_slice s = slice(of, f.of, name_of("bucket", f.bucket));
            if (i >= complete) s.name += " without result";
            s.execution = f.execution;
            s.bytes = static_cast<std::int64_t>(f.bytes);
            into[first + lanes[i]].slices.push_back(std::move(s));
        }
    }

    HERRING_SETUP void copy_track(timeline_data const& of, std::vector<timeline_flights::copy> const& all,
                                  char const* name, std::vector<picture_track>& into) const {
        picture_track t{name, {}};
        for (auto const& each : all) {
            t.slices.push_back(slice(of, each.of, name_of("bucket", each.bucket)));
            t.slices.back().bytes = static_cast<std::int64_t>(each.bytes);
        }
        into.push_back(std::move(t));
    }

    HERRING_SETUP void message_tracks(timeline_data const& of, std::vector<picture_track>& into) const {
        picture_track sent{"sent", {}}, arrived{"arrived", {}};
        for (timeline_record const& r : of.records) {
            bool const out = r.what == trace_event::part_sent || r.what == trace_event::result_sent;
            bool const in = r.what == trace_event::part_arrived || r.what == trace_event::result_arrived;
            bool const part = r.what == trace_event::part_sent || r.what == trace_event::part_arrived;
            if (!out && !in && r.what != trace_event::credit_stall) continue;
            picture_slice s = slice(of, {r.ns, r.ns}, {});
            s.peer = r.peer;
            s.execution = r.execution == no_execution ? -1 : std::int64_t{r.execution};
            if (r.what == trace_event::credit_stall) {
                s.name = text({"no credit for rank ", r.peer});
            } else {
                s.name = text({part ? "part " : "result ", out ? "to" : "from", " rank ", r.peer});
                s.bytes = r.bytes;
                (out ? s.flow_out : s.flow_in) =
                    out ? flow_of(of.rank, r.peer, r.message) : flow_of(r.peer, of.rank, r.message);
            }
            (in ? arrived : sent).slices.push_back(std::move(s));
        }
        into.push_back(std::move(sent));
        into.push_back(std::move(arrived));
    }
    static std::uint64_t flow_of(int from, int to, std::uint32_t message) noexcept {
        return digest().add(from).add(to).add(message).value() | 1;
    }

    std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRACE_TIMELINE_PICTURE_HPP
