// herring: a rank's weights and optimizer state as ranges of tensors, for checkpoints.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRAINING_MEMORY_HPP
#define HERRING_SESSION_TRAINING_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/model/element.hpp"
#include "herring/model/range.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/session/checkpoint.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The facts that checkpoints of a session with this optimizer have in common.
template <class Optimizer, class Element, class Session>
checkpoint_kind checkpoint_kind_of(Session& session) noexcept {
    using memory = typename Session::optimizer_memory_type;
    constexpr std::size_t number_bytes = sizeof(typename memory::number);
    return {.element = element<Element>::name,
            .optimizer = Optimizer::name,
            .groups = session.updated().groups(),
            .group_values = sizeof(typename Optimizer::hyper) / sizeof(double) + 1,
            .tensors = session.tensors(),
            .shape = {.weight_bytes = session.plan().element_bytes,
                      .number_bytes = number_bytes,
                      .states = memory::kept_arrays(),
                      .stride_bytes = session.updated().handled().elements() * number_bytes},
            .fault = [](std::span<double const> group) noexcept {
                typename Optimizer::hyper values{};
                std::memcpy(static_cast<void*>(&values), group.data(), sizeof values);
                return fault_of<Optimizer>(values);
            }};
}

/// The same without an optimizer.
template <class Element, class Session>
checkpoint_kind checkpoint_kind_of_weights(Session& session) noexcept {
    return {.element = element<Element>::name,
            .optimizer = optimizer::none::name,
            .groups = 0,
            .group_values = 0,
            .tensors = session.tensors(),
            .shape = {.weight_bytes = session.plan().element_bytes}};
}

/// The ranges whose state this rank keeps, sorted. `state`: the memory in use, or another one like it.
///
/// Shape: `owned`: a range that several ranks keep alike, and whose weights all of them have, belongs to the
///        lowest of them.
template <class Session>
HERRING_SETUP std::vector<checkpoints::tensor_memory> ranges_kept(Session& session, std::byte* state,
                                                                  bool owned) {
    plan const& of = session.plan();
    auto const& handled = session.updated().handled();
    constexpr std::size_t number_bytes = sizeof(typename Session::optimizer_memory_type::number);
    std::vector<checkpoints::tensor_memory> all;
    handled.for_each(of, [&](std::size_t b, std::size_t offset, std::size_t elements, std::size_t place) {
        if (owned && !handled.is_lowest(of.buckets[b].path)) return;
        bucket chunk{.offset = of.buckets[b].offset + offset, .elements = elements};
        auto const first =
            std::partition_point(of.tensors.begin(), of.tensors.end(), [&](placed_tensor const& before) {
                return before.offset + before.elements <= chunk.offset;
            });
        chunk.first_tensor = static_cast<std::uint32_t>(first - of.tensors.begin());
        for_each_tensor_in(of, chunk, [&](std::size_t i, std::size_t from, std::size_t count) {
            std::size_t const at = of.tensors[i].offset + from; // as the plan places tensors
            checkpoints::tensor_memory const next{
                .tensor = i,
                .offset = from,
                .elements = count,
                .weights = session.weights_of_bucket(b) + (at - of.buckets[b].offset) * of.element_bytes,
                .state = state == nullptr ? nullptr : state + (place + at - chunk.offset) * number_bytes};
            if (all.empty() || !all.back().is_followed_by(next, of.element_bytes, number_bytes))
                all.push_back(next);
            else
                all.back().elements += count;
        });
    });
    return all;
}

/// The tensors in a range of the plan's elements, to be filled where they lie.
template <class Step>
std::vector<checkpoints::tensor_memory> tensors_within(range const& part, plan const& of, Step& steps) {
    std::vector<checkpoints::tensor_memory> all;
    for (std::size_t i = 0; i < of.tensors.size(); ++i) {
        placed_tensor const& at = of.tensors[i];
        std::size_t const begin = std::max(part.offset, at.offset),
                          end = std::min(part.offset + part.elements, at.offset + at.elements);
        if (begin < end)
            all.push_back({.tensor = i,
                           .offset = begin - at.offset,
                           .elements = end - begin,
                           .weights = steps.tensor(i) + (begin - at.offset) * of.element_bytes});
    }
    return all;
}

/// The same ranges of each array, as the program sees them: array 0 are the weights, before they are rounded.
template <class Memory>
std::vector<state_range<typename Memory::number>>
as_state_ranges(std::span<checkpoints::tensor_memory const> all, checkpoints::state_shape const& shape) {
    using number = typename Memory::number;
    std::vector<state_range<number>> ranges;
    for (checkpoints::tensor_memory const& one : all)
        for (std::size_t array = 0; array <= Memory::states; ++array) {
            std::size_t const kept = array == 0 && Memory::has_masters ? shape.states : array;
            ranges.push_back({one.tensor,
                              array,
                              one.offset,
                              {reinterpret_cast<number const*>(shape.place(one, kept)), one.elements}});
        }
    return ranges;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRAINING_MEMORY_HPP
