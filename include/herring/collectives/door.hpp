// herring: what the collectives' headers share: the checks of a call, and its run by a reducer's private members.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_DOOR_HPP
#define HERRING_COLLECTIVES_DOOR_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"
#include "herring/error.hpp"
#include "herring/policy.hpp"
#include "herring/range.hpp"
#include "herring/reducer.hpp"
#include "herring/step/collective.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

template <bool OnDevice> struct collective_on_host {
    static constexpr bool value = true;
    static_assert(!OnDevice,
                  "[HRG-D03] reducer: its tensors lie on a device, where reduce_scatter, all_gather and "
                  "broadcast do not reach yet; a common slip is one reducer for both; construct one without "
                  "nvlink or pcie_staging for these calls");
};
template <bool Named> struct collective_rule {
    static constexpr bool value = true;
    static_assert(Named, "[HRG-C03] reduce_scatter: the reducer does not name a rule, so what is left is not "
                         "said; a common slip is to leave update::sum out; name it, or update::average");
};

/// A friend of the reducer: runs collectives that are free functions. One call at a time, between steps.
struct door {
    using share = collective_program::share;

    template <class Pack> static std::chrono::milliseconds timeout_of(basic_reducer<Pack>& reduce) noexcept {
        return reduce.default_timeout();
    }

    /// `whole`: the buffer of all elements; `part`: the memory of this rank's range, for a program with owners.
    ///
    /// Errors: a misuse is thrown, a failure returned.
    template <class Pack>
    static status run(basic_reducer<Pack>& reduce, collective_program const& program,
                      std::span<std::byte const> whole, std::span<std::byte const> part,
                      time_point deadline) {
        using element = typename Pack::element;
        char const* const operation = program.name + program.article();
        call const here(reduce.calls_, operation);
        if (failure const* const why = reduce.session_.failed()) return status(*why);
        reduce.parts_->steps.check_between_steps(operation);
        std::size_t const elements = whole.size() / sizeof(element);
        world& ranks = reduce.session_.ranks();
        if (program.has_owners())
            check_owned(reduce.calls_, operation, whole, part, reduce.owned(elements, ranks.rank()),
                        sizeof(element));
        else
            check_root(reduce.calls_, operation, program.root, ranks.size());
        if (elements == 0) return {};
        void const* const in = program.gives == share::owned ? part.data() : whole.data();
        void const* const out = program.takes == share::owned ? part.data() : whole.data();
        status ended = reduce.parts_->collectives.run(reduce.session_, program, in, const_cast<void*>(out),
                                                      elements, deadline);
        reduce.session_.rethrow_of_handlers();
        return ended;
    }

    template <class Pack, class Operation> static constexpr std::uint8_t number_of() noexcept {
        return session<Pack>::template number_of<Operation>();
    }
    template <class Pack> static constexpr bool on_device = session<Pack>::store::on_device;
    template <class Pack> static constexpr bool rule_is_named = rule<typename Pack::update>::is_named;
    template <class Pack> using reduce_scatter = typename session<Pack>::reduce_scatter;
};

/// The element type of a reducer, where it shall not be deduced: a std::vector is taken too.
template <class Pack> using element_of = typename Pack::element;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_COLLECTIVES_DOOR_HPP
