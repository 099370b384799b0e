// herring: what a sync policy must do in a reducer: what is due, and only that, is the mean of all ranks' weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_SYNC_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_SYNC_SUITE_HPP

#include "conformance/suite.hpp"

#include "same_bytes.hpp"

#include "herring/collectives/all_gather.hpp"
#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace herring::conformance {

/// Ranks by their nodes: every route is taken by one of them.
inline std::vector<std::vector<std::string>> const shapes_of_syncs{
    {"a", "a", "a"}, {"a", "b", "b", "c"}, {"a", "a"}, {"a", "b", "c", "d"}, {"a", "b"}, {"a"}};
/// Sizes that share lines, take two hops, are split (not under a sanitizer), and are empty.
inline std::vector<std::size_t> const sizes_of_syncs{
    3, !HERRING_TEST_SLOW ? std::size_t{70'001} : std::size_t{40'001}, 0, 17, 5121, 512};

/// The policies of all ranks, as each rank runs them by itself from all gradients: what every rank has to find due.
template <class Policy, class Number> class replayed_policies {
  public:
    replayed_policies(int ranks, plan const& from) : each_(static_cast<std::size_t>(ranks)) {
        for (bucket const& b : from.buckets) groups_ += b.tensors > 0;
        for (placed_tensor const& at : from.tensors) {
            std::size_t group = 0;
            for (std::size_t b = 1; b <= at.bucket; ++b) group += from.buckets[b].tensors > 0;
            group_of_.push_back(group);
        }
    }
    /// `gradient(rank, tensor)`: of this step. Returns what it exchanges, tensor by tensor.
    template <class Gradient> std::vector<bool> step(Gradient const& gradient) {
        std::vector<bool> due;
        if constexpr (Policy::facts.ahead == 1) due = due_of_all();
        sync::ballot any;
        for (std::size_t rank = 0; rank < each_.size(); ++rank) {
            if constexpr (Policy::facts.observes)
                for (std::size_t group = 0; group < groups_; ++group) {
                    double squares = 0;
                    for (std::size_t i = 0; i < group_of_.size(); ++i) {
                        if (group_of_[i] != group) continue;
                        std::vector<Number> const values = gradient(static_cast<int>(rank), i);
                        squares += kernel::sum_of_squares(values.data(), values.size());
                    }
                    each_[rank].observe(group, squares);
                }
            if constexpr (Policy::facts.votes) {
                sync::ballot const vote = each_[rank].vote();
                for (std::size_t w = 0; w < sync::ballot::bits / 64; ++w) any.words[w] |= vote.words[w];
            }
        }
        for (Policy& one : each_) one.agreed(any);
        if constexpr (Policy::facts.ahead == 0) due = due_of_all();
        return due;
    }

  private:
    std::vector<bool> due_of_all() const {
        std::vector<bool> due;
        for (std::size_t const group : group_of_) due.push_back(each_[0].due(group));
        return due;
    }
    std::vector<Policy> each_;
    std::vector<std::size_t> group_of_; // tensor → bucket of the fusion policy
    std::size_t groups_ = 0;
};

/// What a policy makes of the mean of all ranks' weights: it takes it, or its outer optimizer steps from the anchor.
template <class Policy, class Number> class own_mean {
  public:
    explicit own_mean(std::vector<std::vector<Number>> const&) {}
    void take(std::vector<Number>& own, std::span<Number const> mean, std::size_t) {
        std::copy(mean.begin(), mean.end(), own.begin());
    }
    void end_step() {}
};
template <class Policy, class Number>
requires(Policy::facts.outer) //
    class own_mean<Policy, Number> {
    using outer = typename Policy::outer;

  public:
    explicit own_mean(std::vector<std::vector<Number>> const& start) : anchor_(start), state_(start.size()) {
        for (std::size_t i = 0; i < start.size(); ++i) state_[i].resize(start[i].size() * states);
    }
    void take(std::vector<Number>& own, std::span<Number const> mean, std::size_t i) {
        auto const with = outer::template prepare<Number>({}, steps_ + 1);
        for (std::size_t k = 0; k < own.size(); ++k) {
            outer::step(anchor_[i][k], anchor_[i][k] - mean[k], state_[i].data() + k * states, with);
            own[k] = anchor_[i][k];
        }
        any_ = true;
    }
    void end_step() { steps_ += std::exchange(any_, false); }

  private:
    static constexpr auto states = static_cast<std::size_t>(outer::facts.states);
    std::vector<std::vector<Number>> anchor_, state_;
    std::uint64_t steps_ = 0;
    bool any_ = false;
};

/// The mean over the ranks of this rank's node, in their order, of what all ranks have, one behind the other.
template <class Number>
std::vector<Number> node_mean(world const& ranks, std::vector<Number> const& everyone) {
    auto const& node = ranks.topology().members(ranks.topology().node(ranks.rank()));
    std::size_t const size = everyone.size() / static_cast<std::size_t>(ranks.size());
    std::vector<Number> result(size);
    for (std::size_t k = 0; k < size; ++k) {
        accumulator<Number> sum{};
        for (int const rank : node)
            sum = sum + static_cast<accumulator<Number>>(everyone[static_cast<std::size_t>(rank) * size + k]);
        result[k] = static_cast<Number>(sum / static_cast<accumulator<Number>>(node.size()));
    }
    return result;
}

/// Shape: `Lazy` has a sync policy; `Reducer` is the same without it.
template <class Lazy, class Reducer>
findings sync_suite(settings const& how = {}, std::size_t shapes = shapes_of_syncs.size(), int steps = 9) {
    using number = typename Lazy::element_type;
    using policy = typename Lazy::pack::sync;
    using wide = herring::accumulator<number>;
    auto const as_number = [](double value) { return static_cast<number>(static_cast<wide>(value)); };
    findings all;
    for (std::size_t shape = 0; shape < shapes; ++shape) {
        auto const& nodes = shapes_of_syncs[shape];
        std::string name = "what is due, on";
        for (auto const& node : nodes) name += " " + node;
        append(all, run_case(name, static_cast<int>(nodes.size()), nodes, how, [&](auto& on) {
                   layout const tensors = layout::of(sizes_of_syncs);
                   Lazy lazy(on.ranks, tensors);
                   Reducer reduce(on.ranks, tensors);
                   replayed_policies<policy, number> replayed(on.ranks.size(), lazy.plan());
                   // Gradients of a tensor grow now and then, on one rank first.
                   auto const gradient = [&](int rank, std::size_t i, int step) {
                       bool const grows =
                           (static_cast<std::size_t>(step) / 2 + i) % 3 == 1 && rank <= step % 3;
                       std::vector<number> values(sizes_of_syncs[i], as_number(grows ? 0.5 : 0.125));
                       for (std::size_t at = 0; at < values.size(); at += 3)
                           values[at] = as_number(0.01 * rank + 0.001 * static_cast<double>(at % 64));
                       return values;
                   };
                   lazy.start(on.ranks.size() - 1, [&](std::size_t i, std::span<number> into) {
                       std::fill(into.begin(), into.end(), as_number(static_cast<double>(i) + 0.3));
                   });
                   std::vector<std::vector<number>> own, lent(sizes_of_syncs.size());
                   for (std::size_t i = 0; i < sizes_of_syncs.size(); ++i)
                       own.emplace_back(sizes_of_syncs[i], as_number(static_cast<double>(i) + 0.3));
                   own_mean<policy, number> mean(own);
                   int exchanged = 0, local = 0;
                   for (int n = 0; n < steps; ++n) {
                       std::string const at = "step " + std::to_string(n) + ": ";
                       std::vector<bool> const due =
                           replayed.step([&](int rank, std::size_t i) { return gradient(rank, i, n); });
                       for (std::size_t i = own.size(); i-- > 0;) {
                           if (policy::facts.ahead == 1 && lazy.due(i) != due[i])
                               on.find(at + "at its begin something else is due");
                           auto const mine = gradient(on.rank(), i, n);
                           if (n % 2 == 0) {
                               std::copy(mine.begin(), mine.end(), lazy.tensor(i).begin());
                               lazy.ready(i);
                           } else {
                               lazy.ready(i, std::span<number const>(mine));
                           }
                       }
                       step const did = lazy.wait();
                       std::size_t with_elements = 0, count = 0;
                       for (std::size_t i = 0; i < own.size(); ++i) {
                           if (lazy.due(i) != due[i])
                               on.find(at + "tensor " + std::to_string(i) + " is due, or is not");
                           with_elements += !own[i].empty();
                           count += !own[i].empty() && due[i];
                       }
                       step const should = count == 0              ? step::local
                                           : count < with_elements ? step::partial
                                                                   : step::exchanged;
                       if (did != should) on.find(at + "wait says " + to_string(did));
                       exchanged += did != step::local;
                       local += did != step::exchanged;
                       bool const lends = n % 3 == 1; // from memory of the program's
                       for (std::size_t i = own.size(); i-- > 0;) {
                           auto const by = gradient(on.rank(), i, n);
                           for (std::size_t k = 0; k < own[i].size(); ++k)
                               own[i][k] = static_cast<number>(static_cast<wide>(own[i][k]) -
                                                               static_cast<wide>(by[k]) / 2);
                           if (lends) {
                               lent[i] = own[i];
                               lazy.updated(i, std::span<number>(lent[i]));
                           } else {
                               std::copy(own[i].begin(), own[i].end(), lazy.weights(i).begin());
                               lazy.updated(i);
                           }
                       }
                       std::vector<std::vector<number>> everyone(own.size());
                       for (std::size_t i = 0; i < own.size(); ++i) {
                           if (policy::facts.on_nodes && !own[i].empty()) {
                               everyone[i].resize(own[i].size() * static_cast<std::size_t>(on.ranks.size()));
                               all_gather(reduce, std::span<number const>(own[i]),
                                          std::span<number>(everyone[i]));
                           }
                       }
                       for (std::size_t i = 0; i < own.size(); ++i) {
                           std::copy(own[i].begin(), own[i].end(), reduce.tensor(i).begin());
                           reduce.ready(i);
                       }
                       reduce.wait();
                       lazy.settle();
                       for (std::size_t i = 0; i < own.size(); ++i) {
                           if (lazy.synchronized(i) != due[i])
                               on.find(at + "tensor " + std::to_string(i) + " was exchanged, or was not");
                           if (due[i])
                               mean.take(own[i], reduce.tensor(i), i);
                           else if (policy::facts.on_nodes)
                               own[i] = node_mean(on.ranks, everyone[i]);
                           std::span<number const> const got =
                               lends ? std::span<number const>(lent[i]) : lazy.weights(i);
                           if (!same_bytes(got, own[i]))
                               on.find(at + "tensor " + std::to_string(i) + " has other weights than " +
                                       (due[i] ? "the mean" : "its own"));
                       }
                       mean.end_step();
                   }
                   if (exchanged == 0 || local == 0)
                       on.find("the case shows exchanges, or local steps, alone");
                   on.ranks.barrier();
               }));
    }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_SYNC_SUITE_HPP
