// herring: the figures of HERRING_LINKS that the messages of a job's timelines show.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_TIMELINE_LINKS_HPP
#define HERRING_BENCH_TIMELINE_LINKS_HPP

#include <herring/base/text.hpp>
#include <herring/model/links.hpp>
#include <herring/trace/timeline_data.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace bench {

/// What the messages of one reducer's timelines say of its network.
///
/// Shape:  a message takes latency + send + receive + bytes ÷ rate, or longer: it waits for others, and its receiver
///         looks late. So of the messages of each size the tenth of the shortest times counts, and the line through
///         the smallest and the largest size, which is at least four times that, has latency and rate. The cost of a
///         message is the lower quartile of the times between two that one rank sends, or receives, one after the other.
/// Units:  two digits, as a probe has them. 0: the timelines do not tell.
/// Cost:   O(messages · log messages).
class timeline_links {
  public:
    static constexpr std::size_t least_samples = 8; ///< of a size, or of gaps

    explicit timeline_links(std::span<herring::timeline_data const> files) {
        using herring::trace_event;
        // Sender, receiver, kind and number → time on rank 0's clock, and bytes.
        std::map<std::tuple<int, int, bool, std::uint32_t>, std::pair<std::int64_t, std::uint32_t>> sent;
        std::vector<std::int64_t> sends, receives;
        for (auto const& of : files) {
            if (!usable(of)) continue;
            one_host_ = one_host_ && of.host_id == files.front().host_id;
            trace_event before{};
            std::int64_t at = 0;
            for (auto const& r : of.records) {
                bool const leaves = r.what == trace_event::part_sent || r.what == trace_event::result_sent,
                           comes = is_arrival(r.what);
                if (leaves)
                    sent[{of.rank, r.peer, r.what == trace_event::part_sent, r.message}] = {
                        of.common_ns(r.ns), r.bytes};
                if (leaves && (before == trace_event::part_sent || before == trace_event::result_sent))
                    sends.push_back(r.ns - at);
                if (comes && is_arrival(before)) receives.push_back(r.ns - at);
                before = r.what, at = r.ns;
            }
        }
        std::vector<std::int64_t> times[33], bytes[33]; // by the bits of the size
        for (auto const& of : files) {
            if (!usable(of)) continue;
            for (auto const& r : of.records) {
                if (!is_arrival(r.what)) continue;
                auto const from =
                    sent.find({r.peer, of.rank, r.what == trace_event::part_arrived, r.message});
                if (from == sent.end() || from->second.second == ~std::uint32_t{0}) continue;
                std::size_t const size = std::bit_width(from->second.second);
                times[size].push_back(of.common_ns(r.ns) - from->second.first);
                bytes[size].push_back(from->second.second);
                ++messages_;
            }
        }
        found_.send_ns = two_digits(quantile(sends, 4));
        found_.receive_ns = two_digits(quantile(receives, 4));
        std::size_t least = 33, most = 0;
        for (std::size_t i = 0; i < 33; ++i)
            if (times[i].size() >= least_samples) least = std::min(least, i), most = i;
        if (least >= most) return;
        std::int64_t const few = quantile(bytes[least], 2), many = quantile(bytes[most], 2),
                           shorter = quantile(times[least], 10), longer = quantile(times[most], 10);
        if (few < 0 || many < 4 * few || shorter <= 0 || longer <= shorter) return;
        found_.rate_mbit = two_digits((many - few) * 8000 / (longer - shorter));
        std::int64_t const wire = few * (longer - shorter) / (many - few);
        found_.latency_ns = two_digits(std::max<std::int64_t>(
            shorter - wire - std::int64_t{found_.send_ns} - std::int64_t{found_.receive_ns}, 1));
    }

    herring::links const& found() const noexcept { return found_; }

    /// The line to set, or why there is none.
    std::string text() const {
        std::string out;
        if (found_.rate_mbit == 0)
            herring::detail::append(out, {"  no links: of ", messages_,
                                          " messages with both ends there are not ", least_samples,
                                          " each of two sizes, one of them four times the other, that take "
                                          "longer the larger they are; "
                                          "record steps with small and with large buckets, on all ranks\n"});
        else
            herring::detail::append(
                out, {"  HERRING_LINKS=", to_string(found_), "\n  from ", messages_, " messages\n"});
        if (one_host_ && found_.rate_mbit > 0)
            out += "  all ranks share a host: these are not figures of a network\n";
        return out;
    }

  private:
    /// Times of a rank whose clock was not compared with rank 0's say nothing.
    static bool usable(herring::timeline_data const& of) noexcept {
        return of.is_aligned() && !of.clock_jumped;
    }
    static bool is_arrival(herring::trace_event what) noexcept {
        return what == herring::trace_event::part_arrived || what == herring::trace_event::result_arrived;
    }
    /// The value that one of `of` samples is below; −1: there are too few.
    static std::int64_t quantile(std::vector<std::int64_t>& samples, std::size_t of) {
        if (samples.size() < least_samples) return -1;
        std::sort(samples.begin(), samples.end());
        return samples[samples.size() / of];
    }
    static std::uint32_t two_digits(std::int64_t value) noexcept {
        std::int64_t scale = 1;
        value = std::clamp<std::int64_t>(value, 0, herring::detail::most_link);
        while (value / scale >= 100) scale *= 10;
        return static_cast<std::uint32_t>((value + scale / 2) / scale * scale);
    }

    herring::links found_{};
    std::uint64_t messages_ = 0;
    bool one_host_ = true;
};

} // namespace bench

#endif // HERRING_BENCH_TIMELINE_LINKS_HPP
