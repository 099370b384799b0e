// herring: recorder files of a job, also of ranks that were killed: who is behind, in which operation, waiting for whom.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_TIMELINE_INSPECT_HPP
#define HERRING_BENCH_TIMELINE_INSPECT_HPP

#include <herring/base/error.hpp>
#include <herring/base/text.hpp>
#include <herring/machine/descriptor.hpp>
#include <herring/trace/timeline_clocks.hpp>
#include <herring/trace/timeline_data.hpp>
#include <herring/trace/timeline_flights.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bench {

namespace detail = herring::detail;
using herring::timeline_data, herring::timeline_record, herring::trace_event, herring::no_bucket;

/// Reads a recorder's file; its process may live.
///
/// Errors: `bad_argument`: it is none, or cut, or cannot be read, or is larger than 4 GiB.
inline timeline_data read_timeline_file(std::string const& path) {
    // A pipe of that name is refused, and not waited for.
    detail::descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat found {};
    if (file.get() < 0 || ::fstat(file.get(), &found) != 0)
        detail::refuse_timeline({path, ": ", std::strerror(errno)});
    if (!S_ISREG(found.st_mode) || found.st_size > (off_t{1} << 32))
        detail::refuse_timeline({path, ": it is no file, or larger than 4 GiB"});
    std::vector<std::byte> bytes(static_cast<std::size_t>(found.st_size));
    std::size_t have = 0;
    while (have < bytes.size()) {
        ssize_t const got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break; // it became shorter
        have += static_cast<std::size_t>(got);
    }
    detail::timeline_header later; // what was written while it was read
    bool const has_later = ::pread(file.get(), &later, sizeof later, 0) == static_cast<ssize_t>(sizeof later);
    try {
        return detail::read_image(std::span(bytes).first(have), has_later ? later.rings : nullptr);
    } catch (herring::error const& why) {
        detail::refuse_timeline({path, ": ", why.why().text});
    }
}

/// What the timelines of one reducer say of where its ranks are.
class timeline_inspection {
  public:
    /// One rank, as its file ends.
    struct rank_state {
        int rank = 0;
        bool ended = false;       ///< in order
        char const* process = ""; ///< what is known of it
        std::uint32_t pid = 0;
        std::string host{};
        std::uint32_t submitted = 0; ///< operations: buckets of steps, and pieces of calls
        std::uint32_t complete = 0;
        bool is_open = false;             ///< an operation was submitted, and has no result
        std::uint32_t bucket = no_bucket; ///< of the oldest such one
        bool is_waiting = false;
        int waits_for = -1;
        std::int64_t last_ns = 0; ///< last event, on rank 0's clock
        std::string last{};       ///< and which it was
    };

    /// Timelines of one reducer; a rank may be missing.
    explicit timeline_inspection(std::span<timeline_data const> files) {
        for (timeline_data const& of : files) {
            states_.push_back(state_of(of));
            ranks_ = std::max(ranks_, of.ranks);
        }
        std::sort(states_.begin(), states_.end(),
                  [](rank_state const& a, rank_state const& b) { return a.rank < b.rank; });
        for (rank_state const& s : states_) {
            newest_ = std::max(newest_, s.last_ns);
            most_ = std::max(most_, s.submitted);
            most_complete_ = std::max(most_complete_, s.complete);
        }
    }

    std::vector<rank_state> const& states() const noexcept { return states_; }

    /// Ranks that have submitted fewer operations than others; where all have submitted as many: that have fewer results.
    std::vector<int> behind() const {
        std::vector<int> found;
        for (rank_state const& s : states_)
            if (!s.ended && s.submitted < most_) found.push_back(s.rank);
        if (found.empty())
            for (rank_state const& s : states_)
                if (!s.ended && s.complete < most_complete_) found.push_back(s.rank);
        return found;
    }
    /// Where the chains of «waits for» end: ranks that are waited for, and wait for nobody, or have no file.
    std::vector<int> waited_for() const {
        std::vector<int> found;
        for (rank_state const& s : states_) {
            if (!s.is_waiting || s.waits_for < 0) continue;
            int at = s.waits_for;
            for (std::size_t steps = 0; steps < states_.size(); ++steps) {
                rank_state const* const next = state(at);
                if (next == nullptr || !next->is_waiting || next->waits_for < 0) break;
                at = next->waits_for;
            }
            found.push_back(at);
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    /// For people: the minority first, then a line a rank.
    std::string text() const {
        std::string out;
        std::vector<int> missing;
        for (int r = 0; r < ranks_; ++r)
            if (state(r) == nullptr) missing.push_back(r);
        if (!missing.empty()) detail::append(out, {"  no file of: ", list(missing), "\n"});
        std::vector<int> const late = behind(), roots = waited_for();
        bool const all_ended =
            std::all_of(states_.begin(), states_.end(), [](rank_state const& s) { return s.ended; });
        if (!late.empty()) detail::append(out, {"  behind: ", list(late), "\n"});
        if (!roots.empty()) detail::append(out, {"  waited for in the end: ", list(roots), "\n"});
        if (late.empty() && roots.empty())
            out += all_ended ? "  all reducers ended in order\n" : "  nobody is behind\n";
        for (rank_state const& s : states_) {
            detail::append(out, {"  rank ", s.rank, " on ", s.host, ", process ", s.pid, ": ", s.process,
                                 "; ", s.submitted, " operations submitted, ", s.complete, " complete; "});
            if (s.is_open)
                detail::append(out, {"in ", s.bucket == no_bucket ? std::string("a call on a buffer")
                                                                  : detail::text({"bucket ", s.bucket})});
            else
                out += "in none";
            if (s.is_waiting && s.waits_for >= 0)
                detail::append(out, {", waits for rank ", s.waits_for});
            else if (s.is_waiting)
                out += ", in wait()";
            char seconds[64];
            std::snprintf(seconds, sizeof seconds, "%.3f", static_cast<double>(newest_ - s.last_ns) * 1e-9);
            detail::append(out, {"; last event: ", s.last, ", ", seconds, " s before the newest\n"});
        }
        return out;
    }

  private:
    rank_state const* state(int rank) const noexcept {
        for (rank_state const& s : states_)
            if (s.rank == rank) return &s;
        return nullptr;
    }
    static std::string list(std::vector<int> const& ranks) {
        std::string out(ranks.size() == 1 ? "rank" : "ranks");
        for (std::size_t i = 0; i < ranks.size() && i < 16; ++i)
            detail::append(out, {i == 0 ? " " : ", ", ranks[i]});
        if (ranks.size() > 16) detail::append(out, {" and ", ranks.size() - 16, " more"});
        return out;
    }
    static char const* process_of(timeline_data const& of) {
        if (of.failed) return "ended, for its world had failed";
        if (of.ended) return "ended in order";
        if (of.host_id != detail::clock_identity() || of.process_space == 0 ||
            of.process_space != detail::process_space())
            return "lives, or was killed"; // its identifier names another process here, or none
        if (::kill(static_cast<pid_t>(of.pid), 0) == 0 || errno == EPERM) return "lives";
        return "is gone: it was killed";
    }
    static rank_state state_of(timeline_data const& of) {
        detail::timeline_flights const found(of);
        rank_state s;
        s.rank = of.rank;
        s.ended = of.ended && !of.failed;
        s.process = process_of(of);
        s.pid = of.pid;
        s.host = of.host;
        std::int64_t waits_since = 0, moved = 0;
        int peer = -1;
        for (timeline_record const& r : of.records) {
            if (r.what == trace_event::bucket_submitted) s.submitted = r.execution + 1;
            if (r.what == trace_event::bucket_reduced) s.complete = r.execution + 1;
            if (r.what == trace_event::bucket_reduced || r.what == trace_event::wait_end) moved = r.ns;
            if (r.what == trace_event::waits_for) waits_since = r.ns, peer = r.peer;
        }
        for (detail::timeline_flight const& f : found.open)
            if (f.execution >= s.complete) {
                s.is_open = true;
                s.bucket = f.bucket;
                break;
            }
        bool const looks = peer >= 0 && waits_since >= moved && s.is_open;
        s.is_waiting = found.is_waiting || looks;
        if (looks) s.waits_for = peer;
        if (!of.records.empty()) {
            timeline_record const& last = of.records.back();
            s.last_ns = of.common_ns(last.ns);
            s.last = to_string(last.what);
            if (last.what == trace_event::tensor_ready && last.index < of.tensor_names.size())
                detail::append(s.last, {" '", of.tensor_names[last.index], "'"});
            if (last.peer >= 0) detail::append(s.last, {" of rank ", last.peer});
        } else {
            s.last_ns = of.common_ns(of.begin_ns);
            s.last = "none";
        }
        return s;
    }

    std::vector<rank_state> states_;
    int ranks_ = 0;
    std::int64_t newest_ = std::numeric_limits<std::int64_t>::min();
    std::uint32_t most_ = 0, most_complete_ = 0;
};

} // namespace bench

#endif // HERRING_BENCH_TIMELINE_INSPECT_HPP
