// herring: what reduce_scatter, all_gather and broadcast have to do, between calls of the others, over every transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_COLLECTIVES_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_COLLECTIVES_SUITE_HPP

#include "conformance/small_chunks.hpp"
#include "conformance/suite.hpp"

#include "same_bytes.hpp"
#include "sanitizers.hpp"

#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/element.hpp"
#include "herring/layout.hpp"
#include "herring/reducer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace herring::conformance {

/// 24 bytes, which do not divide a cache line.
struct triple {
    double low, middle;
    std::int64_t count;
};
/// 256 bytes: few of them are a chunk.
struct block {
    float at[64];
};
/// A rule for both. Associative, and not commutative: it shows an order that is not that of the ranks.
struct spread_out {
    using axis = axes::update;
    static constexpr char const* name = "spread_out";
    static constexpr update_facts facts{};
    template <class T> static constexpr bool supports = std::is_same_v<T, triple> || std::is_same_v<T, block>;
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_same_v<Acc, triple>) {
            return {a.low < b.low ? a.low : b.low, b.middle, a.count + b.count};
        } else {
            for (std::size_t i = 0; i < 64; ++i) a.at[i] = i % 2 == 0 ? a.at[i] + b.at[i] : b.at[i];
            return a;
        }
    }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};

/// Three bytes, of which a cache line has no whole number; only moved.
struct three_bytes {
    std::byte at[3];
};

} // namespace herring::conformance

template <> inline constexpr bool herring::is_element<herring::conformance::triple> = true;
template <> inline constexpr bool herring::is_element<herring::conformance::block> = true;

namespace herring::conformance {

/// Sizes in elements: none, fewer than ranks, about the thresholds of `small_chunks` and of mailboxes, one piece, several
/// pieces whose last one is tiny (of 3 ranks on a node, and of any), and so many that slots are used again.
inline std::vector<std::size_t> const sizes_of_collectives{
    0, 1, 2, 3, 5, 17, 511, 512, 513, 1024, 1025, 2049, 5121, 65'523, 65'569, 8'191, 131'101, 300'007};

/// Ranks by their nodes; uneven ones, and such whose ranges alternate.
inline std::vector<std::vector<std::string>> const shapes_of_collectives{{"a", "a", "b"},
                                                                         {"a", "b", "a", "b"},
                                                                         {"a", "b", "b", "b"},
                                                                         {"a", "a", "a"},
                                                                         {"a", "a"},
                                                                         {"a"},
                                                                         {"a", "b"},
                                                                         {"a", "b", "c"},
                                                                         {"x/a", "y/b", "y/b", "x/c", "y/d"},
                                                                         {"x/a", "y/b", "x/c", "y/d"}};

namespace detail {

// Sums of which depend on their order, where the type rounds.
template <class T> T element(std::size_t i) {
    std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
    auto const f = static_cast<float>(x >> 40) / 65536.0f - 100.0f;
    if constexpr (std::is_same_v<T, triple>) {
        return {f, static_cast<double>(x >> 20), static_cast<std::int64_t>(x >> 8)};
    } else if constexpr (std::is_same_v<T, block>) {
        block made;
        for (std::size_t k = 0; k < 64; ++k) made.at[k] = f + static_cast<float>(k);
        return made;
    } else if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(x >> 40);
    } else {
        return static_cast<T>(f);
    }
}
/// What a rank contributes in a turn: one table, begun at another place by each. So it is copied, and computed once, which is
/// most of a test's time where nothing is optimised.
template <class T> std::span<T const> elements_of(int rank, int turn, std::size_t n) {
    static std::vector<T> const table = [] {
        std::vector<T> made((sizeof(T) > 64 ? 40'001u : 300'007u) + 6000);
        T* to = made.data();
        for (std::size_t i = 0; i < made.size(); ++i) *to++ = element<T>(i);
        return made;
    }();
    std::size_t const from = static_cast<std::size_t>(rank) * 97 + static_cast<std::size_t>(turn) * 7;
    if (from + n > table.size()) throw std::runtime_error("the suite's table is too short");
    return std::span(table).subspan(from, n);
}
template <class T> T element_at(int rank, std::size_t i, int turn) {
    return elements_of<T>(rank, turn, i + 1)[i];
}
template <class T> bool same_bits(T const& a, T const& b) { return std::memcmp(&a, &b, sizeof a) == 0; }
template <class T> std::vector<T> copy_of(std::span<T const> from) { return {from.begin(), from.end()}; }

/// What the collectives of one reducer do, each beside what is due.
template <class Reducer> class collectives_case {
    using T = typename Reducer::element_type;

  public:
    collectives_case(stage& on, Reducer& reduce) : on_(on), reduce_(reduce) {}

    void run(std::size_t n, int turn) {
        n_ = n;
        turn_ = turn;
        mine_ = copy_of(of_rank(on_.rank()));
        own_ = reduce_.owned(n, on_.rank());
        std::vector<T> const sums = all_reduced();
        reduce_scatter_has(sums);
        gathers();
        std::vector<T> out = copy_of(of_rank(40));
        reduce_.all_reduce(std::span<T const>(mine_), std::span<T>(out));
        expect_same(out, sums, "all_reduce into another buffer, after all_gather");
        expect_same(mine_, of_rank(on_.rank()), "the input of all_reduce");
        int const root = turn % on_.size();
        std::vector<T> inout = mine_;
        broadcast(reduce_, inout, root);
        expect_same(inout, of_rank(root), "broadcast");
        switch ((n + static_cast<std::size_t>(turn)) % 4) {
        case 0:
            return moves<std::byte>(root);
        case 1:
            return moves<three_bytes>(root);
        case 2:
            return moves<std::uint16_t>(root);
        default:
            return moves<triple>(root);
        }
    }

  private:
    std::span<T const> of_rank(int rank) const { return elements_of<T>(rank, turn_, n_); }
    std::span<T> place_in(std::vector<T>& of) const {
        return std::span(of).subspan(own_.offset, own_.elements);
    }
    std::vector<T> all_reduced() {
        std::vector<T> out = mine_;
        reduce_.all_reduce(out);
        return out;
    }
    void expect_same(std::span<T const> got, std::span<T const> due, std::string const& call) {
        if (same_bytes(got, due)) return;
        for (std::size_t i = 0; i < due.size(); ++i)
            if (!same_bits(got[i], due[i]))
                return on_.find(call + " of " + std::to_string(n_) + ": element " + std::to_string(i) +
                                " of " + std::to_string(due.size()) + " is not what is due");
    }

    void reduce_scatter_has(std::vector<T> const& sums) {
        std::span<T const> const due = std::span(sums).subspan(own_.offset, own_.elements);
        std::vector<T> in = mine_, part = copy_of(of_rank(41).first(own_.elements));
        reduce_scatter(reduce_, in, part);
        expect_same(part, due, "reduce_scatter");
        expect_same(in, mine_, "the input of reduce_scatter");
        reduce_scatter(reduce_, in, place_in(in));
        expect_same(place_in(in), due, "reduce_scatter in place");
        std::copy(mine_.begin() + static_cast<std::ptrdiff_t>(own_.offset),
                  mine_.begin() + static_cast<std::ptrdiff_t>(own_.end()),
                  in.begin() + static_cast<std::ptrdiff_t>(own_.offset));
        expect_same(in, mine_, "what others own of the input, in place");
    }
    void gathers() {
        std::vector<T> due = mine_;
        for (int r = 0; r < on_.size(); ++r) {
            range const theirs = reduce_.owned(n_, r);
            auto const from = of_rank(r).subspan(theirs.offset, theirs.elements);
            std::copy(from.begin(), from.end(), due.begin() + static_cast<std::ptrdiff_t>(theirs.offset));
        }
        std::vector<T> part = copy_of<T>(place_in(mine_)), out = copy_of(of_rank(42));
        all_gather(reduce_, part, out);
        expect_same(out, due, "all_gather");
        std::vector<T> in_place = copy_of(of_rank(43));
        std::copy(part.begin(), part.end(), place_in(in_place).begin());
        all_gather(reduce_, place_in(in_place), in_place);
        expect_same(in_place, due, "all_gather in place");
    }

    // Elements of a type that is not the reducer's: as many as fit the bytes of its own.
    template <class U> void moves(int root) {
        std::size_t const n = n_ * sizeof(T) / sizeof(U) + (n_ > 0);
        auto const made = [&](int rank) {
            std::vector<U> all(n);
            std::uint64_t bits = 0x9e37'79b9'7f4a'7c15u * static_cast<std::uint64_t>(rank + 64 * turn_ + 1);
            for (auto bytes = std::as_writable_bytes(std::span(all)); !bytes.empty();) {
                bits = bits * 6364136223846793005u + 1442695040888963407u;
                std::uint64_t const mixed = bits ^ bits >> 29;
                std::size_t const some = std::min(bytes.size(), sizeof mixed);
                std::memcpy(bytes.data(), &mixed, some);
                bytes = bytes.subspan(some);
            }
            return all;
        };
        auto const has = [&](std::vector<U> const& got, std::vector<U> const& due, char const* call) {
            on_.expect(n == 0 || std::memcmp(got.data(), due.data(), n * sizeof(U)) == 0,
                       std::string(call) + " of " + std::to_string(n) + " elements of " +
                           std::to_string(sizeof(U)) + " bytes");
        };
        std::vector<U> const mine = made(on_.rank());
        std::vector<U> got = mine;
        broadcast(reduce_, got, root);
        has(got, made(root), "broadcast");
        std::vector<U> due(n), in_place = made(50);
        got = made(51);
        for (int r = 0; r < on_.size(); ++r) {
            range const own = reduce_.owned(n, r);
            auto const theirs = made(r);
            std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(own.offset), own.elements,
                        due.begin() + static_cast<std::ptrdiff_t>(own.offset));
        }
        range const own = reduce_.owned(n, on_.rank());
        all_gather(reduce_, std::span(mine).subspan(own.offset, own.elements), got);
        has(got, due, "all_gather");
        std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(own.offset), own.elements,
                    in_place.begin() + static_cast<std::ptrdiff_t>(own.offset));
        all_gather(reduce_, std::span(in_place).subspan(own.offset, own.elements), in_place,
                   std::chrono::seconds(20))
            .value();
        has(in_place, due, "all_gather in place");
    }

    stage& on_;
    Reducer& reduce_;
    std::size_t n_ = 0;
    int turn_ = 0;
    range own_;
    std::vector<T> mine_;
};

/// A step with tensors of the caller's, whose bounce slots change places on a node of two.
template <class Reducer> void run_step(stage& on, Reducer& reduce, int turn) {
    using T = typename Reducer::element_type;
    std::vector<std::vector<T>> lent(reduce.plan().tensors.size());
    for (std::size_t i = 0; i < lent.size(); ++i) {
        bool const own = (i + static_cast<std::size_t>(turn)) % 2 == 0;
        lent[i].resize(own ? 0 : reduce.plan().tensors[i].elements);
        std::span<T> const at = own ? reduce.tensor(i) : std::span<T>(lent[i]);
        auto const from = elements_of<T>(on.rank(), turn, at.size());
        std::copy(from.begin(), from.end(), at.begin());
        own ? reduce.ready(i) : reduce.ready(i, at);
    }
    reduce.wait();
    for (std::size_t i = 0; i < lent.size(); ++i) {
        std::vector<T> due = copy_of(elements_of<T>(on.rank(), turn, reduce.plan().tensors[i].elements));
        reduce.all_reduce(due);
        std::span<T const> const got =
            lent[i].empty() ? std::span<T const>(reduce.tensor(i)) : std::span<T const>(lent[i]);
        if (!same_bytes(got, due)) return on.find("a step between collectives: tensor " + std::to_string(i));
    }
}

} // namespace detail

/// Every size, three times in changing order, with steps between: reduce_scatter has the bits of all_reduce, in place too,
/// and reads its input only; all_gather and broadcast move every bit.
template <class Reducer> void all_collectives(stage& on) {
    Reducer reduce(on.ranks, layout::of(std::vector<std::size_t>{1000, 0, 3, 40'001, 17}));
    detail::collectives_case<Reducer> each(on, reduce);
    std::vector<std::size_t> sizes = sizes_of_collectives;
    // Under a sanitizer the largest one, whose routes and numbers of chunks others have too, is left out.
    std::size_t const most = HERRING_TEST_SLOW ? 600'000 : 1'250'000;
    std::erase_if(sizes, [&](std::size_t n) { return n * sizeof(typename Reducer::element_type) > most; });
    dice order(7); // the same on every rank
    for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t const n : sizes) each.run(n, turn + static_cast<int>(n % 5));
        detail::run_step(on, reduce, turn);
        order.shuffle(sizes);
    }
}

/// Two reducers of one world, each used by a thread of its own, or both by one thread in turn.
template <class Reducer> void two_at_once(stage& on) {
    Reducer first(on.ranks), second(on.ranks);
    detail::collectives_case<Reducer> one(on, first), other(on, second);
    for (std::size_t const n : {513u, 5121u}) {
        one.run(n, 1);
        other.run(n, 2);
    }
    std::thread beside([&] {
        for (int turn = 0; turn < 3; ++turn)
            for (std::size_t const n : {7u, 1025u, 65'523u}) one.run(n, turn);
    });
    for (int turn = 0; turn < 3; ++turn)
        for (std::size_t const n : {131'101u, 3u, 2049u}) other.run(n, turn);
    beside.join();
}

template <class Reducer>
findings collectives_suite(settings const& how = {}, std::size_t shapes = shapes_of_collectives.size()) {
    findings found;
    for (auto const& nodes : std::span(shapes_of_collectives).first(shapes)) {
        std::string name = "collectives on ";
        for (std::string const& node : nodes) name += node;
        append(found, run_case(name, static_cast<int>(nodes.size()), nodes, how, all_collectives<Reducer>));
    }
    return found;
}

// ---- calls that differ ----------------------------------------------------------------------------------------------

/// What a rank calls; the ranks of a case differ in one of these.
struct collective_call {
    enum class kind { all_reduce, reduce_scatter, all_gather, broadcast } what = kind::all_reduce;
    std::size_t elements = 0;
    int root = 0;
};

template <class Reducer> status make_call(Reducer& reduce, int rank, collective_call const& call) {
    using T = typename Reducer::element_type;
    std::vector<T> all(call.elements), part(reduce.owned(call.elements, rank).elements);
    std::chrono::seconds const limit(20);
    switch (call.what) {
    case collective_call::kind::all_reduce:
        return reduce.all_reduce(all, limit);
    case collective_call::kind::reduce_scatter:
        return reduce_scatter(reduce, all, part, limit);
    case collective_call::kind::all_gather:
        return all_gather(reduce, part, all, limit);
    case collective_call::kind::broadcast:
        return broadcast(reduce, all, call.root, limit);
    }
    return {};
}

/// The last rank makes another call than the others: each of them gets `mismatch`, which names a rank. `every`: of so many
/// cases one is run, where worlds take long to begin.
template <class Reducer>
findings calls_that_differ(std::vector<std::string> const& nodes, settings const& how = {},
                           std::size_t every = 1) {
    using kind = collective_call::kind;
    std::vector<std::pair<collective_call, collective_call>> pairs;
    for (std::size_t const n : {10u, 5000u, 100'000u}) {
        kind const all[] = {kind::all_reduce, kind::reduce_scatter, kind::all_gather, kind::broadcast};
        for (kind const most : all)
            for (kind const one : all)
                if (most != one) pairs.push_back({{most, n, 0}, {one, n, 0}});
        for (kind const each : {kind::reduce_scatter, kind::all_gather, kind::broadcast})
            for (std::size_t const other : {n + 1, std::size_t{7}, std::size_t{130'000}})
                pairs.push_back({{each, n, 0}, {each, other, 0}});
        pairs.push_back({{kind::broadcast, n, 0}, {kind::broadcast, n, static_cast<int>(nodes.size()) - 1}});
    }
    findings found;
    for (std::size_t i = 0; i < pairs.size(); i += every) {
        collective_call const& most = pairs[i].first;
        collective_call const& one = pairs[i].second;
        std::string const name = "call " + std::to_string(static_cast<int>(most.what)) + " of " +
                                 std::to_string(most.elements) + " against " +
                                 std::to_string(static_cast<int>(one.what)) + " of " +
                                 std::to_string(one.elements) + " from " + std::to_string(one.root);
        append(found, run_case(name, static_cast<int>(nodes.size()), nodes, how, [&](stage& on) {
                   Reducer reduce(on.ranks);
                   status const ended = make_call(reduce, on.rank(), on.rank() + 1 == on.size() ? one : most);
                   failure const why = ended.why();
                   on.expect(why.what == errc::mismatch, "it is no mismatch: " + why.message());
                   on.expect(why.peer >= 0 && why.peer < on.size(), "no rank is named: " + why.message());
               }));
    }
    return found;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_COLLECTIVES_SUITE_HPP
