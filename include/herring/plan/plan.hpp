// herring: the plan: layout + topology + policies → buckets, shards and chunks; pure, the same on every rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_PLAN_HPP
#define HERRING_PLAN_PLAN_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/ids.hpp"
#include "herring/base/text.hpp"
#include "herring/error.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/placement/colocated.hpp"
#include "herring/plan/exchange_tuning.hpp"
#include "herring/plan/roles.hpp"
#include "herring/plan/topology.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE {

/// How a bucket travels. The plan decides it from sizes.
enum class route : std::uint8_t {
    mailbox,      ///< one node, small: every rank copies into its mailbox, and every rank sums all mailboxes
    local,        ///< one node: every local rank sums its own chunks for all
    one_hop,      ///< several nodes, small: every rank sends to every node, each sums in rank order
    two_hop,      ///< several nodes: push to the chunk's server, which sums and returns the result
    dissemination ///< many nodes, tiny: ⌈log2 nodes⌉ rounds, each forwards all it has; each sums in rank order
};

constexpr char const* to_string(route r) noexcept {
    switch (r) {
    case route::mailbox:
        return "mailbox";
    case route::local:
        return "local";
    case route::one_hop:
        return "one hop";
    case route::two_hop:
        return "two hops";
    case route::dissemination:
        return "dissemination";
    }
    return "unknown";
}

/// A range of a bucket with one server. Chunk k of it starts at offset + k·chunk_elements.
struct shard {
    std::size_t offset = 0; ///< elements from the bucket's start
    std::size_t elements = 0;
    std::size_t chunk_elements = 0; ///< all chunks but the last have this many
    std::uint32_t chunks = 0;
    std::uint32_t first_chunk = 0; ///< dense chunk id in the bucket of this shard's chunk 0
    server_id server{0};           ///< of `plan::roles`; −1 where every node sums for itself (one hop)
    int owner = -1; ///< local rank of the server that handles all chunks; -1: k mod L handles chunk k
};

/// A run of tensors that travels together. A split bucket is stored as several consecutive entries: only the first has
/// `tensors` > 0; the others become ready with it.
struct bucket {
    std::size_t offset = 0;         ///< elements from the start of a rank's tensor memory
    std::size_t elements = 0;       ///< with the padding between tensors
    std::uint32_t first_tensor = 0; ///< first tensor with elements here, or else the next one in the layout
    std::uint32_t tensors = 0;
    std::uint32_t first_shard = 0;
    std::uint32_t shards = 0;
    std::uint32_t chunks = 0;
    route path = route::local;
};

/// Where tensor i lies in a rank's tensor memory, in elements.
struct placed_tensor {
    std::size_t offset = 0;
    std::size_t elements = 0;
    std::uint32_t bucket = 0;
};

/// Chunks that a pair of ranks exchanges within a shard: every `stride`-th, from `first` on.
///
/// Local rank l of a node of L ranks handles the chunks k with k mod L = l. So the pair (l of L, m of M) shares
/// the k that satisfy both, which is one residue modulo lcm(L, M), or none.
struct chunk_stream {
    std::uint32_t first = 0;
    std::uint32_t stride = 0; ///< 0: the pair shares no chunk

    constexpr bool any() const noexcept { return stride != 0; }

    /// Whether the stream has chunks of this shard. One local rank handles all chunks of a shard with an owner.
    constexpr bool handles(shard const& s) const noexcept {
        return any() && (s.owner < 0 || static_cast<std::uint32_t>(s.owner) % stride == first);
    }
    /// Number of its chunks of this shard, if it handles the shard.
    constexpr std::uint32_t count(shard const& s) const noexcept {
        if (s.owner >= 0) return s.chunks;
        if (s.chunks <= first) return 0;
        std::uint32_t const from_first = s.chunks - first;
        return from_first <= stride
                   ? 1
                   : (from_first + stride - 1) / stride; // mostly one: a division takes longer
    }

    static constexpr chunk_stream between(int l, int size_l, int m, int size_m) noexcept {
        int stride = size_l; // the least common multiple: <numeric> would cost every program
        while (stride % size_m != 0) stride += size_l;
        for (int k = l; k < stride; k += size_l)
            if (k % size_m == m) return {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(stride)};
        return {};
    }
};

/// Everything that a step needs to know, computed once. A value: print it, compare it, test it.
///
/// Shape:  n tensors → `buckets`; each bucket → `shards` (one server each) → chunks of at most
///         `chunk_bytes`, handled on every node by local rank k mod L.
/// Cost:   O(tensors + shards) in time and memory; chunks are computed, not stored.
struct plan {
    std::vector<placed_tensor> tensors;
    std::vector<bucket> buckets;
    std::vector<shard> shards;
    std::size_t elements = 0;      ///< of a rank's tensor memory, padding included
    std::size_t element_bytes = 0; ///< as stored
    std::size_t part_element_bytes =
        0; ///< of an element of a node's sum on the wire: of the accumulator where ranks share a node
    std::size_t line_elements = 1; ///< elements to a cache line
    exchange_tuning tuning;
    int nodes = 1;
    int largest_node = 1;
    herring::roles roles;       ///< of the nodes
    int contributing_ranks = 1; ///< ranks of all contributors
    bool even = true;           ///< all nodes have the same number of ranks
    std::uint64_t digest = 0;   ///< of all of the above, compared between ranks at construction
    /// What an optimizer keeps on a rank that combines: state, weights before rounding, gradients of a step in two phases.
    std::size_t least_optimizer_bytes = 0, most_optimizer_bytes = 0;

    /// Upper bound on chunks in flight to one server rank, per peer.
    constexpr std::uint32_t window() const noexcept {
        std::size_t const chunks = tuning.chunk_bytes == 0 ? 0 : tuning.window_bytes / tuning.chunk_bytes;
        return static_cast<std::uint32_t>(chunks < 2 ? 2 : chunks);
    }
    /// Upper bound on one-hop chunks in flight to one peer.
    static constexpr std::uint32_t one_hop_window() noexcept { return 8; }
    /// Upper bound on one-hop chunks of one rank in flight: half a window.
    static constexpr std::uint32_t one_hop_stages() noexcept { return one_hop_window() / 2; }

    /// Upper bound on split buckets: a larger model gets larger parts. Over the network it keeps execution numbers
    /// within the 12 bits that a tag carries.
    constexpr std::size_t max_splits() const noexcept { return nodes > 1 ? 1 << 10 : 1 << 16; }

    /// Whether every node contributes and serves. If not, every bucket takes two hops.
    constexpr bool all_have_both_roles() const noexcept {
        if (roles.contributors.empty()) return true; // not assigned
        return roles.contributor_count() == nodes && roles.server_count() == nodes;
    }
    /// Whether each contributor serves too: there may be other servers beside them.
    constexpr bool contributors_serve() const noexcept {
        for (int const node : roles.contributors)
            if (roles.server(node).value < 0) return false;
        return true;
    }
    /// Buckets up to this many bytes go to one server as a whole, which costs a contributor one message in place of one for each
    /// server: where some nodes do not serve, or do not contribute, and where ranks share few cores.
    constexpr std::size_t whole_limit() const noexcept {
        if (all_have_both_roles())
            return shares_few_cores() ? std::min(tuning.whole_bytes, tuning.chunk_bytes) : 0;
        return std::min(tuning.one_hop_bytes, tuning.chunk_bytes);
    }
    /// Whether one server is faster than dissemination, for the ranks share so few cores: 2 · (nodes − 1) messages in all take
    /// less of these than nodes · ⌈log2 nodes⌉, and the server, which sends half of them on one core, is not what takes longest.
    constexpr bool shares_few_cores() const noexcept {
        auto const others = static_cast<std::uint64_t>(nodes - 1);
        return nodes > 2 && tuning.shared_cores > 0 &&
               others * std::max(tuning.shared_cores, 2u) < (others + 1) * dissemination_rounds();
    }
    /// Buckets up to this many bytes take one hop.
    constexpr std::size_t one_hop_limit() const noexcept {
        if (!all_have_both_roles()) return 0;
        return nodes == 2 && tuning.one_hop_bytes_two_nodes > tuning.one_hop_bytes
                   ? tuning.one_hop_bytes_two_nodes
                   : tuning.one_hop_bytes;
    }

    /// Upper bound on chunks of one rank in flight by dissemination: half its window.
    static constexpr std::uint32_t dissemination_stages() noexcept { return 2; }
    static constexpr std::uint32_t dissemination_window() noexcept { return 2 * dissemination_stages(); }
    /// Messages per chunk that a rank sends by dissemination: ⌈log2 nodes⌉.
    constexpr std::uint32_t dissemination_rounds() const noexcept {
        return static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(nodes - 1)));
    }
    /// Upper bound on the parts of nodes that one message carries by dissemination. Round r forwards
    /// min(2^r, nodes - 2^r) parts, most of them in the last round or in the round before. At least 3 nodes.
    constexpr std::size_t dissemination_message_parts() const noexcept {
        std::size_t const last = std::size_t{1} << (dissemination_rounds() - 1);
        return std::max(last / 2, static_cast<std::size_t>(nodes) - last);
    }
    /// Buckets up to this many bytes take the dissemination route; 0 if the messages it saves cost less than its
    /// additional rounds. A rank sends to the ranks with its own local number, so all nodes must have the same number
    /// of ranks. No message is larger than `max_message_bytes`.
    constexpr std::size_t dissemination_limit() const noexcept {
        if (nodes < 3 || !even || !all_have_both_roles()) return 0;
        auto const messages = static_cast<std::uint64_t>(nodes - 1),
                   rounds = std::uint64_t{dissemination_rounds()};
        bool const pays = (messages - rounds) * tuning.message_ns > (rounds - 1) * tuning.latency_ns;
        if (!pays) return 0;
        std::size_t const carried =
            tuning.max_message_bytes / (dissemination_message_parts() * part_element_bytes);
        return std::min(tuning.dissemination_bytes / element_bytes, carried) * element_bytes;
    }
    /// Upper bound on the bytes of one message of the dissemination route; 0 if no bucket takes it.
    constexpr std::size_t dissemination_message_bytes() const noexcept {
        std::size_t const limit = dissemination_limit();
        return limit > 0 ? limit / element_bytes * part_element_bytes * dissemination_message_parts() : 0;
    }
    /// Bytes of one buffer of the dissemination window: it holds the parts of all nodes.
    constexpr std::size_t dissemination_buffer_bytes() const noexcept {
        return static_cast<std::size_t>(nodes) * (dissemination_limit() / element_bytes) * part_element_bytes;
    }

    /// Bytes of one rank's tensor memory.
    constexpr std::size_t tensor_bytes() const noexcept { return elements * element_bytes; }

    /// Elements of the largest chunk that a slot must hold. No chunk is smaller than `line_elements`.
    constexpr std::size_t slot_elements() const noexcept {
        return std::max(tuning.chunk_bytes / element_bytes, line_elements);
    }
    /// Elements of the largest chunk by two hops that lies in no slot: of an all-gather, whose pushes are empty and whose results
    /// come to where they belong. As much is in flight as of an all-reduce, which has a window of pushes and one of results.
    constexpr std::size_t unslotted_elements() const noexcept {
        return std::max(2 * tuning.chunk_bytes / element_bytes, line_elements);
    }
    constexpr std::size_t hop_slot_elements() const noexcept {
        return std::min(one_hop_limit() / element_bytes, slot_elements());
    }

    /// Staging memory of one rank that exchanges with `peers` ranks of other nodes, in bytes:
    /// peers · (window · chunk + one-hop window · one-hop chunk); where ranks share a node, the node's sum adds
    /// peers · window · chunk + half a one-hop window · one-hop chunk. Dissemination adds window · nodes · its
    /// largest bucket.
    constexpr std::size_t staging_bytes(std::size_t peers) const noexcept {
        if (nodes < 2 || peers == 0) return 0;
        std::size_t const chunks = window() * slot_elements() * part_element_bytes;
        std::size_t const hop = hop_slot_elements() * part_element_bytes;
        std::size_t const held =
            peers * (chunks + one_hop_window() * hop) + dissemination_window() * dissemination_buffer_bytes();
        return largest_node > 1 ? held + peers * chunks + one_hop_stages() * hop : held;
    }
};

namespace detail {

constexpr std::size_t round_up(std::size_t value, std::size_t to) noexcept {
    return (value + to - 1) / to * to;
}
constexpr std::size_t divide_up(std::size_t value, std::size_t by) noexcept { return (value + by - 1) / by; }

/// Cuts one shard into chunks of at most `chunk_elements`, and enough of them that each of `local_ranks` ranks has
/// work if the size allows it.
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

/// Elements of each part of a split bucket; the last part may have fewer. Parts are even and have at most `most`
/// elements; 0: the bucket is one part.
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

/// What is divided into shards: its place in errors, and who contributes.
struct division {
    static constexpr std::size_t no_number = ~std::size_t{0};
    int rank = -1;                       ///< the rank that reports; -1: not known
    char const* operation = "make_plan"; ///< the call that divides
    std::size_t bucket = no_number;      ///< no_number: a piece of the call's buffer
    server_id whole{0}; ///< of dedicated servers: the one that takes the bucket if it is small
    std::size_t part_width =
        1;                ///< numbers that a node's part has of each element; a slot has room for its chunk's
    bool twofold = false; ///< two results for each element
};

/// The route of a bucket of `bytes` bytes. `undivided`: each rank gives all of it or nothing, and takes all of it or nothing. Of
/// one that is divided among owners dissemination is chosen by the size of their parts. `twofold`: with two results for each
/// element, which one server would return one by one.
constexpr route route_of(std::size_t bytes, plan const& of, bool undivided = false,
                         bool twofold = false) noexcept {
    if (of.nodes == 1)
        return bytes <= of.tuning.mailbox_bytes && of.largest_node > 2 ? route::mailbox : route::local;
    if (!of.all_have_both_roles()) return route::two_hop;
    if (undivided && bytes > 0) {
        if (!twofold && bytes <= of.whole_limit()) return route::two_hop;
        if (bytes <= of.dissemination_limit()) return route::dissemination;
    }
    return bytes <= of.one_hop_limit() ? route::one_hop : route::two_hop;
}

/// What each server has of the buckets so far: small ones go to whoever has least for its share, so in rotation if all are small.
class server_loads {
  public:
    constexpr explicit server_loads(roles const& of) : roles_(of) {
        for (std::size_t s = 0; s < of.servers.size(); ++s) elements_.push_back(0);
    }
    constexpr void add(plan const& of, bucket const& one) noexcept {
        if (one.path != route::two_hop) return; // no server has it
        for (std::uint32_t s = one.first_shard; s < one.first_shard + one.shards; ++s)
            elements_[of.shards[s].server.place()] += of.shards[s].elements;
    }
    constexpr server_id least() const noexcept {
        std::size_t best = 0;
        for (std::size_t s = 1; s < elements_.size(); ++s)
            if (for_share(s) < for_share(best)) best = s;
        return server_id::at(best);
    }
    constexpr std::size_t elements(server_id of) const noexcept { return elements_[of.place()]; }

  private:
    constexpr std::size_t for_share(std::size_t server) const noexcept {
        return elements_[server] / roles_.share(server_id::at(server));
    }

    roles const& roles_;
    std::vector<std::size_t> elements_;
};

/// Checks what a sharding policy assigns, range by range. It keeps the first defect and throws nothing: a policy's
/// function may be noexcept.
///
/// Cost: O(1) a range.
class shard_check {
  public:
    constexpr shard_check(bucket_view const& view, int servers) noexcept : view_(view), servers_(servers) {}

    /// Whether the range is sound: it begins where the previous range ended, and has a server.
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

    /// Whether all ranges were sound and cover every element.
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

[[noreturn]] HERRING_SEPARABLE void refuse_plan(std::initializer_list<text_part> what);

/// Fills in route, shards and chunks of one bucket; appends to `shards`. Throws `bad_argument` when the sharding policy
/// does not give every element one server.
template <class Sharding>
constexpr void divide(bucket& result, bucket_view const& view, plan const& facts, std::vector<shard>& shards,
                      division const& of) {
    bool const one_node = facts.nodes == 1;
    result.elements = view.elements;
    result.first_shard = static_cast<std::uint32_t>(shards.size());
    std::size_t const width = one_node ? 1 : of.part_width;
    result.path = route_of(view.elements * facts.element_bytes * width, facts, true, of.twofold);
    std::size_t const chunk =
        std::max((one_node ? facts.tuning.local_chunk_bytes : facts.tuning.chunk_bytes) /
                     (facts.element_bytes * width),
                 std::size_t{1}); // local chunks may be smaller than an element of 256 bytes
    std::size_t const line = width == 1 ? facts.line_elements : std::min(facts.line_elements, chunk);
    std::uint32_t chunks = 0;
    auto const add = [&](std::size_t offset, std::size_t elements, server_id server) {
        if (elements == 0) return;
        shard part = cut(offset, elements, server, chunk, line, facts.largest_node);
        part.first_chunk = chunks;
        chunks += part.chunks;
        shards.push_back(part);
    };
    bool const whole = view.elements * facts.element_bytes * width <= facts.whole_limit() &&
                       (!of.twofold || !facts.all_have_both_roles());
    if (whole && result.path == route::two_hop) {
        add(0, view.elements, of.whole);
    } else if (result.path == route::two_hop) {
        shard_check check(view, facts.roles.server_count());
        auto const assign = [&](std::size_t offset, std::size_t elements, server_id server) {
            if (check.takes(offset, elements, server)) add(offset, elements, server);
        };
        Sharding::shard(view, facts.roles, assign);
        if (!check.sound()) check.refuse(policy_name<Sharding>(), of);
    } else {
        add(0, view.elements, one_node ? server_id{0} : server_id{});
    }
    result.shards = static_cast<std::uint32_t>(shards.size()) - result.first_shard;
    result.chunks = chunks;
}

} // namespace detail

/// Computes the plan; `elements[i]` is the size of tensor i in layout order.
///
/// Cost:   O(tensors + shards); usable in a constant expression.
/// Errors: `bad_argument`, the same on every rank: a sharding policy that does not give every element of a bucket one
///         server; a fusion policy that is not deterministic; a placement policy that lists a node twice, a node that
///         does not exist, or no server; chunks below a cache line; sizes beyond 8 TiB. The text names the policy,
///         and the bucket and the range, or the node.
/// Source: Herring, SC'20 (balanced buckets); Parameter Hub, SoCC'18 (chunks owned end to end).
template <class Fusion, class Sharding, class Placement = placement::colocated>
HERRING_SETUP constexpr plan make_plan(std::span<std::size_t const> elements, topology const& map,
                                       std::size_t element_bytes, std::size_t accumulator_bytes,
                                       exchange_tuning const& tuning) {
    if (element_bytes == 0 || element_bytes > 256 || accumulator_bytes == 0)
        detail::refuse_plan({"elements of ", element_bytes, " bytes and accumulators of ", accumulator_bytes,
                             ": elements have 1 to 256 bytes, accumulators at least 1"});
    if (std::size_t const chunk = map.nodes() > 1 ? tuning.chunk_bytes : tuning.local_chunk_bytes; chunk < 64)
        detail::refuse_plan(
            {map.nodes() > 1 ? "chunk_bytes" : "local_chunk_bytes", " of the tuning is ", chunk,
             ": a chunk has at least one cache line of 64 bytes; leave it out for the default"});
    std::size_t all = 0;
    for (std::size_t const one : elements) {
        if (one > (std::size_t{1} << 43) / element_bytes - all)
            detail::refuse_plan({"the tensors have more than 8 TiB; see where their sizes come from"});
        all += one;
    }
    plan result;
    result.element_bytes = element_bytes;
    result.nodes = map.nodes();
    result.largest_node = map.largest_node();
    result.even = map.largest_node() == map.smallest_node();
    result.roles = Placement::assign(map);
    if (detail::roles_defect const defect =
            detail::defect_of(result.roles, map, Placement::facts.dedicated_servers);
        defect.what != nullptr)
        detail::refuse_roles(policy_name<Placement>(), defect, map);
    result.contributing_ranks = result.roles.contributing_ranks(map);
    result.part_element_bytes = result.roles.largest_contributor(map) > 1 ? accumulator_bytes : element_bytes;
    result.line_elements =
        64 / std::gcd(std::size_t{64}, element_bytes); // also for sizes such as 24: 8 elements are 3 lines
    result.tuning = tuning;
    result.tensors.reserve(elements.size());

    std::size_t cut = 0;
    if (tuning.split_bytes > 0) {
        cut = std::max({tuning.split_bytes / element_bytes, all / result.max_splits(), result.line_elements});
        cut = cut / result.line_elements * result.line_elements;
    }
    std::vector<bucket_tensor> open, in_part;
    detail::server_loads loads(result.roles);
    std::size_t start = 0;
    std::size_t end = 0;
    auto const close = [&] {
        auto count = static_cast<std::uint32_t>(open.size());
        std::size_t const most = detail::split_elements(end - start, cut, result.line_elements);
        for (std::size_t at = start; at < end || count > 0; at += most) {
            std::size_t const size = std::min(most, end - at);
            detail::range_of(open, at - start, size, in_part);
            bucket part{.offset = at,
                        .first_tensor = static_cast<std::uint32_t>(in_part.front().index),
                        .tensors = count};
            detail::divide<Sharding>(part, {size, result.line_elements, in_part}, result, result.shards,
                                     {.bucket = result.buckets.size(), .whole = loads.least()});
            result.buckets.push_back(part);
            if (result.whole_limit() > 0) loads.add(result, part);
            count = 0;
        }
        open.clear();
        start = end;
    };
    for (std::size_t i = 0; i < elements.size(); ++i) {
        std::size_t const padded = detail::round_up(elements[i], result.line_elements);
        result.tensors.push_back({end, elements[i], static_cast<std::uint32_t>(result.buckets.size())});
        open.push_back({i, end - start, padded});
        end += padded;
        fusion_state const state{(end - start) * element_bytes, open.size(),
                                 i + 1 < elements.size() ? elements[i + 1] * element_bytes : 0,
                                 result.roles.server_count(), result.largest_node};
        bool const full = Fusion::closes(state);
        if (Fusion::closes(state) != full) // ranks must close the same buckets
            detail::refuse_plan({"fusion policy '", policy_name<Fusion>(), "', bucket ",
                                 result.buckets.size(),
                                 ": closes() answers yes and no to the same question, after tensor ", i,
                                 " of ", elements.size(), "; it must depend on its argument alone"});
        if (full) close();
    }
    if (!open.empty()) close();
    result.elements = end;
    detail::digest sum;
    sum.add(result.elements).add(element_bytes).add(result.part_element_bytes);
    for (int const node : result.roles.contributors) sum.add(node);
    for (std::size_t s = 0; s < result.roles.servers.size(); ++s)
        sum.add(result.roles.servers[s]).add(result.roles.share(server_id::at(s)));
    for (placed_tensor const& t : result.tensors) sum.add(t.offset).add(t.elements).add(t.bucket);
    for (bucket const& b : result.buckets) sum.add(b.offset).add(b.elements).add(b.chunks).add(b.path);
    for (shard const& s : result.shards)
        sum.add(s.offset).add(s.elements).add(s.chunk_elements).add(s.server.value);
    result.digest = sum.value();
    return result;
}

/// The plan as text: buckets, shards and chunks, the buckets of each route, what an optimizer keeps, and the staging memory.
HERRING_SEPARABLE std::string to_string(plan const& p);

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/impl/plan.hpp"
#endif

#endif // HERRING_PLAN_PLAN_HPP
