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

/// Room for a decision of one request: its combined row, who contributed, and the rows. Holds a place of those in flight
/// until it is destroyed, so that a frontend whose answers are all kept is busy.
///
/// Threads:  one at a time; another one than that which asked may have it.
/// Lifetime: spans, of the answer. It may outlive its frontend, whose memory it keeps then.
template <class Element, class Core> class basic_answer {
    using format = typename Core::format;

  public:
    using element_type = Element;

    /// Empty.
    basic_answer() = default;
    /// What a frontend makes: of a request that it refused, or of one that is decided, which it folds.
    explicit basic_answer(herring::outcome refused) noexcept : how_(refused) {}
    basic_answer(Core& core, slot_index slot) noexcept
        : core_(&core), slot_(slot), how_(core.request(slot).how), id_(core.request(slot).id) {
        if (!has_values()) return;
        results_ = format::results_in(core.result(slot), core.elements(), core.most_members());
        bool const folded = format::fold(core.rows(slot), core.row_weights(slot), core.elements(), results_);
        if (folded && (!core.request(slot).shared || format::is_sound(results_) || fold_copies())) return;
        how_ = herring::outcome::failed; // those who came have no weight
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
    /// That of a request which was not accepted.
    static basic_answer refused(herring::outcome why) noexcept { return basic_answer(why); }

    /// How the request ended; only `full` and `partial` have values.
    herring::outcome outcome() const noexcept { return how_; }
    /// Whether there are values.
    bool has_values() const noexcept {
        return how_ == herring::outcome::full || how_ == herring::outcome::partial;
    }
    explicit operator bool() const noexcept { return has_values(); }
    /// Of the request; 0: it was refused, or the answer is empty.
    std::uint64_t id() const noexcept { return id_; }

    /// The combined row. Empty where there is none.
    ///
    /// Shape:  `elements`.
    /// Result: depends on the rows that counted and on the roster's order, not on the order in which they came.
    std::span<Element const> values() const noexcept requires(format::dense) { return results_.values; }
    /// Of rows of entries: ids and values, ascending ids.
    auto entries() const noexcept requires(!format::dense) { return results_.entries; }
    /// One of the pack's outputs: `a.get<outputs::variance>()`, a span of one number an element, or a number.
    template <class Output> decltype(auto) get() const noexcept { return results_.template get<Output>(); }

    /// All that was combined: what `values` or `entries` and `get` give, and what else the rule or the codec tells.
    typename format::results const& results() const noexcept { return results_; }

    /// Whose rows counted.
    member_set contributors() const noexcept {
        return core_ != nullptr ? core_->request(slot_).contributors : member_set();
    }
    /// Members that were asked, or on probation, and had not answered when the set was closed.
    member_set late() const noexcept { return core_ != nullptr ? core_->late(slot_) : member_set(); }
    /// Why a member's row did not count; `none`: it did.
    miss why(std::size_t member) const noexcept {
        return core_ != nullptr ? core_->why(slot_, member) : miss::not_asked;
    }
    /// From the entry of `ask` until the member's row came, also where it came too late; below 0: it has not come yet.
    std::chrono::nanoseconds latency(std::size_t member) const noexcept {
        return std::chrono::nanoseconds(core_ != nullptr ? core_->latency_ns(slot_, member) : -1);
    }
    /// From the entry of `ask` until the set was closed.
    std::chrono::nanoseconds latency() const noexcept {
        return std::chrono::nanoseconds(core_ != nullptr ? core_->decided_ns(slot_) : -1);
    }
    /// Which of a member's replicas the row is of.
    std::uint32_t replica(std::size_t member) const noexcept {
        return core_ != nullptr ? core_->replica(slot_, member) : 0;
    }

    /// One member's row as it came in, in the space of the combine rule.
    class member_row {
      public:
        std::size_t member() const noexcept { return member_; }
        /// Writes `elements` numbers. Returns how many: none where `to` has not room for all.
        std::size_t copy_to(std::span<Element> to) const noexcept requires(format::dense) {
            std::size_t const n = to.size() < elements_ ? 0 : elements_;
            if (n > 0) format::decode(bytes_, elements_, to.first(n));
            return n;
        }
        /// Of rows of entries. Returns how many there are: none where `to` has not room for as many as a row may have.
        template <class Entry>
        std::size_t copy_to(std::span<Entry> to) const noexcept requires(!format::dense) {
            if (to.size() < format::row_entries(elements_)) return 0;
            return format::decode(bytes_, elements_, to);
        }
        /// As it is encoded.
        std::span<std::byte const> bytes() const noexcept { return bytes_; }

      private:
        friend class basic_answer;
        member_row(std::size_t member, std::span<std::byte const> bytes, std::size_t elements) noexcept
            : member_(member), bytes_(bytes), elements_(elements) {}
        std::size_t member_;
        std::span<std::byte const> bytes_;
        std::size_t elements_;
    };
    /// Calls `give(member_row)` for each row that came in time, in the order of the roster; also where too few did.
    template <class Give> void member_rows(Give&& give) const {
        if (core_ == nullptr) return;
        auto const rows = core_->rows(slot_);
        std::size_t next = 0;
        contributors().for_each([&](std::size_t member) {
            if (next < rows.size()) give(member_row(member, rows[next++], core_->elements()));
        });
    }

  private:
    // A member of this host can write into its row after the check, and the result shows that one has. Copies of the rows are
    // checked, and folded, so that nothing is written in between; whose are not sound counts no more. False: nobody is left.
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
