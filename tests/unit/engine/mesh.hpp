// herring: engines of many ranks in one thread, over a network that delivers in any order, late, and not now.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_ENGINE_MESH_HPP
#define HERRING_TESTS_UNIT_ENGINE_MESH_HPP

#include "herring/engine/driver.hpp"
#include "herring/engine/engine.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/operations/reduce_scatter.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/launch.hpp"
#include "herring/placement/placement.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/trace/trace.hpp"
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"
#include "same_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mesh {

using herring::completion;
using herring::errc;
using herring::peer_id;

/// Keeps messages until it feels like delivering them. A send's memory is read at delivery, not before.
class network {
  public:
    network(int ranks, std::uint32_t seed)
        : random_(seed), done_(static_cast<std::size_t>(ranks)), sends_out_(done_.size() * done_.size()),
          receives_out_(sends_out_) {}

    /// From here on, so many of 100 posts hear «not now».
    void be_difficult(int refusals_in_100) { refusals_ = refusals_in_100; }

    bool send(int from, int to, std::uint64_t tag, std::span<std::byte const> bytes, std::uint64_t token) {
        if (refuses() || lost_.count(to) != 0) return false;
        if (find_receive(from, to, matched(tag)) == receives_.size()) ++early_;
        largest_ = std::max(largest_, bytes.size());
        sends_.push_back({from, to, tag, bytes, token});
        count(sends_out_, from, to, 1);
        return true;
    }
    bool expect(int at, int from, std::uint64_t tag, std::span<std::byte> into, std::uint64_t token) {
        if (refuses()) return false;
        receives_.push_back({at, from, matched(tag), into, token});
        count(receives_out_, at, from, 1);
        return true;
    }
    /// `on_completion(completion, rank of the peer)`: the network knows ranks, not ids. `only`: −1, or the one rank whose
    /// messages are reported.
    template <class OnCompletion> std::size_t poll(int rank, OnCompletion&& on_completion, int only = -1) {
        deliver();
        auto& queue = done_[static_cast<std::size_t>(rank)];
        std::shuffle(queue.begin(), queue.end(), random_);
        auto const wanted = std::partition(queue.begin(), queue.end(), [&](report const& r) {
            return only < 0 || r.peer == only || r.what.what != completion::received;
        });
        auto const found = static_cast<std::size_t>(wanted - queue.begin());
        std::size_t const now = found == 0 ? 0 : pick(found + 1);
        std::vector<report> const told(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(now));
        queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(now));
        for (report const& r : told) {
            if (r.what.what == completion::sent) count(sends_out_, rank, r.peer, -1);
            on_completion(r.what, r.peer);
        }
        return now;
    }
    /// Nothing more comes from or goes to this rank; everyone is told.
    void lose(int rank) {
        lost_.insert({rank, true});
        std::erase_if(sends_, [&](message const& m) { return m.from == rank || m.to == rank; });
        for (std::size_t r = 0; r < done_.size(); ++r)
            if (static_cast<int>(r) != rank)
                done_[r].push_back({{.what = completion::lost, .why = errc::peer_lost}, rank});
    }

    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }

    int early() const { return early_; }                 ///< sends whose receive was not posted yet
    int most_sends() const { return most_sends_; }       ///< to one peer, posted and not reported as done
    int most_receives() const { return most_receives_; } ///< from one peer, posted and without their message
    std::size_t largest() const { return largest_; }     ///< message that was sent, in bytes
    bool quiet() const {
        return sends_.empty() &&
               std::all_of(done_.begin(), done_.end(), [](auto const& q) { return q.empty(); });
    }

  private:
    struct report {
        completion what;
        int peer; // rank
    };
    struct message {
        int from, to;
        std::uint64_t tag;
        std::span<std::byte const> bytes;
        std::uint64_t token;
    };
    struct receive {
        int at, from;
        std::uint64_t tag;
        std::span<std::byte> into;
        std::uint64_t token;
    };

    static std::uint64_t matched(std::uint64_t tag) { return tag & ~herring::carried_bits; }
    bool refuses() { return refusals_ > 0 && pick(100) < static_cast<std::size_t>(refusals_); }

    // By hand: it is looked for in every turn, and an algorithm's calls are most of a test where nothing is optimised.
    std::size_t find_receive(int from, int to, std::uint64_t tag) const {
        receive const* const all = receives_.data();
        std::size_t const size = receives_.size();
        std::size_t i = 0;
        while (i < size && !(all[i].tag == tag && all[i].at == to && all[i].from == from)) ++i;
        return i;
    }
    void count(std::vector<int>& of, int a, int b, int change) {
        int const now = of[static_cast<std::size_t>(a) * done_.size() + static_cast<std::size_t>(b)] +=
            change;
        int& most = &of == &sends_out_ ? most_sends_ : most_receives_;
        most = std::max(most, now);
    }

    void deliver() {
        std::size_t const wanted = pick(4);
        for (std::size_t n = 0; n < wanted && !sends_.empty(); ++n) {
            std::size_t const which = pick(sends_.size());
            message const m = sends_[which];
            std::size_t const to = find_receive(m.from, m.to, matched(m.tag));
            if (to == receives_.size()) continue;
            sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(which));
            receive const r = receives_[to];
            receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(to));
            count(receives_out_, m.to, m.from, -1);
            if (m.bytes.size() > r.into.size()) REQUIRE(m.bytes.size() <= r.into.size());
            if (!m.bytes.empty()) std::memcpy(r.into.data(), m.bytes.data(), m.bytes.size());
            done_[static_cast<std::size_t>(m.to)].push_back(
                {{r.token, m.bytes.size(), {}, completion::received, errc::ok, m.tag}, m.from});
            done_[static_cast<std::size_t>(m.from)].push_back(
                {{m.token, m.bytes.size(), {}, completion::sent, errc::ok, m.tag}, m.to});
        }
    }

    std::mt19937 random_;
    int refusals_ = 0;
    std::vector<message> sends_;
    std::vector<receive> receives_;
    std::vector<std::vector<report>> done_;
    std::map<int, bool> lost_;
    std::vector<int> sends_out_, receives_out_; // by pairs of ranks
    int early_ = 0, most_sends_ = 0, most_receives_ = 0;
    std::size_t largest_ = 0;
};

/// One rank's end of it.
class endpoint {
  public:
    static constexpr herring::transport_facts facts{};
    /// `peers`: ranks, ascending; filled in before the first post.
    endpoint(network& net, int rank, std::vector<int> const& peers) : net_(net), rank_(rank), peers_(peers) {}
    bool post_send(peer_id peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return net_.send(rank_, peers_.at(peer.place()), tag, from, token);
    }
    bool post_receive(peer_id peer, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        return net_.expect(rank_, peers_.at(peer.place()), tag, into, token);
    }
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        return look(on_completion, -1);
    }
    template <class OnCompletion> std::size_t poll_from(peer_id peer, OnCompletion&& on_completion) noexcept {
        return look(on_completion, peers_.at(peer.place()));
    }
    void wait(herring::time_point) noexcept {}
    void wake() noexcept {}
    char const* describe(peer_id) const noexcept { return "the mesh lost it"; }

    std::vector<int> looked_at; ///< by the last polls, of this many at most: the one rank, or −1
    static constexpr std::size_t looks_kept = 64;

  private:
    template <class OnCompletion> std::size_t look(OnCompletion&& on_completion, int only) {
        if (looked_at.size() == looks_kept) looked_at.clear();
        looked_at.push_back(only);
        std::size_t count = 0;
        auto const report = [&](completion done, int rank) {
            auto const at = std::find(peers_.begin(), peers_.end(), rank);
            if (at == peers_.end()) return; // a rank that this one exchanges nothing with was lost
            done.peer = peer_id::at(static_cast<std::size_t>(at - peers_.begin()));
            on_completion(done);
            ++count;
        };
        net_.poll(rank_, report, only);
        return count;
    }

    network& net_;
    int rank_;
    std::vector<int> const& peers_;
};

/// The memories and flags of one node.
struct node_state {
    node_state(int ranks, std::size_t bytes)
        : regions(static_cast<std::size_t>(ranks), std::vector<std::byte>(bytes)),
          arrived(static_cast<std::size_t>(ranks), 0), finished(static_cast<std::size_t>(ranks), 0) {}
    std::vector<std::vector<std::byte>>
        regions; // apart, so that a sanitizer sees who writes past the end of one
    std::vector<std::uint64_t> arrived, finished;
};

class local_end {
  public:
    static constexpr herring::intra_node_facts facts{};

    local_end(node_state& node, int local) : node_(node), local_(static_cast<std::size_t>(local)) {}
    std::byte* memory() noexcept { return node_.regions[local_].data(); }
    std::byte* peer(int local, std::byte* own) noexcept {
        return node_.regions[static_cast<std::size_t>(local)].data() + (own - memory());
    }
    void arrive(std::uint64_t execution) noexcept {
        CHECK(execution == node_.arrived[local_]);
        node_.arrived[local_] = execution + 1;
    }
    int first_not_arrived(std::uint64_t execution) noexcept {
        return first([&](std::size_t l) { return node_.arrived[l] <= execution; });
    }
    void finish(std::uint64_t execution, bool) noexcept {
        CHECK(execution == node_.finished[local_]);
        node_.finished[local_] = execution + 1;
    }
    int first_not_finished(std::uint64_t execution) noexcept {
        return first([&](std::size_t l) { return l != local_ && node_.finished[l] <= execution; });
    }
    bool has_left(int) noexcept { return false; }
    std::uint32_t listen() noexcept { return 0; }
    void sleep(std::uint32_t, herring::time_point) noexcept {}
    void wake() noexcept {}

  private:
    template <class Predicate> int first(Predicate&& holds) const {
        for (std::size_t l = 0; l < node_.regions.size(); ++l)
            if (holds(l)) return static_cast<int>(l);
        return -1;
    }
    node_state& node_;
    std::size_t local_;
};

inline herring::exchange_tuning small_tuning() {
    return {.chunk_bytes = 256,
            .window_bytes = 768,
            .one_hop_bytes = 192,
            .one_hop_bytes_two_nodes = 0,
            .local_chunk_bytes = 128,
            .mailbox_bytes = 128};
}

/// A world of engines, and a run of it.
template <class T, class Update = herring::update::sum, class Placement = herring::placement::colocated,
          class... More>
class world_of {
  public:
    using engine =
        herring::engine<endpoint, local_end, herring::trace::off, herring::operations::reduce<T, Update>,
                        herring::operations::reduce_scatter<T, Update>, herring::operations::all_gather,
                        herring::operations::broadcast, More...>;
    static constexpr std::size_t outstanding = 7; // executions that a rank has at once, at most

    /// `nodes[n]` ranks on node n, which is in rack `racks[n]`; tensors of these many elements, each a bucket.
    world_of(std::vector<int> const& nodes, std::vector<std::size_t> const& tensors,
             herring::exchange_tuning const& tuning, std::uint32_t seed, int refusals_in_100,
             std::vector<int> const& racks = {})
        : net(total(nodes), seed), worlds(make_worlds(nodes, racks)), map(worlds[0].topology()),
          made(herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced, Placement>(
              tensors, map, sizeof(T), sizeof(herring::accumulator<T>), tuning)) {
        std::size_t const tensor_bytes = made.tensor_bytes();
        std::size_t const local = engine::local_bytes(outstanding, tuning.mailbox_bytes);
        for (int n = 0; n < map.nodes(); ++n)
            states.push_back(std::make_unique<node_state>(map.local_size(n), tensor_bytes + local));
        for (int r = 0; r < map.size(); ++r) {
            auto one = std::make_unique<rank>(net, *states[static_cast<std::size_t>(map.node(r))], r,
                                              map.local_rank(r));
            for (int p = 0; p < map.size(); ++p)
                if (map.node(p) != map.node(r) &&
                    herring::chunk_stream::between(map.local_rank(r), map.local_size(map.node(r)),
                                                   map.local_rank(p), map.local_size(map.node(p)))
                        .any())
                    one->peers.push_back(p);
            one->staging.resize(made.staging_bytes(one->peers.size()));
            one->runs =
                std::make_unique<engine>(herring::detail::sink_of(worlds[static_cast<std::size_t>(r)]), r,
                                         map, made, one->transport, one->node, off, one->peers, outstanding,
                                         one->node.memory() + tensor_bytes, std::span(one->staging));
            one->busy.resize(made.buckets.size());
            ranks.push_back(std::move(one));
        }
        net.be_difficult(refusals_in_100);
        for (auto& one : ranks) one->runs->open(); // what is refused here is posted later
    }

    struct rank {
        rank(network& net, node_state& state, int r, int local)
            : number(r), transport(net, r, peers), node(state, local) {}
        int number;
        std::vector<int> peers;
        endpoint transport;
        local_end node;
        std::vector<std::byte> staging;
        std::unique_ptr<engine> runs;
        std::vector<bool> busy; // buckets
        std::uint64_t submitted = 0;
        std::uint64_t checked = 0;
    };

    std::span<T> memory(rank& r, std::size_t bucket) {
        herring::bucket const& b = made.buckets[bucket];
        return {reinterpret_cast<T*>(r.node.memory()) + b.offset, b.elements};
    }

    /// Submits bucket `which` as the rank's next execution; `elements` other than the bucket's is a user's slip.
    void submit(rank& r, std::size_t which) {
        herring::bucket const& b = made.buckets[which];
        r.runs->submit({.shards = made.shards.data() + b.first_shard,
                        .shard_count = b.shards,
                        .path = b.path,
                        .own = r.node.memory() + b.offset * sizeof(T),
                        .elements = b.elements,
                        .fingerprint = static_cast<std::uint32_t>(which),
                        .label = static_cast<std::uint32_t>(which)});
        r.busy[which] = true;
        ++r.submitted;
    }

    /// What rank r owns of a bucket.
    herring::range owned(std::size_t which, int r) const {
        return herring::owned_range(made.buckets[which].elements, r, map.size());
    }

    /// Submits bucket `which` as an operation of the engine's, by number, in place. With a root an all-gather is a
    /// gather; a broadcast of ranges is a scatter.
    template <class Operation>
    void submit_as(rank& r, std::size_t which, int root = -1, bool of_ranges = false) {
        constexpr std::uint8_t number = engine::template number_of<Operation>();
        herring::bucket b = made.buckets[which];
        bool const by_owner = number == 1 || (number == 2 && root < 0), gathers = number == 2;
        auto const& [ranges, shards] = owned_by_bucket(which, gathers);
        if (by_owner) b.path = herring::detail::route_of(b.elements, ranges, !gathers, made);
        r.runs->submit({.shards = by_owner ? shards.data() : made.shards.data() + b.first_shard,
                        .shard_count = by_owner ? static_cast<std::uint32_t>(shards.size()) : b.shards,
                        .path = b.path,
                        .operation = number,
                        .root = root,
                        .own = r.node.memory() + b.offset * sizeof(T),
                        .elements = b.elements,
                        .fingerprint = static_cast<std::uint32_t>(which * 64 + (number + of_ranges) * 8u) +
                                       static_cast<std::uint32_t>(root + 1),
                        .label = static_cast<std::uint32_t>(which),
                        .part = {.owned = number == 3 && !of_ranges ? nullptr : ranges.data()}});
        r.busy[which] = true;
        ++r.submitted;
    }

    /// Polls all ranks, in any order, until each has released what it submitted. False: it got stuck, or failed.
    bool settle() {
        for (std::size_t idle = 0; idle < 200'000;) {
            rank& r = *ranks[net.pick(ranks.size())];
            idle = r.runs->poll() > 0 ? 0 : idle + 1;
            if (failure const* const why = r.runs->failed(); why != nullptr) {
                MESSAGE(why->message());
                return false;
            }
            if (r.runs->released() == r.submitted &&
                std::all_of(ranks.begin(), ranks.end(),
                            [](auto const& one) { return one->runs->released() == one->submitted; }))
                return true;
        }
        return false;
    }

    /// Runs `sequence` (buckets, one after the other) on all ranks, each at a pace of its own. `value(rank, execution,
    /// i)` is what a rank contributes, `expected(execution, i)` what must come out. False: it got stuck.
    template <class Value, class Expected>
    bool run(std::vector<std::size_t> const& sequence, Value&& value, Expected&& expected) {
        std::uint64_t const before = ranks[0]->checked;
        std::uint64_t const end = before + sequence.size();
        std::size_t favourite = 0;
        std::size_t idle = 0;
        std::size_t left = ranks.size();                  // that have not checked all
        std::vector<std::vector<T>> due(sequence.size()); // of an execution, once a rank has asked for it
        while (left > 0) {
            // Now and then one rank gets most of the turns.
            if (net.pick(200) == 0) favourite = net.pick(ranks.size());
            rank& r = *ranks[net.pick(3) == 0 ? favourite : net.pick(ranks.size())];
            std::size_t progress = 0;
            if (r.submitted < end && r.submitted - r.checked < outstanding && net.pick(2) == 0) {
                std::size_t const which = sequence[static_cast<std::size_t>(r.submitted - before)];
                if (!r.busy[which]) {
                    auto const mine = memory(r, which);
                    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r.number, r.submitted, i);
                    submit(r, which);
                    ++progress;
                }
            }
            progress += r.runs->poll();
            if (failure const* const why = r.runs->failed(); why != nullptr) {
                MESSAGE(why->message());
                return false;
            }
            for (; r.checked < r.runs->released(); left -= ++r.checked == end) {
                std::size_t const which = sequence[static_cast<std::size_t>(r.checked - before)];
                auto const got = memory(r, which);
                std::vector<T>& all = due[static_cast<std::size_t>(r.checked - before)];
                for (std::size_t i = all.size(); i < got.size(); ++i) all.push_back(expected(r.checked, i));
                for (std::size_t i = 0; !same_bytes(got, all) && i < got.size(); ++i) {
                    if (std::memcmp(&got[i], &all[i], sizeof(T)) == 0) continue;
                    MESSAGE("execution " << r.checked << ", bucket " << which << " ("
                                         << to_string(made.buckets[which].path) << "), element " << i
                                         << ", rank " << r.number);
                    return false;
                }
                // From here on it is the caller's again: nobody may still read it.
                std::memset(static_cast<void*>(got.data()), 0x5a, got.size_bytes());
                r.busy[which] = false;
            }
            idle = progress > 0 ? 0 : idle + 1;
            if (idle > 200'000) {
                MESSAGE("stuck: rank 0 has released " << ranks[0]->checked << " of " << end);
                return false;
            }
        }
        return true;
    }

    using failure = herring::failure;
    network net;
    std::vector<herring::world> worlds;
    herring::topology const& map;
    herring::plan made;
    herring::trace::off off;
    std::vector<std::unique_ptr<node_state>> states;
    std::vector<std::unique_ptr<rank>> ranks;

  private:
    // Ranges and shards of a bucket that has owners, made once: executions point to them.
    std::pair<std::vector<herring::range>, std::vector<herring::shard>> const&
    owned_by_bucket(std::size_t which, bool gathers) {
        auto const [at, is_new] = owned_.try_emplace({which, gathers});
        if (is_new) {
            auto& [ranges, shards] = at->second;
            for (int r = 0; r < map.size(); ++r) ranges.push_back(owned(which, r));
            herring::bucket divided;
            herring::detail::divide_owned(divided, made.buckets[which].elements, ranges, !gathers, made, map,
                                          shards);
        }
        return at->second;
    }
    std::map<std::pair<std::size_t, bool>,
             std::pair<std::vector<herring::range>, std::vector<herring::shard>>>
        owned_;

    static int total(std::vector<int> const& nodes) {
        int sum = 0;
        for (int const n : nodes) sum += n;
        return sum;
    }
    // Ranks go round the nodes, so that rank order is not node order.
    static std::vector<herring::world> make_worlds(std::vector<int> nodes, std::vector<int> const& racks) {
        herring::launch_options options;
        int const ranks = total(nodes);
        for (std::size_t n = 0; static_cast<int>(options.nodes.size()) < ranks; n = (n + 1) % nodes.size())
            if (nodes[n]-- > 0) {
                options.nodes.push_back("node" + std::to_string(n));
                if (!racks.empty()) options.racks.push_back("rack" + std::to_string(racks[n]));
            }
        return herring::thread_worlds(ranks, options);
    }
};

/// Buckets in random order, with repetitions.
inline std::vector<std::size_t> sequence(network& net, std::size_t buckets, std::size_t length) {
    std::vector<std::size_t> made(length);
    for (auto& b : made) b = net.pick(buckets);
    return made;
}

} // namespace mesh

#endif // HERRING_TESTS_UNIT_ENGINE_MESH_HPP
