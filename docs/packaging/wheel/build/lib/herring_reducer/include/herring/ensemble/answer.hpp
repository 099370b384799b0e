// herring: the answer of an ensemble to one request.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ANSWER_HPP
#define HERRING_ENSEMBLE_ANSWER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The answer to one request: its combined row, its contributors, and the rows. It holds one of the
/// `in_flight` places until it is destroyed: a frontend whose answers are all kept is busy.
///
/// Threads:  one at a time; not only the one that asked.
/// Lifetime: spans live as long as the answer. An answer may outlive its frontend, and then keeps the
///           frontend's memory.
template <class Element, class Core> class basic_answer {
    using format = typename Core::format;

  public:
    using element_type = Element;

    /// Constructs an empty answer.
    basic_answer() = default;
    /// Constructs the answer to a refused request. For frontends.
    explicit basic_answer(herring::outcome refused) noexcept : how_(refused) {}
    basic_answer(Core& core, slot_index slot) noexcept
        : core_(&core), slot_(slot), how_(core.request(slot).how), id_(core.request(slot).id) {
        if (!has_values()) return;
        results_ = format::results_in(core.result(slot), core.elements(), core.most_members());
        bool const folded = format::fold(core.rows(slot), core.row_weights(slot), core.elements(), results_);
        if (folded && (!core.request(slot).shared || format::is_sound(results_) || fold_copies())) return;
        how_ = herring::outcome::failed; // no row that came has weight
        results_ = {};
    }
    basic_answer(basic_answer&& other) noexcept { *this = std::move(other); }
    basic_answer& operator=(basic_answer&& other) noexcept {
        if (this == &other) return *this;
        release();
        core_ = std::exchange(other.core_, nullptr);
        slot_ = other.slot_;
        how_ = std::exchange(other.how_, herring::outcome::closed);
        id_ = std::exchange(other.id_, 0);
        results_ = std::exchange(other.results_, {});
        return *this;
    }
    ~basic_answer() { release(); }
    /// Returns the answer to a request that was not accepted.
    static basic_answer refused(herring::outcome why) noexcept { return basic_answer(why); }

    /// Returns how the request ended; only `full` and `partial` have values.
    herring::outcome outcome() const noexcept { return how_; }
    /// True if there are values.
    bool has_values() const noexcept {
        return how_ == herring::outcome::full || how_ == herring::outcome::partial;
    }
    explicit operator bool() const noexcept { return has_values(); }
    /// Returns the request's id; 0: the request was refused, or the answer is empty.
    std::uint64_t id() const noexcept { return id_; }

    /// Returns the combined row, or nothing where there is none.
    ///
    /// Shape:  `elements`.
    /// Result: depends on the rows that counted and on the order of the roster, not on the order of arrival.
    std::span<Element const> values() const noexcept requires(format::dense) { return results_.values; }
    /// Returns ids and values of combined rows of entries, ids ascending.
    auto entries() const noexcept requires(!format::dense) { return results_.entries; }
    /// Returns one output of the pack, a span of one number an element or a number:
    /// `a.get<outputs::variance>()`.
    template <class Output> decltype(auto) get() const noexcept { return results_.template get<Output>(); }

    /// Returns everything that was combined: `values` or `entries`, all outputs, and what else rule or codec
    /// add.
    typename format::results const& results() const noexcept { return results_; }

    /// Returns the members whose rows counted.
    member_set contributors() const noexcept {
        return core_ != nullptr ? core_->request(slot_).contributors : member_set();
    }
    /// Returns the members that were asked, or on probation, and had not answered when the set was closed.
    member_set late() const noexcept { return core_ != nullptr ? core_->late(slot_) : member_set(); }
    /// Returns the reason why a member's row did not count; `none` if it did.
    miss why(std::size_t member) const noexcept {
        return core_ != nullptr ? core_->why(slot_, member) : miss::not_asked;
    }
    /// Returns the time from the entry of `ask` to the member's row, late rows included; below 0: it has not
    /// come yet.
    std::chrono::nanoseconds latency(std::size_t member) const noexcept {
        return std::chrono::nanoseconds(core_ != nullptr ? core_->latency_ns(slot_, member) : -1);
    }
    /// Returns the time from the entry of `ask` to the decision.
    std::chrono::nanoseconds latency() const noexcept {
        return std::chrono::nanoseconds(core_ != nullptr ? core_->decided_ns(slot_) : -1);
    }
    /// Returns the replica whose row counted.
    std::uint32_t replica(std::size_t member) const noexcept {
        return core_ != nullptr ? core_->replica(slot_, member) : 0;
    }

    /// A member's row as it came in, in the space of the combine rule.
    class member_row {
      public:
        std::size_t member() const noexcept { return member_; }
        /// Writes `elements` numbers. Returns their number: 0 if `to` is too small.
        std::size_t copy_to(std::span<Element> to) const noexcept requires(format::dense) {
            std::size_t const n = to.size() < elements_ ? 0 : elements_;
            if (n > 0) format::decode(bytes_, elements_, to.first(n));
            return n;
        }
        /// Writes the entries of the row. Returns their number: 0 if `to` has no room for as many as a row
        /// may have.
        template <class Entry>
        std::size_t copy_to(std::span<Entry> to) const noexcept requires(!format::dense) {
            if (to.size() < format::row_entries(elements_)) return 0;
            return format::decode(bytes_, elements_, to);
        }
        /// Returns the encoded row.
        std::span<std::byte const> bytes() const noexcept { return bytes_; }

      private:
        friend class basic_answer;
        member_row(std::size_t member, std::span<std::byte const> bytes, std::size_t elements) noexcept
            : member_(member), bytes_(bytes), elements_(elements) {}
        std::size_t member_;
        std::span<std::byte const> bytes_;
        std::size_t elements_;
    };
    /// Calls `give(member_row)` for each row that came in time, in roster order; also where too few came.
    template <class Give> void member_rows(Give&& give) const {
        if (core_ == nullptr) return;
        auto const rows = core_->rows(slot_);
        std::size_t next = 0;
        contributors().for_each([&](std::size_t member) {
            if (next < rows.size()) give(member_row(member, rows[next++], core_->elements()));
        });
    }

  private:
    // Folds copies of the rows that pass their check. A member of this host can write into its row after the
    // check, and the result shows that one has; rows that changed count no more. False: no row is left.
    HERRING_SETUP bool fold_copies() noexcept try {
        std::vector<std::vector<std::byte>> copies;
        std::vector<std::span<std::byte const>> rows;
        std::vector<float> weights;
        member_set changed;
        member_rows([&](member_row const& row) {
            auto const weight = core_->row_weights(slot_);
            copies.emplace_back(row.bytes().begin(), row.bytes().end());
            if (format::check(copies.back(), core_->elements()) != detail::ensembles::row_check::good)
                return changed.insert(row.member());
            rows.emplace_back(copies.back());
            if (!weight.empty()) weights.push_back(weight[copies.size() - 1]);
        });
        how_ = core_->refuse(slot_, changed);
        return has_values() && format::fold(rows, weights, core_->elements(), results_);
    } catch (std::bad_alloc const&) {
        return false;
    }
    void release() noexcept {
        if (core_ != nullptr && core_->release(slot_)) delete core_;
        core_ = nullptr;
    }

    Core* core_ = nullptr;
    slot_index slot_ = 0;
    herring::outcome how_ = herring::outcome::closed;
    std::uint64_t id_ = 0;
    typename format::results results_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ANSWER_HPP
