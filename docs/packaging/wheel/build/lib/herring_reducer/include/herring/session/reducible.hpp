// herring: the requirements of a reducer on a pack and on a call, besides those of policies on each other.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_REDUCIBLE_HPP
#define HERRING_SESSION_REDUCIBLE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/names.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/defaults.hpp"
#include "herring/sync/sync.hpp"
#include "herring/update/rules.hpp"

#include <cstddef>
#include <type_traits>

namespace HERRING_NAMESPACE::operations {
template <class Element, class Update> class moments;
template <class Element, class Update, class Optimizer> class optimise;
class command;
} // namespace HERRING_NAMESPACE::operations

namespace HERRING_NAMESPACE::detail {

/// The engine has an operation that reducers of most rules do not: it is defined where its call is.
template <class Update, class Element>
concept operations_are_here = !gives_deviations<Update> || requires {
    sizeof(operations::moments<Element, Update>);
};

/// The same for the operation by which workers command servers of their own; `Placement` delays the check
/// until a reducer is named.
template <class Placement>
concept commands_are_here = !Placement::facts.dedicated_servers || requires {
    sizeof(std::conditional_t<std::is_void_v<Placement>, int, operations::command>);
};

/// An optimizer takes gradients that are sums or means, of floats, and weights in memory of the host; and the
/// engine has an operation then that other reducers do not.
template <class Pack, class Optimizer> struct optimizable {
    using element = typename Pack::element;
    using combines = typename Pack::update;
    static constexpr bool summed = std::is_same_v<combines, update::sum> ||
                                   std::is_same_v<combines, update::average> ||
                                   std::is_same_v<combines, update::unnamed_average>;
    static constexpr bool numbers = [] {
        if constexpr (std::is_same_v<element, float> || std::is_same_v<element, double> ||
                      std::is_same_v<element, bfloat16> || std::is_same_v<element, float16>)
            return clauses::optimizer::prepares<Optimizer, accumulator<element>> &&
                   clauses::optimizer::steps<Optimizer, accumulator<element>, accumulator<element>>;
        else
            return false;
    }();
    static constexpr bool on_host = !Pack::intra_node::facts.device_memory;
    static constexpr bool included = requires {
        sizeof(operations::optimise<float, update::sum, Optimizer>);
    };
    static constexpr bool value = summed && numbers && on_host && included;
};
template <class Pack> struct optimizable<Pack, optimizer::none> {
    static constexpr bool summed = true, numbers = true, on_host = true, included = true, value = true;
};

template <class Sync> struct lazy_reducer_header; // herring/lazy_reducer.hpp defines it

template <class Outer, class Element>
concept outer_fits =
    (std::is_same_v<Element, float> ||
     std::is_same_v<Element, double>)&&optimizer_policy<Outer>&& optimizes<Outer>&& clauses::optimizer::
        prepares<Outer, Element>&& clauses::optimizer::steps<Outer, Element, Element> &&
    !in_two_phases<Outer>;

/// With a sync policy that skips steps ranks have weights of their own, which are averaged, in memory of the
/// host.
template <class Pack, class Sync> struct averageable {
    using combines = typename Pack::update;
    static constexpr bool included = requires { sizeof(lazy_reducer_header<Sync>); };
    static constexpr bool alone = !optimizes<typename Pack::optimizer>;
    static constexpr bool means =
        std::is_same_v<combines, update::average> || std::is_same_v<combines, update::unnamed_average>;
    static constexpr bool numbers =
        !Sync::facts.observes ||
        std::is_floating_point_v<typename herring::element<typename Pack::element>::accumulator>;
    static constexpr bool on_host = !Pack::intra_node::facts.device_memory;
    static constexpr bool outer = [] {
        if constexpr (Sync::facts.outer)
            return outer_fits<typename Sync::outer, typename Pack::element>;
        else
            return true;
    }();
    static constexpr bool served = !Pack::placement::facts.dedicated_servers;
    static constexpr int broken = first_broken({included, alone, means, numbers, on_host, outer, served});
    static constexpr bool value = broken < 0;
};
template <class Pack> struct averageable<Pack, sync::every_step> {
    static constexpr int broken = -1;
    static constexpr bool value = true;
};

template <class Transport> constexpr bool carries(exchange_tuning const& sizes) noexcept {
    // Within these limits no number of chunks or bytes overflows.
    return sizes.chunk_bytes >= 4096 && sizes.chunk_bytes <= 1_GiB &&
           sizes.window_bytes >= sizes.chunk_bytes && sizes.window_bytes / sizes.chunk_bytes <= 65536 &&
           Transport::facts.max_message >= 2 * sizes.chunk_bytes;
}

/// The requirements of a reducer on a pack, besides those of its policies on each other.
template <class Pack> struct reducible {
    using transport = typename Pack::transport;
    static constexpr bool known =
        !Pack::placement::facts.dedicated_servers || !Pack::intra_node::facts.device_memory;
    static constexpr bool carried = transport::facts.tag_bits >= 64 &&
                                    carries<transport>(transport::facts.tuning) &&
                                    carries<transport>(transport::facts.same_host_tuning);
    static constexpr bool included = operations_are_here<typename Pack::update, typename Pack::element>;
    static constexpr bool served = commands_are_here<typename Pack::placement>;
    using updated = optimizable<Pack, typename Pack::optimizer>;
    using averaged = averageable<Pack, typename Pack::sync>;
    static constexpr bool reduces = known && carried && included && served && averaged::value;
    static constexpr bool value = reduces && updated::value;
    static constexpr int unfit = known && carried && included && served ? averaged::broken : -1;
    static_assert(
        unfit != 0,
        "[HRG-M13] sync: a policy that skips steps needs the reducer of such packs; a common slip is to "
        "include herring/herring.hpp and the policy's header alone; include "
        "herring/lazy_reducer.hpp before reducer<...> is named");
    static_assert(
        unfit != 1,
        "[HRG-M14] optimizer: weights are updated where gradients are summed, in every step, and this "
        "sync policy skips steps; a common slip is to add every<k> to a trainer; leave one of "
        "the two out, or name herring::sync::diloco, which has an optimizer of its own");
    static_assert(unfit != 2,
                  "[HRG-M15] sync: a policy that skips steps averages weights, and this rule gives something "
                  "else; a common slip is an update::sum that was left from gradients; name "
                  "herring::update::average, or leave the rule out");
    static_assert(
        unfit != 3,
        "[HRG-M16] sync: this policy observes the squares of gradients, and the element is no floating-"
        "point number; a common slip is a complex type; name herring::sync::every<k>, or reduce "
        "float or double");
    static_assert(
        unfit != 4,
        "[HRG-M17] sync: weights lie in memory of the host, and this intra_node policy keeps tensors "
        "on devices; a common slip is every<k> in a pack for devices; name "
        "herring::intra_node::shared_memory, or leave the sync policy out");
    static_assert(
        unfit != 5,
        "[HRG-M18] sync: its outer optimizer is one of float or double weights, in a reducer of these; "
        "a common slip is optimizer::none, or a reducer of bfloat16; name "
        "herring::optimizer::nesterov, and reduce float");
    static_assert(
        unfit != 6,
        "[HRG-M19] sync: servers of their own serve every step, and this policy skips some; a common slip is "
        "every<k> beside placement::dedicated; name herring::placement::colocated, or leave one of the two "
        "out");
    static_assert(
        !reduces || updated::summed,
        "[HRG-M10] optimizer: takes the sum or the mean of the ranks' gradients, and this rule gives "
        "something else; a common slip is a rule that was left from another reducer; name "
        "herring::update::average or sum, or leave the rule out for average");
    static_assert(!reduces || !updated::summed || updated::numbers,
                  "[HRG-M11] optimizer: weights and gradients are float, double, herring::bfloat16 or "
                  "herring::float16, and prepare and step take float, or double; a common slip is a reducer "
                  "of integers; reduce float, or leave the optimizer out");
    static_assert(!reduces || !updated::summed || !updated::numbers || updated::on_host,
                  "[HRG-M12] optimizer: weights lie in memory of the host, and this intra_node policy keeps "
                  "tensors on devices; a common slip is to add an optimizer to a pack for devices; name "
                  "herring::intra_node::shared_memory, or leave the optimizer out");
    static_assert(
        !reduces || !updated::summed || !updated::numbers || !updated::on_host || updated::included,
        "[HRG-M23] optimizer: a reducer with an optimizer needs what updates weights; a common slip is to "
        "include the optimizer's header alone; include <herring/training.hpp> too, before reducer<...> is "
        "named");
    static_assert(known, "[HRG-M20] placement: servers of their own have no device, and this intra_node "
                         "policy keeps tensors on "
                         "devices; a common slip is to add placement::dedicated to a pack for devices; name "
                         "herring::intra_node::shared_memory, or leave the placement out");
    static_assert(
        !known || carried,
        "[HRG-T12] transport: a reducer needs 64 tag bits, chunks of 4 KiB to 1 GiB, a window of one chunk "
        "to "
        "65536, and messages of two chunks' size; a common slip is a chunk_bytes of 1024, for a test; "
        "leave chunk_bytes and window_bytes out for their defaults");
    static_assert(
        !known || !carried || included,
        "[HRG-M09] update: a reducer with moments or sample_moments needs the operation of "
        "all_moments; a common slip is to include the rule's header alone; include "
        "herring/collectives/all_moments.hpp, which includes the rules, before reducer<...> is named");
    static_assert(
        !known || !carried || !included || served,
        "[HRG-M21] placement: a reducer with servers of their own needs what its workers tell them; a common "
        "slip is to include the placement's header alone; include herring/serve.hpp, which includes the "
        "placements, before reducer<...> is named");
};
template <class Element> struct reducible<rejected<Element>> { static constexpr bool value = true; };

template <bool OnDevice> struct only_on_host {
    static constexpr bool value = true;
    static_assert(
        !OnDevice,
        "[HRG-D02] reducer: its tensors lie on a device, and it has to be told in which stream; a common "
        "slip is ready(i), wait() or all_reduce(span); call ready(i, stream), wait(stream) and "
        "all_reduce(device_span, stream)");
};

/// The update rule, and whether the pack names it or it is the default.
template <class Update> struct rule {
    using type = Update;
    static constexpr bool is_named = true;
};
template <> struct rule<update::unnamed_average> {
    using type = update::average;
    static constexpr bool is_named = false;
};

template <class Pack> struct runnable { using type = rejected<typename Pack::element>; };
template <class Pack>
requires holds<reducible<stored_pack<Pack>>>
struct runnable<Pack> {
    using type = Pack;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_REDUCIBLE_HPP
