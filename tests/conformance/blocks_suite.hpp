// herring: what all_to_all, gather and scatter have to do, between other calls, over every transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_BLOCKS_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_BLOCKS_SUITE_HPP

#include "conformance/collectives_suite.hpp"

#include "herring/collectives/all_to_all.hpp"
#include "herring/collectives/gather.hpp"
#include "herring/collectives/scatter.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace herring::conformance {

namespace detail {

/// The calls of one reducer that move blocks, each beside what is due: every block's bytes follow from sender, receiver
/// and turn.
template <class Reducer> class blocks_case {
  public:
    blocks_case(stage& on, Reducer& reduce) : on_(on), reduce_(reduce) {}

    template <class U> void run(std::size_t n, int turn) {
        turn_ = turn;
        int const me = on_.rank(), ranks = on_.size();
        std::vector<U> in, due;
        for (int r = 0; r < ranks; ++r) {
            append_block(in, me, r, n);
            append_block(due, r, me, n);
        }
        std::vector<U> const before = in;
        std::vector<U> out(in.size());
        all_to_all(reduce_, in, out);
        expect_same<U>(out, due, "all_to_all");
        expect_same<U>(in, before, "the input of all_to_all");
        for (int const root : {turn % ranks, (turn + 1) % ranks}) {
            std::vector<U> all, mine, whole(me == root ? in.size() : 0), all_due;
            append_block(mine, me, root, n);
            for (int r = 0; r < ranks; ++r) append_block(all_due, r, root, n);
            gather(reduce_, mine, whole, root);
            if (me == root) expect_same<U>(whole, all_due, "gather");
            if (me == root) { // its block is where it belongs
                std::fill(whole.begin(), whole.end(), U{});
                std::copy(mine.begin(), mine.end(),
                          whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(root) * n));
            }
            std::span<U const> const own =
                me == root ? std::span<U const>(whole).subspan(static_cast<std::size_t>(root) * n, n) : mine;
            gather(reduce_, own, whole, root, std::chrono::seconds(20)).value();
            if (me == root) expect_same<U>(whole, all_due, "gather in place");
            std::vector<U> block(n), block_due;
            append_block(block_due, root, me, n);
            scatter(reduce_, me == root ? in : all, block, root);
            expect_same<U>(block, block_due, "scatter");
        }
        counted<U>(n);
    }

    /// Blocks of all sizes up to n, and none.
    template <class U> void counted(std::size_t n) {
        int const me = on_.rank(), ranks = on_.size();
        auto const count = [&](int from, int to) {
            auto const kind = static_cast<std::size_t>(from * 7 + to * 3 + turn_) % 5;
            return kind == 0 ? std::size_t{0} : kind == 1 ? n : (n * kind + static_cast<std::size_t>(to)) / 5;
        };
        std::vector<U> in, due;
        std::vector<std::size_t> sends, receives;
        for (int r = 0; r < ranks; ++r) {
            sends.push_back(count(me, r));
            receives.push_back(count(r, me));
            append_block(in, me, r, sends.back());
            append_block(due, r, me, receives.back());
        }
        std::vector<U> out(due.size());
        all_to_all(reduce_, in, sends, out, receives);
        expect_same<U>(out, due, "all_to_all of given sizes");
        int const root = turn_ % ranks;
        std::vector<U> mine, whole, got(count(root, me)), got_due;
        append_block(mine, me, root, count(me, root));
        append_block(got_due, root, me, got.size());
        for (int r = 0; me == root && r < ranks; ++r)
            append_block(whole, r, root, receives[static_cast<std::size_t>(r)]);
        std::vector<U> gathered(whole.size());
        gather(reduce_, mine, gathered, receives, root);
        expect_same<U>(gathered, whole, "gather of given sizes");
        scatter(reduce_, in, got, sends, root);
        expect_same<U>(got, got_due, "scatter of given sizes");
    }

  private:
    template <class U> void append_block(std::vector<U>& to, int from, int for_rank, std::size_t n) const {
        std::size_t const begin = to.size();
        to.resize(begin + n);
        std::uint64_t bits =
            static_cast<std::uint64_t>((turn_ * 64 + from) * 64 + for_rank + 1) * 0x9e37'79b9'7f4a'7c15u;
        for (std::byte& one : std::as_writable_bytes(std::span(to).subspan(begin))) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            one = static_cast<std::byte>(bits >> 56);
        }
    }
    template <class U>
    void expect_same(std::span<U const> got, std::span<U const> due, std::string const& call) {
        bool const same = got.size() == due.size() &&
                          (due.empty() || std::memcmp(got.data(), due.data(), due.size_bytes()) == 0);
        on_.expect(same, call + ": " + std::to_string(due.size()) + " elements of " +
                             std::to_string(sizeof(U)) + " bytes are not what is due");
    }

    stage& on_;
    Reducer& reduce_;
    int turn_ = 0;
};

} // namespace detail

/// Every size of blocks, in elements of four types, with all_reduce between.
template <class Reducer> void all_blocks(stage& on) {
    using T = typename Reducer::element_type;
    Reducer reduce(on.ranks);
    detail::blocks_case<Reducer> each(on, reduce);
    int turn = 0;
    for (std::size_t const n :
         {0u, 1u, 5u, 64u, 1000u, 1025u, 16'390u, HERRING_TEST_SLOW ? 40'000u : 130'001u}) {
        each.template run<std::byte>(n, turn++);
        each.template run<three_bytes>(n / 3 + 1, turn++);
        each.template run<T>(n / 4, turn++);
        each.template run<triple>(n / 16, turn++);
        std::vector<T> x(300, T{});
        reduce.all_reduce(x);
        on.expect(same_bytes(std::span<T const>(x), std::span<T const>(std::vector<T>(300, T{}))),
                  "all_reduce between blocks");
    }
    if (on.size() == 2) each.template run<std::byte>(600'001, turn); // slots are used again
}

template <class Reducer>
findings blocks_suite(settings const& how = {}, std::size_t shapes = shapes_of_collectives.size()) {
    findings found;
    for (auto const& nodes : std::span(shapes_of_collectives).first(shapes)) {
        std::string name = "blocks on ";
        for (std::string const& node : nodes) name += node;
        append(found, run_case(name, static_cast<int>(nodes.size()), nodes, how, all_blocks<Reducer>));
    }
    return found;
}

// ---- calls that differ ----------------------------------------------------------------------------------------------

/// What a rank calls; the ranks of a case differ in one of these.
struct block_call {
    enum class kind { all_reduce, all_to_all, gather, scatter, all_gather } what = kind::all_reduce;
    std::size_t elements = 0; ///< of a block
    int root = 0;
};

template <class Reducer> status make_call(Reducer& reduce, int ranks, int rank, block_call const& call) {
    using T = typename Reducer::element_type;
    std::vector<T> all(call.elements * static_cast<std::size_t>(ranks)), other(all.size()),
        block(call.elements);
    std::chrono::seconds const limit(20);
    switch (call.what) {
    case block_call::kind::all_reduce:
        return reduce.all_reduce(all, limit);
    case block_call::kind::all_to_all:
        return all_to_all(reduce, all, other, limit);
    case block_call::kind::gather:
        return gather(reduce, block, all, call.root, limit);
    case block_call::kind::scatter:
        return scatter(reduce, all, block, call.root, limit);
    case block_call::kind::all_gather:
        return all_gather(reduce, std::span(all).first(reduce.owned(all.size(), rank).elements), other,
                          limit);
    }
    return {};
}

/// The last rank makes another call than the others: each of them gets `mismatch`, which names a rank.
template <class Reducer>
findings blocks_that_differ(std::vector<std::string> const& nodes, settings const& how = {},
                            std::size_t every = 1) {
    using kind = block_call::kind;
    std::vector<std::pair<block_call, block_call>> pairs;
    for (std::size_t const n : {10u, 5000u, 40'000u}) {
        kind const all[] = {kind::all_reduce, kind::all_to_all, kind::gather, kind::scatter,
                            kind::all_gather};
        for (kind const most : all)
            for (kind const one : all)
                if (most != one) pairs.push_back({{most, n, 0}, {one, n, 0}});
        for (kind const each : {kind::all_to_all, kind::gather, kind::scatter})
            for (std::size_t const other : {n + 1, std::size_t{0}, std::size_t{60'000}})
                pairs.push_back({{each, n, 0}, {each, other, 0}});
        for (kind const each : {kind::gather, kind::scatter})
            pairs.push_back({{each, n, 0}, {each, n, static_cast<int>(nodes.size()) - 1}});
    }
    findings found;
    for (std::size_t i = 0; i < pairs.size(); i += every) {
        block_call const& most = pairs[i].first;
        block_call const& one = pairs[i].second;
        std::string const name = "call " + std::to_string(static_cast<int>(most.what)) + " of " +
                                 std::to_string(most.elements) + " against " +
                                 std::to_string(static_cast<int>(one.what)) + " of " +
                                 std::to_string(one.elements) + " at " + std::to_string(one.root);
        append(found, run_case(name, static_cast<int>(nodes.size()), nodes, how, [&](stage& on) {
                   Reducer reduce(on.ranks);
                   status const ended =
                       make_call(reduce, on.size(), on.rank(), on.rank() + 1 == on.size() ? one : most);
                   failure const why = ended.why();
                   on.expect(why.what == errc::mismatch, "it is no mismatch: " + why.message());
                   on.expect(why.peer >= 0 && why.peer < on.size(), "no rank is named: " + why.message());
               }));
    }
    return found;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_BLOCKS_SUITE_HPP
