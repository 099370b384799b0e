// herring: the update policy `any`: a list of rules, of which each call names one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_ANY_HPP
#define HERRING_UPDATE_ANY_HPP

#include "herring/base/config.hpp"
#include "herring/policy/check.hpp"
#include "herring/policy/composed_name.hpp"
#include "herring/update/rules.hpp"
#include "herring/update/update.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::update {

namespace detail {
template <class... Rules> struct first_of { using type = void; };
template <class First, class... Rest> struct first_of<First, Rest...> { using type = First; };
struct word_any {
    static constexpr char const* word = "any";
};
template <class... Rules> inline constexpr char const* names_of[] = {Rules::name...};
} // namespace detail

/// A list of rules: each call of all_reduce and reduce_scatter names one of them, as a call of MPI names an
/// MPI_Op. One set of connections, buffers and windows serves all rules. Tensors made ready take the first.
///
/// Shape:   that of the call's rule. The element type has to suit every rule of the list.
/// Bits:    those of a reducer with the call's rule alone.
/// Cost:    a branch a rule and call of a kernel. To compile: the kernels of each rule.
/// Errors:  `mismatch` naming both rules, where ranks call by different ones; and at construction, where
///          ranks list other rules, or in another order.
/// Example: herring::reducer<float, transport::tcp, update::any<update::sum, update::max>> reduce(world);
///          reduce.all_reduce(span, update::max{});
template <class... Rules> struct any {
    using axis = axes::update;
    using first = typename detail::first_of<Rules...>::type;
    static constexpr char const* name = [] {
        if constexpr ((update_policy<Rules> && ...))
            return herring::detail::composed_name<detail::word_any, Rules...>.data();
        else
            return detail::word_any::word; // and a sentence
    }();
    static constexpr update_facts facts{.takes_vectors = first::facts.takes_vectors,
                                        .associative = (Rules::facts.associative && ...),
                                        .lifts = (Rules::facts.lifts || ...),
                                        .with_finish = first::facts.with_finish};

    template <class Element> static constexpr bool supports = (update_supports<Rules, Element> && ...);

    /// A rule of the list as a value, for programs that choose at run time. Each rule of the list converts to
    /// one.
    ///
    /// Example: rules::rule by = op == MPI_MAX ? rules::rule(update::max{}) : update::sum{};
    class rule {
      public:
        template <class Rule>
        requires(std::same_as<Rule, Rules> || ...) //
            constexpr rule(Rule) noexcept {
            (void)((++number_, std::same_as<Rule, Rules>) || ...);
        }
        /// Its place in the list, from 1.
        constexpr std::uint8_t number() const noexcept { return number_; }
        friend constexpr bool operator==(rule, rule) noexcept = default;

      private:
        std::uint8_t number_ = 0;
    };
    static constexpr std::span<char const* const> names() noexcept { return detail::names_of<Rules...>; }

    /// Calls f(std::type_identity<Rule>()) for the rule of that number; for the first, if it is 0.
    template <class Function>
    HERRING_ALWAYS_INLINE static constexpr void choose(std::uint8_t number, Function const& f) noexcept {
        choose_from<Rules...>(number, f);
    }

    // As a rule it is the first.
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return first::combine(a, b);
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int ranks) noexcept {
        return first::finish(total, ranks);
    }
    template <class Acc>
    requires(any::facts.lifts) //
        HERRING_HOST_DEVICE static constexpr Acc lift(Acc contribution) noexcept {
        if constexpr (first::facts.lifts) return first::lift(contribution);
        return contribution;
    }
    template <class Number, class Kernel>
    static constexpr void with_finish(int ranks, Kernel&& kernel) noexcept {
        first::template with_finish<Number>(ranks, kernel);
    }

  private:
    template <class Rule, class... Rest, class Function>
    HERRING_ALWAYS_INLINE static constexpr void choose_from(std::uint8_t number, Function const& f) noexcept {
        if constexpr (sizeof...(Rest) > 0)
            if (number > 1) return choose_from<Rest...>(static_cast<std::uint8_t>(number - 1), f);
        f(std::type_identity<Rule>());
    }
};

namespace detail {
template <class Rule> inline constexpr bool is_any = false;
template <class... Rules> inline constexpr bool is_any<any<Rules...>> = true;
} // namespace detail

} // namespace HERRING_NAMESPACE::update

namespace HERRING_NAMESPACE {

template <class... Rules> struct check<axes::update, update::any<Rules...>> {
    template <class Rule> static constexpr int times = (0 + ... + int(std::same_as<Rule, Rules>));
    static constexpr bool empty = sizeof...(Rules) == 0;
    static constexpr bool nested = (update::detail::is_any<Rules> || ...);
    static constexpr bool twice = ((times<Rules> > 1) || ...);
    static constexpr int broken = [] {
        if constexpr (empty || nested || twice || sizeof...(Rules) > 32)
            return first_broken({!empty && sizeof...(Rules) <= 32, !nested, !twice});
        else
            return first_broken({true, true, true, (update_policy<Rules> && ...)});
    }();
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-U09] update: any lists 1 to 32 rules; a common slip is update::any<> for "
                  "«all of them»; write the rules that calls name, as in "
                  "update::any<update::sum, update::max>");
    static_assert(broken != 1,
                  "[HRG-U10] update: any lists rules, and update::any is none; a common slip is a "
                  "list within a list; write all rules into one");
    static_assert(broken != 2,
                  "[HRG-U11] update: any lists a rule twice; a common slip is a rule that stands "
                  "in two lists that were joined; keep one of the two");
    static_assert(broken != 3,
                  "[HRG-U12] update: any lists a type that is no update rule here; common slips are a policy "
                  "of another axis, and a rule whose header is not included; list rules, and see what a rule "
                  "of your own lacks by static_assert(herring::check_policy<my_rule>)");
};
static_assert(update_policy<update::any<update::sum, update::max>>);
static_assert(update_supports<update::any<update::sum, update::max>, int> &&
              !update_supports<update::any<update::sum, update::average>, int>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_UPDATE_ANY_HPP
