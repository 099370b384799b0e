// herring: the outputs policy `of`: a list of outputs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_OUTPUTS_OF_HPP
#define HERRING_OUTPUTS_OF_HPP

#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/outputs/outputs.hpp"
#include "herring/policy/composed_name.hpp"

namespace HERRING_NAMESPACE::outputs {

namespace detail {
struct of_word {
    static constexpr char const* word = "of";
};
template <class Output, class... All> constexpr int times() noexcept {
    return (0 + ... + int(std::is_same_v<Output, All>));
}
template <class... Output> constexpr char const* name_of_list() noexcept {
    if constexpr ((output_kind<Output> && ...))
        return herring::detail::composed_name<of_word, Output...>.data();
    else
        return "of";
}
template <class Output, class Number> struct stored { typename Output::template result<Number> value{}; };
template <class Number, class... Output> struct stored_results : stored<Output, Number>... {
    /// `get<outputs::variance>()`: a span or a number.
    template <class Asked> auto& get() noexcept { return static_cast<stored<Asked, Number>&>(*this).value; }
    template <class Asked> auto const& get() const noexcept {
        return static_cast<stored<Asked, Number> const&>(*this).value;
    }
};
} // namespace detail

/// The outputs of this list, in any order; `of<>`, the default, has none.
///
/// Example: `herring::ensemble<float, ..., herring::outputs::of<herring::outputs::variance>>`, then
///          `answer.get<herring::outputs::variance>()`.
template <class... Output> struct of {
    using axis = axes::outputs;
    static constexpr char const* name = detail::name_of_list<Output...>();
    static constexpr bool is_list = true;
    static constexpr bool all_known = (output_kind<Output> && ...);
    static constexpr bool all_once = ((detail::times<Output, Output...>() == 1) && ...);

    template <class Asked> static constexpr bool has = (std::is_same_v<Asked, Output> || ...);

    /// What is stored of them.
    template <class Number> using results = detail::stored_results<Number, Output...>;
};

static_assert(outputs_policy<of<>> && outputs_policy<of<variance, mutual_information>>);

} // namespace HERRING_NAMESPACE::outputs

#endif // HERRING_OUTPUTS_OF_HPP
