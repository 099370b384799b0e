// herring: the division of a bucket into shards, one a server, and of a shard into chunks. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_DIVISION_HPP
#define HERRING_PLAN_DIVISION_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/roles.hpp"
#include "herring/plan/bucket.hpp"
#include "herring/plan/route_limits.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Cuts one shard into chunks of at most `chunk_elements`. If the size allows it, there is a chunk for each
/// of `local_ranks` ranks.
constexpr shard cut(std::size_t offset, std::size_t elements, server_id server, std::size_t chunk_elements,
                    std::size_t line_elements, int local_ranks) noexcept {
    shard part{.offset = offset, .elements = elements, .server = server};
    if (elements == 0) return part;
    auto const ranks = static_cast<std::size_t>(local_ranks);
    std::size_t const fewest = round_up(divide_up(elements, chunk_elements), ranks);
    part.chunk_elements = round_up(divide_up(elements, fewest), line_elements);
    if (part.chunk_elements > chunk_elements && chunk_elements >= line_elements)
        part.chunk_elements = chunk_elements / line_elements * line_elements;
    part.chunks = static_cast<std::uint32_t>(divide_up(elements, part.chunk_elements));
    return part;
}

/// Elements of each part of a split bucket; the last part may have fewer. Parts are even and have at most
/// `most` elements; 0: the bucket is one part.
constexpr std::size_t split_elements(std::size_t elements, std::size_t most,
                                     std::size_t line_elements) noexcept {
    if (most == 0 || elements <= most) return elements;
    return round_up(divide_up(elements, divide_up(elements, most)), line_elements);
}

/// Intersects the tensors with a range of their bucket; offsets become relative to the range.
constexpr void range_of(std::span<bucket_tensor const> tensors, std::size_t offset, std::size_t elements,
                        std::vector<bucket_tensor>& part) {
    part.clear();
    for (bucket_tensor const& t : tensors) {
        std::size_t const from = std::max(t.offset, offset);
        std::size_t const to = std::min(t.offset + t.elements, offset + elements);
        if (from <= to && (from < to || t.elements == 0)) part.push_back({t.index, from - offset, to - from});
    }
}

/// Facts of a bucket that is divided into shards: its place in errors, and what its contributors send.
struct division {
    static constexpr std::size_t no_number = ~std::size_t{0};
    int rank = -1;                       ///< the rank that reports errors; -1: not known
    char const* operation = "make_plan"; ///< the call that divides
    std::size_t bucket = no_number;      ///< no_number: a piece of the call's buffer
    server_id whole{0}; ///< the server that takes the whole bucket if it is small, or the first of a few
    /// Numbers that a node's part has for each element; a slot has room for those of a chunk.
    std::size_t part_width = 1;
    bool twofold = false;          ///< two results for each element
    bool sums = false;             ///< a sum, which two levels can make
    char const* unit = "elements"; ///< what the bucket consists of, for errors
};

/// Elements of each server in the buckets so far. A small bucket goes to the server with the least load for
/// its share; if all are small, servers take turns.
class server_loads {
  public:
    constexpr explicit server_loads(roles const& of) : roles_(of) {
        for (std::size_t s = 0; s < of.servers.size(); ++s) elements_.push_back(0);
    }
    /// Adds a bucket; `shards` are those of its plan.
    constexpr void add(bucket const& one, std::vector<shard> const& shards) noexcept {
        if (one.path != route::two_hop) return; // the bucket has no server, or one in each rack
        for (std::uint32_t s = one.first_shard; s < one.first_shard + one.shards; ++s)
            elements_[shards[s].server.place()] += shards[s].elements;
    }
    constexpr server_id least() const noexcept {
        std::size_t best = 0;
        for (std::size_t s = 1; s < elements_.size(); ++s)
            if (has_less(s, best)) best = s;
        return server_id::at(best);
    }
    constexpr std::size_t elements(server_id of) const noexcept { return elements_[of.place()]; }

  private:
    /// True if elements ÷ share of `a` is less than that of `b`. Compares fractions, in whole numbers.
    constexpr bool has_less(std::size_t a, std::size_t b) const noexcept {
        std::size_t const of_a = roles_.share(server_id::at(a)), of_b = roles_.share(server_id::at(b));
        std::size_t const whole_a = elements_[a] / of_a, whole_b = elements_[b] / of_b;
        if (whole_a != whole_b) return whole_a < whole_b;
        return elements_[a] % of_a * of_b < elements_[b] % of_b * of_a;
    }

    roles const& roles_;
    std::vector<std::size_t> elements_;
};

/// Checks the ranges that a sharding policy assigns, one by one. Keeps the first defect and throws nothing,
/// because a policy's function may be noexcept.
///
/// Cost: O(1) a range.
class shard_check {
  public:
    constexpr shard_check(bucket_view const& view, int servers) noexcept : view_(view), servers_(servers) {}

    /// True if the range begins where the previous range ended, and has a server.
    constexpr bool takes(std::size_t offset, std::size_t elements, server_id server) noexcept {
        if (defect_ != nullptr) return false;
        if (offset != next_)
            defect_ = offset > next_ ? "leaves out the elements before it" : "overlaps, or is out of order";
        else if (elements > view_.elements - next_)
            defect_ = "ends behind the bucket";
        else if (server.value < 0 || server.value >= servers_)
            defect_ = "goes to a server that does not exist";
        else if (elements > 0 && offset % view_.line_elements != 0)
            defect_ = "begins within a cache line";
        offset_ = offset, elements_ = elements, server_ = server.value;
        if (defect_ == nullptr) next_ += elements;
        return defect_ == nullptr;
    }

    /// True if all ranges were sound and cover every element.
    constexpr bool sound() const noexcept { return defect_ == nullptr && next_ == view_.elements; }

    /// Throws the defect as `bad_argument`.
    [[noreturn]] HERRING_SEPARABLE void refuse(std::string_view policy, division const& of) const;

  private:
    bucket_view const& view_;
    int servers_;
    std::size_t next_ = 0; // elements that have a server
    char const* defect_ = nullptr;
    std::size_t offset_ = 0, elements_ = 0; // of the range with the defect
    int server_ = 0;
};

/// Fills in route, shards and chunks of one bucket; appends to `shards`.
///
/// Errors: `bad_argument` if the sharding policy does not give every element one server.
template <class Sharding>
constexpr void divide(bucket& result, bucket_view const& view, route_limits const& facts,
                      std::vector<shard>& shards, division const& of) {
    bool const one_node = facts.nodes == 1;
    result.elements = view.elements;
    result.first_shard = static_cast<std::uint32_t>(shards.size());
    std::size_t const width = one_node ? 1 : of.part_width;
    result.path = route_of(view.elements * facts.element_bytes * width, facts, true, of.twofold);
    bool const two_levels = of.sums && facts.has_two_levels() && result.path == route::two_hop &&
                            view.elements * facts.element_bytes >= facts.tuning.two_level_bytes;
    if (two_levels) result.path = route::two_levels;
    std::size_t const chunk =
        std::max((one_node     ? facts.tuning.local_chunk_bytes
                  : two_levels ? facts.tuning.chunk_bytes
                               : facts.chunk_bytes()) /
                     (facts.element_bytes * width),
                 std::size_t{1}); // a local chunk may be smaller than an element of 256 bytes
    std::size_t const line = width == 1 ? facts.line_elements : std::min(facts.line_elements, chunk);
    std::uint32_t chunks = 0;
    auto const add = [&](std::size_t offset, std::size_t elements, server_id server) {
        if (elements == 0) return;
        shard part = cut(offset, elements, server, chunk, line, facts.largest_node);
        part.first_chunk = chunks;
        chunks += part.chunks;
        shards.push_back(part);
    };
    int const all = facts.roles.server_count();
    int const servers = of.twofold && facts.all_have_both_roles()
                            ? all
                            : facts.servers_of(view.elements * facts.element_bytes * width);
    if (servers < all && result.path == route::two_hop) {
        std::size_t const each =
            split_elements(view.elements, divide_up(view.elements, static_cast<std::size_t>(servers)), line);
        for (std::size_t at = 0, s = of.whole.place(); at < view.elements; at += each, ++s)
            add(at, std::min(each, view.elements - at), server_id::at(s % static_cast<std::size_t>(all)));
    } else if (has_servers(result.path)) {
        roles const& serving = two_levels ? facts.columns : facts.roles;
        shard_check check(view, serving.server_count());
        auto const assign = [&](std::size_t offset, std::size_t elements, server_id server) {
            if (check.takes(offset, elements, server)) add(offset, elements, server);
        };
        Sharding::shard(view, serving, assign);
        if (!check.sound()) check.refuse(policy_name<Sharding>(), of);
    } else {
        add(0, view.elements, one_node ? server_id{0} : server_id{});
    }
    result.shards = static_cast<std::uint32_t>(shards.size()) - result.first_shard;
    result.chunks = chunks;
}

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/plan/division_impl.hpp"
#endif

#endif // HERRING_PLAN_DIVISION_HPP
