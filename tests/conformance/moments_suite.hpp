// herring: what all_moments has to do, between calls of the others, over every transport and intra-node reducer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_MOMENTS_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_MOMENTS_SUITE_HPP

#include "conformance/collectives_suite.hpp"

#include "herring/collectives/all_moments.hpp"
#include "herring/update/moments.hpp"

#include <cmath>
#include <limits>

namespace herring::conformance {

namespace detail {

/// One reducer's all_moments, beside what is due.
template <class Reducer> class moments_case {
    using T = typename Reducer::element_type;
    using number = accumulator<T>;

  public:
    moments_case(stage& on, Reducer& reduce) : on_(on), reduce_(reduce) {}

    void run(std::size_t n, int turn) {
        n_ = n;
        turn_ = turn;
        mine_ = filled(on_.rank());
        std::vector<T> mean(n, T(7)), deviation(n, T(7));
        auto const told =
            all_moments(reduce_, std::span<T const>(mine_), std::span(mean), std::span(deviation));
        expect_same(mine_, filled(on_.rank()), "the input");
        has_mean_of_all_reduce(mean);
        has_deviation(deviation);
        has_largest(told, deviation);
        is_the_same_everywhere(mean, "mean");
        is_the_same_everywhere(deviation, "deviation");
        in_place(mean, deviation);
        if (n > 0) with_nan(deviation);
        agreed();
    }

  private:
    std::vector<T> filled(int rank) const { return copy_of(elements_of<T>(rank, turn_, n_)); }
    void find(std::string const& what, std::size_t i) {
        on_.find("all_moments of " + std::to_string(n_) + ": " + what + ", element " + std::to_string(i));
    }
    void expect_same(std::span<T const> got, std::span<T const> due, std::string const& what) {
        if (same_bytes(got, due)) return;
        for (std::size_t i = 0; i < due.size(); ++i)
            if (!same_bits(got[i], due[i])) return find(what + " is not what is due", i);
    }

    void has_mean_of_all_reduce(std::vector<T> const& mean) {
        std::vector<T> out = mine_;
        reduce_.all_reduce(out);
        expect_same(mean, out, "the mean has not the bits of all_reduce: it");
    }
    void has_deviation(std::vector<T> const& deviation) {
        constexpr double relative = std::is_same_v<T, double> ? 1e-12 : sizeof(T) == 4 ? 1e-5 : 0.006;
        constexpr double absolute = std::is_same_v<T, double> ? 1e-10 : 1e-3;
        int const ranks = on_.size(), divisor = Reducer::pack::update::divisor_of_squares(ranks);
        for (std::size_t i = 0; i < n_; ++i) {
            long double sum = 0, squares = 0;
            for (int r = 0; r < ranks; ++r) sum += static_cast<number>(element_at<T>(r, i, turn_));
            for (int r = 0; r < ranks; ++r) {
                long double const off = static_cast<number>(element_at<T>(r, i, turn_)) - sum / ranks;
                squares += off * off;
            }
            auto const due = static_cast<double>(std::sqrt(squares / divisor));
            auto const got = static_cast<double>(static_cast<number>(deviation[i]));
            if (!(std::fabs(got - due) <= relative * due + absolute))
                return find("the deviation is " + std::to_string(got) + ", not " + std::to_string(due), i);
        }
    }
    void has_largest(moments_result<number> const& told, std::vector<T> const& deviation) {
        moments_result<number> due;
        for (std::size_t i = 0; i < n_; ++i)
            if (auto const one = static_cast<number>(deviation[i]); i == 0 || one > due.largest_deviation)
                due = {one, i};
        on_.expect(told == due,
                   "all_moments of " + std::to_string(n_) + ": another is the largest deviation");
    }
    void is_the_same_everywhere(std::vector<T> const& mine, char const* what) {
        std::vector<T> theirs = mine;
        broadcast(reduce_, theirs, turn_ % on_.size());
        expect_same(mine, theirs, std::string("the ") + what + " of another rank");
    }
    /// `in` may be either result.
    void in_place(std::vector<T> const& mean, std::vector<T> const& deviation) {
        for (bool const in_mean : {true, false}) {
            std::vector<T> both = mine_, other(n_);
            std::span<T> const first = in_mean ? both : other, second = in_mean ? other : both;
            (void)all_moments(reduce_, std::span<T const>(both), first, second);
            expect_same(first, mean, "the mean, in place,");
            expect_same(second, deviation, "the deviation, in place,");
        }
    }
    /// Ranks that have the same bits, of numbers whose last digits have squares that overflow.
    void agreed() {
        std::vector<T> in(n_), mean(n_), deviation(n_, T(7));
        double const most = std::numeric_limits<number>::max_exponent > 128 ? 1e300
                            : std::is_same_v<T, float16>                    ? 6e4
                                                                            : 1e35;
        for (std::size_t i = 0; i < n_; ++i)
            in[i] = static_cast<T>(static_cast<number>(most / (1 + 0.3 * static_cast<double>(i % 1000))));
        auto const told = all_moments(reduce_, std::span<T const>(in), std::span(mean), std::span(deviation));
        on_.expect(!told.exceeds(0) && told.index == 0,
                   "all_moments of " + std::to_string(n_) + ": ranks that agree are told to differ");
        expect_same(deviation, std::vector<T>(n_, T(0)), "the deviation of ranks that agree");
    }
    /// What one rank has is told on all, and is in no other element.
    void with_nan(std::vector<T> const& sound) {
        int const rank = turn_ % on_.size();
        std::size_t const at = n_ * 2 / 3;
        std::vector<T> in = mine_, mean(n_), deviation(n_);
        if (on_.rank() == rank) in[at] = static_cast<T>(std::numeric_limits<number>::quiet_NaN());
        auto const told = all_moments(reduce_, std::span<T const>(in), std::span(mean), std::span(deviation));
        on_.expect(told.exceeds(std::numeric_limits<number>::max()) && told.index == at,
                   "all_moments of " + std::to_string(n_) + ": a NaN of one rank is not told");
        on_.expect(std::isnan(static_cast<number>(deviation[at])),
                   "all_moments of " + std::to_string(n_) + ": the deviation of a NaN is a number");
        deviation[at] = sound[at];
        expect_same(deviation, sound, "the deviation beside a NaN");
    }

    stage& on_;
    Reducer& reduce_;
    std::size_t n_ = 0;
    int turn_ = 0;
    std::vector<T> mine_;
};

} // namespace detail

/// Every size, three times in changing order, with steps between.
template <class Reducer> void all_moments_of_all_sizes(stage& on) {
    Reducer reduce(on.ranks, layout::of(std::vector<std::size_t>{1000, 0, 3, 40'001, 17}));
    detail::moments_case<Reducer> each(on, reduce);
    std::vector<std::size_t> sizes = sizes_of_collectives;
    std::erase_if(sizes, [](std::size_t n) { return n > 140'000; });
    dice order(7); // the same on every rank
    for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t const n : sizes) each.run(n, turn + static_cast<int>(n % 5));
        detail::run_step(on, reduce, turn);
        order.shuffle(sizes);
    }
}

template <class Reducer>
findings moments_suite(settings const& how = {}, std::size_t shapes = shapes_of_collectives.size()) {
    findings found;
    for (auto const& nodes : std::span(shapes_of_collectives).first(shapes)) {
        if (Reducer::pack::update::divisor_of_squares(static_cast<int>(nodes.size())) == 0) continue;
        std::string name = "all_moments on ";
        for (std::string const& node : nodes) name += node;
        append(found,
               run_case(name, static_cast<int>(nodes.size()), nodes, how, all_moments_of_all_sizes<Reducer>));
    }
    return found;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_MOMENTS_SUITE_HPP
