// herring: a set of an ensemble's members, by their places in the roster.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_SET_HPP
#define HERRING_ENSEMBLE_MEMBER_SET_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace HERRING_NAMESPACE {

/// Members of an ensemble: bit i is the i-th of the frontend's roster.
///
/// Units:   members, 0 … 1,023.
/// Cost:    128 bytes by value, nothing allocated; each operation between two sets touches 16 words.
/// Errors:  `insert`, and so a list of members: `bad_argument` for 1,024 and beyond; such a member is
///          contained in no set.
/// Example: `front.ask(input, 2ms, {.among = herring::member_set{0, 2, 3}})`
class member_set {
  public:
    static constexpr std::size_t capacity = 1024; ///< members that a roster may have

    constexpr member_set() noexcept = default;
    constexpr member_set(std::initializer_list<std::size_t> members) {
        for (std::size_t const member : members) insert(member);
    }
    /// Members 0 … count − 1; at most all 1,024.
    static constexpr member_set first(std::size_t count) noexcept {
        member_set all;
        for (std::size_t i = 0; i < words; ++i)
            if (count >= (i + 1) * 64)
                all.words_[i] = ~std::uint64_t{0};
            else if (count > i * 64)
                all.words_[i] = ~std::uint64_t{0} >> (64 - (count - i * 64));
        return all;
    }

    constexpr bool contains(std::size_t member) const noexcept {
        return member < capacity && (words_[member / 64] >> (member % 64) & 1) != 0;
    }
    constexpr void insert(std::size_t member) {
        if (member >= capacity) refuse(member);
        words_[member / 64] |= std::uint64_t{1} << (member % 64);
    }
    constexpr void erase(std::size_t member) noexcept {
        if (member < capacity) words_[member / 64] &= ~(std::uint64_t{1} << (member % 64));
    }
    constexpr void clear() noexcept { *this = {}; }

    constexpr std::size_t count() const noexcept {
        std::size_t all = 0;
        for (std::uint64_t const w : words_) all += static_cast<std::size_t>(std::popcount(w));
        return all;
    }
    constexpr bool empty() const noexcept { return *this == member_set(); }

    /// Members 64 i … 64 i + 63, the lowest in bit 0; 0 from i = 16 on.
    constexpr std::uint64_t word(std::size_t i) const noexcept { return i < words ? words_[i] : 0; }

    /// Calls `f(std::size_t member)` for each, ascending: in roster order.
    template <class Visit> constexpr void for_each(Visit&& f) const {
        for (std::size_t i = 0; i < words; ++i)
            for (std::uint64_t left = words_[i]; left != 0; left &= left - 1)
                f(i * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }

    constexpr member_set& operator|=(member_set const& other) noexcept {
        for (std::size_t i = 0; i < words; ++i) words_[i] |= other.words_[i];
        return *this;
    }
    constexpr member_set& operator&=(member_set const& other) noexcept {
        for (std::size_t i = 0; i < words; ++i) words_[i] &= other.words_[i];
        return *this;
    }
    /// Removes the members of the other set.
    constexpr member_set& operator-=(member_set const& other) noexcept {
        for (std::size_t i = 0; i < words; ++i) words_[i] &= ~other.words_[i];
        return *this;
    }
    friend constexpr member_set operator|(member_set a, member_set const& b) noexcept { return a |= b; }
    friend constexpr member_set operator&(member_set a, member_set const& b) noexcept { return a &= b; }
    friend constexpr member_set operator-(member_set a, member_set const& b) noexcept { return a -= b; }
    friend constexpr bool operator==(member_set const&, member_set const&) noexcept = default;

  private:
    static constexpr std::size_t words = capacity / 64;

    [[noreturn]] HERRING_SETUP static void refuse(std::size_t member) {
        throw error(
            failure::make(errc::bad_argument, -1, -1, "member_set",
                          {"member ", member, " is beyond the ", capacity, " that a roster may have"}));
    }

    std::uint64_t words_[words] = {};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_MEMBER_SET_HPP
