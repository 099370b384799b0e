// herring: which buckets of the plan a step submits: all of them, or those that are due.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_DUE_BUCKETS_HPP
#define HERRING_STEP_DUE_BUCKETS_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// The pieces of a step whose buckets are all submitted: piece n is bucket n.
class every_bucket {
  public:
    explicit every_bucket(plan const& from) noexcept : buckets_(from.buckets.size()) {}

    std::size_t pieces() const noexcept { return buckets_; }
    /// Pieces among the first `buckets` buckets.
    static std::size_t pieces_of(std::size_t buckets) noexcept { return buckets; }
    static std::size_t bucket(std::size_t piece) noexcept { return piece; }
    /// The part of fingerprints beside a bucket's number and size.
    static std::uint64_t digest() noexcept { return 0; }
    /// Changes an execution where it differs from the plan's bucket.
    static void adapt(execution&, std::size_t) noexcept {}
    static constexpr char const* name = "all_reduce"; ///< of executions

  private:
    std::size_t buckets_;
};

/// The pieces of a step that submits some buckets: those that are due, and with `combine_on_nodes` all others
/// by executions of the node alone. Nothing is due at first.
///
/// A rank that is alone on its node submits these executions too, without chunks, for all ranks count the
/// same executions: their numbers distinguish crossed calls from late ranks.
///
/// Cost:     O(buckets) a step; nothing is allocated after construction.
/// Lifetime: refers to the plan.
class due_buckets {
  public:
    static constexpr char const* name = "settle";

    explicit due_buckets(plan const& from)
        : plan_(from), before_(from.buckets.size() + 1), bucket_(from.buckets.size()),
          group_(from.buckets.size()), is_due_(from.buckets.size()) {
        for (std::size_t b = 0; b < group_.size(); ++b) {
            groups_ += from.buckets[b].tensors > 0;
            group_[b] = static_cast<std::uint32_t>(groups_ > 0 ? groups_ - 1 : 0);
        }
    }

    /// Has the ranks of this node combine buckets that are not due. Once, before the first step.
    /// `largest_node`: of the world.
    void combine_on_nodes(int local_size, int largest_node) {
        all_leave_ = largest_node > 1;
        if (local_size == 1) return;
        on_node_ = fixed_array<shard>(bucket_.size());
        std::size_t const chunk =
            std::max(plan_.tuning.local_chunk_bytes / plan_.element_bytes, std::size_t{1});
        for (std::size_t b = 0; b < bucket_.size(); ++b)
            on_node_[b] =
                cut(0, plan_.buckets[b].elements, server_id{0}, chunk, plan_.line_elements, local_size);
    }

    /// Buckets of the fusion policy, of which the plan may have split some, and which of them bucket b is a
    /// part of.
    std::size_t groups() const noexcept { return groups_; }
    std::size_t group(std::size_t b) const noexcept { return group_[b]; }
    /// The digest of the tensors in each group.
    std::uint64_t groups_digest() const noexcept {
        detail::digest sum(0x6772'6f75'7073u);
        for (placed_tensor const& one : plan_.tensors) sum.add(group_[one.bucket]);
        return sum.value();
    }

    /// The next step submits the buckets for whose groups `is_due` holds. `number`: of the step.
    template <class Due> void choose(std::uint64_t number, Due const& is_due) noexcept {
        detail::digest sum(0x6475'6520u);
        sum.add(number);
        pieces_ = with_elements_ = 0;
        std::size_t all_with_elements = 0;
        for (std::size_t b = 0; b < bucket_.size(); ++b) {
            before_[b] = static_cast<std::uint32_t>(pieces_);
            bool const any = plan_.buckets[b].elements > 0;
            all_with_elements += any;
            is_due_[b] = is_due(group_[b]);
            if (is_due_[b] || all_leave_) bucket_[pieces_++] = static_cast<std::uint32_t>(b);
            if (!is_due_[b]) continue;
            with_elements_ += any;
            sum.add(b);
        }
        before_[bucket_.size()] = static_cast<std::uint32_t>(pieces_);
        all_ = with_elements_ == all_with_elements;
        digest_ = sum.value() << 32;
    }
    bool is_due(std::size_t b) const noexcept { return is_due_[b]; }
    /// True if the step combines the bucket: with all ranks, or on the node.
    bool is_combined(std::size_t b) const noexcept { return is_due_[b] || !on_node_.empty(); }
    /// True if all of the model is due; or nothing of it.
    bool all() const noexcept { return all_; }
    bool none() const noexcept { return with_elements_ == 0; }

    std::size_t pieces() const noexcept { return pieces_; }
    std::size_t pieces_of(std::size_t buckets) const noexcept { return before_[buckets]; }
    std::size_t bucket(std::size_t piece) const noexcept { return bucket_[piece]; }
    std::uint64_t digest() const noexcept { return digest_; }
    void adapt(execution& e, std::size_t b) const noexcept {
        if (is_due_[b] || plan_.nodes == 1) return;
        e.path = route::local;
        e.shards = on_node_.empty() ? nullptr : &on_node_[b];
        e.shard_count = on_node_.empty() ? 0 : 1;
    }

  private:
    plan const& plan_;
    fixed_array<std::uint32_t> before_; // bucket → pieces before it
    fixed_array<std::uint32_t> bucket_; // piece → bucket
    fixed_array<std::uint32_t> group_;
    fixed_array<bool> is_due_;
    fixed_array<shard> on_node_; // bucket → all of it, as the ranks of a node share it; empty: they do not
    std::size_t groups_ = 0, pieces_ = 0, with_elements_ = 0;
    std::uint64_t digest_ = 0;
    bool all_ = false, all_leave_ = false;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_DUE_BUCKETS_HPP
