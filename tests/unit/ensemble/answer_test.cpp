// herring: answers: empty, moved, released once, and folded where there is something to fold.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/answer.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace ensemble_answer_test {

namespace ensembles = herring::detail::ensembles;
using herring::member_set;
using herring::miss;
using herring::outcome;

struct format {
    static constexpr bool dense = true;
    struct results {
        std::span<float> values;
    };
    static inline bool any_weight = true;
    static results results_in(std::span<std::byte> memory, std::size_t n, std::size_t) noexcept {
        return {{reinterpret_cast<float*>(memory.data()), n}};
    }
    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const>, std::size_t,
                     results& into) noexcept {
        into.values[0] = static_cast<float>(rows.size());
        return any_weight;
    }
    // A row whose first byte is 1 is no good any more, and the result shows it.
    static ensembles::row_check check(std::span<std::byte const> row, std::size_t) noexcept {
        return row[0] == std::byte{1} ? ensembles::row_check::not_a_number : ensembles::row_check::good;
    }
    static inline bool sound = true;
    static bool is_sound(results const&) noexcept { return sound; }
    static void decode(std::span<std::byte const>, std::size_t n, std::span<float> out) noexcept {
        for (std::size_t i = 0; i < n; ++i) out[i] = 5;
    }
};
struct core {
    using format = ensemble_answer_test::format;
    struct record {
        outcome how = outcome::partial;
        std::uint64_t id = 7;
        member_set contributors{1, 3};
        bool shared = false;
    } of;
    member_set refused;
    alignas(64) std::byte memory[64] = {};
    std::span<std::byte const> two[2] = {};
    int released = 0;

    record const& request(ensembles::slot_index) const noexcept { return of; }
    std::span<std::byte> result(ensembles::slot_index) noexcept { return memory; }
    std::size_t elements() const noexcept { return 2; }
    std::size_t most_members() const noexcept { return 4; }
    std::span<std::span<std::byte const> const> rows(ensembles::slot_index) const noexcept { return two; }
    std::span<float const> row_weights(ensembles::slot_index) const noexcept { return {}; }
    outcome refuse(ensembles::slot_index, member_set const& whose) noexcept {
        refused = whose;
        of.contributors = of.contributors - whose;
        return of.how = of.contributors.empty() ? outcome::failed : outcome::partial;
    }
    bool release(ensembles::slot_index) noexcept {
        ++released;
        return false;
    }
    member_set late(ensembles::slot_index) const noexcept { return {0}; }
    miss why(ensembles::slot_index, std::size_t m) const noexcept { return m == 0 ? miss::late : miss::none; }
    std::int64_t latency_ns(ensembles::slot_index, std::size_t m) const noexcept { return std::int64_t(m); }
    std::int64_t decided_ns(ensembles::slot_index) const noexcept { return 99; }
    std::uint32_t replica(ensembles::slot_index, std::size_t) const noexcept { return 1; }
};
using answer = ensembles::basic_answer<float, core>;
static_assert(!std::is_copy_constructible_v<answer> && std::is_nothrow_move_constructible_v<answer>);

TEST_CASE("ensemble answer: one that is empty, and one that was refused") {
    answer const empty;
    CHECK(!empty);
    CHECK(empty.outcome() == outcome::closed);
    CHECK(empty.values().empty());
    CHECK(empty.contributors().empty());
    CHECK(empty.latency().count() == -1);
    answer const busy(outcome::busy);
    CHECK(busy.outcome() == outcome::busy);
    CHECK(!busy);
    busy.member_rows([](auto const&) { CHECK(false); });
}

TEST_CASE("ensemble answer: folds, tells who is in it, and gives its place back once") {
    core of;
    {
        answer a(of, 0);
        CHECK(a);
        CHECK(a.id() == 7);
        CHECK(a.values().size() == 2);
        CHECK(a.values()[0] == 2);
        CHECK(a.late() == member_set{0});
        CHECK(a.why(0) == miss::late);
        CHECK(a.latency(3).count() == 3);
        CHECK(a.latency().count() == 99);
        CHECK(a.replica(1) == 1);
        std::size_t sum = 0;
        a.member_rows([&](auto const& row) {
            float out[2] = {}, one[1] = {};
            CHECK(row.copy_to(out) == 2);
            CHECK(out[1] == 5);
            CHECK(row.copy_to(one) == 0);
            sum += row.member();
        });
        CHECK(sum == 4);
        answer b = std::move(a);
        CHECK(!a);                 // NOLINT(bugprone-use-after-move)
        CHECK(a.values().empty()); // NOLINT(bugprone-use-after-move)
        answer c;
        c = std::move(b);
        CHECK(c.values()[0] == 2);
        CHECK(of.released == 0);
    }
    CHECK(of.released == 1);
}

TEST_CASE("ensemble answer: no values where no weight is left, and rows all the same") {
    core of;
    format::any_weight = false;
    answer const a(of, 0);
    format::any_weight = true;
    CHECK(a.outcome() == outcome::failed);
    CHECK(a.values().empty());
    int rows = 0;
    a.member_rows([&](auto const&) { ++rows; });
    CHECK(rows == 2);
}

TEST_CASE("ensemble answer: rows of shared memory that have changed since they counted are taken out") {
    std::byte row[2][2] = {};
    core of;
    of.two[0] = row[0];
    of.two[1] = row[1];
    format::sound = false;
    {
        row[1][0] = std::byte{1};
        answer const alone(of, 0); // of private copies nothing changes
        CHECK(alone.values()[0] == 2);
        of.of.shared = true;
        answer const a(of, 0);
        CHECK(of.refused == member_set{3});
        CHECK(a.outcome() == outcome::partial);
        CHECK(a.contributors() == member_set{1});
        CHECK(a.values()[0] == 1); // folded again, of one row
    }
    {
        of.of = {.shared = true};
        row[1][0] = std::byte{0};
        answer const a(of, 0); // a sum of sound rows that is too large
        CHECK(of.refused.empty());
        CHECK(a.contributors() == member_set{1, 3});
        CHECK(a.values()[0] == 2);
    }
    row[0][0] = row[1][0] = std::byte{1};
    answer const none(of, 0);
    CHECK(none.outcome() == outcome::failed);
    CHECK(none.values().empty());
    CHECK(none.contributors().empty());
    format::sound = true;
}

} // namespace ensemble_answer_test
