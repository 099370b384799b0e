// herring: the policy pack: axes, defaults, and one sentence for each slip in naming policies.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_HPP
#define HERRING_POLICY_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// What a reducer is composed of. A policy says which axis it is for with `using axis = axes::<axis>;`.
///
/// `name` is the axis in the user's words; `must_agree`: ranks with different policies on this axis cannot
/// reduce together, so `join` compares it.
namespace axes {
struct transport {
    static constexpr char const* name = "transport";
    static constexpr bool must_agree = true;
};
struct intra_node {
    static constexpr char const* name = "intra_node";
    static constexpr bool must_agree = true;
};
struct sharding {
    static constexpr char const* name = "sharding";
    static constexpr bool must_agree = true;
};
struct placement {
    static constexpr char const* name = "placement";
    static constexpr bool must_agree = true;
};
struct fusion {
    static constexpr char const* name = "fusion";
    static constexpr bool must_agree = true;
};
struct sync {
    static constexpr char const* name = "sync";
    static constexpr bool must_agree = true;
};
struct update {
    static constexpr char const* name = "update";
    static constexpr bool must_agree = true;
};
struct wire {
    static constexpr char const* name = "wire";
    static constexpr bool must_agree = true;
};
struct progress {
    static constexpr char const* name = "progress";
    static constexpr bool must_agree = false;
};
struct waiting {
    static constexpr char const* name = "waiting";
    static constexpr bool must_agree = false;
};
struct trace {
    static constexpr char const* name = "trace";
    static constexpr bool must_agree = false;
};
} // namespace axes

/// The policy that an axis takes when the pack leaves it out: `using type = ...;`.
///
/// Only declared here, so that this header reaches no model; `herring/reducer.hpp` has the specialisations.
/// The transport has none, on purpose.
template <class Axis> struct default_policy;

template <class Element> struct element;

/// Whether tensors of this type can be reduced. Specialise it for a type of your own, above the reducer:
/// `template <> inline constexpr bool herring::is_element<my_struct> = true;`. It is then moved byte by byte and combined by a
/// rule that takes it, element by element, on the host.
template <class Element> inline constexpr bool is_element = false;
template <> inline constexpr bool is_element<float> = true;
template <> inline constexpr bool is_element<double> = true;
template <> inline constexpr bool is_element<int> = true;
template <> inline constexpr bool is_element<long> = true;
template <> inline constexpr bool is_element<long long> = true;
template <> inline constexpr bool is_element<unsigned> = true;
template <> inline constexpr bool is_element<unsigned long> = true;
template <> inline constexpr bool is_element<unsigned long long> = true;

/// Whether a policy models the concept of its axis, with one sentence for the first clause that it breaks.
///
/// Specialised beside the concept of the axis, in `herring/<axis>/<axis>.hpp`:
/// ```cpp
/// template <class Policy> struct check<axes::trace, Policy> {
///     static constexpr int broken = first_broken({trace_callable<Policy>, trace_nothrow<Policy>});
///     static constexpr bool value = broken < 0;
///     static_assert(broken != 0, "[HRG-R01] trace: needs ...; a common slip is ...");
///     static_assert(broken != 1, "[HRG-R02] trace: needs ...; a common slip is ...");
/// };
/// ```
/// Clauses are evaluated in order; a later one may take the earlier ones for granted, and must be `false`
/// rather than ill-formed when they are not met (write each as a concept).
template <class Axis, class Policy> struct check {
    static constexpr bool value = true;
    using axis_header_left_out = void;
};

/// Which of the policies that `herring/policy/names.hpp` declares it is, -1 for all others. A policy that is only declared
/// is refused with the name of its header.
template <class Policy> inline constexpr int declared_name = -1;

/// Index of the first clause that does not hold; -1 if all hold.
constexpr int first_broken(std::initializer_list<bool> clauses) noexcept {
    int index = 0;
    for (bool const holds : clauses) {
        if (!holds) return index;
        ++index;
    }
    return -1;
}

/// `Check::value`, asked so that a failed static_assert in `Check` is the only thing that a compiler says
/// (clang takes the whole class for invalid then, and the requirement for unmet).
template <class Check>
concept holds = requires {
    requires Check::value;
};

/// The list of what a policy needs from the rest of the pack: `using needs = herring::needs<need::ordered>;`.
///
/// A need is any type with `template <class Pack> struct check`, which has `value` and asserts it with its
/// own sentence; `Pack` is `policies<...>` below. What policies *provide* are their plain constants
/// (`device_memory`, `keeps_order`, ...): a need reads those. The built-in ones are in `herring::need`.
template <class... Needs> struct needs {};

/// Stands in for a pack that was refused: the sentence has been printed, nothing else shall complain.
template <class Element> struct rejected { using element = Element; };

template <class Pack> class basic_reducer;

/// The canonical pack: one policy an axis, always in this order, whatever order the user wrote.
template <class Element, class Transport, class IntraNode, class Sharding, class Placement, class Fusion,
          class Sync, class Update, class Wire, class Progress, class Waiting, class Trace>
struct policies {
    using element = Element;
    using transport = Transport;
    using intra_node = IntraNode;
    using sharding = Sharding;
    using placement = Placement;
    using fusion = Fusion;
    using sync = Sync;
    using update = Update;
    using wire = Wire;
    using progress = Progress;
    using waiting = Waiting;
    using trace = Trace;
};

namespace detail {

enum class slip {
    none,
    missing_transport,
    not_a_policy,
    unknown_axis,
    decorated,
    element,
    element_left_out,
    element_unfit,
    no_default,
    incomplete,
    header_left_out,
    polymorphic,
    nameless
};

template <class Policy>
concept complete = requires {
    sizeof(Policy);
};
template <class Policy>
concept with_axis = requires {
    typename Policy::axis;
};
constexpr bool says_nothing(char const* name) noexcept { return name == nullptr || *name == 0; }
template <class Policy>
concept nameless = requires {
    requires detail::says_nothing(Policy::name);
};
template <class Axis>
concept with_default = requires {
    typename default_policy<Axis>::type;
};

template <class Axis, class... Axes> constexpr int index_of() noexcept {
    int index = 0;
    bool const found = ((std::is_same_v<Axis, Axes> || (++index, false)) || ...);
    return found ? index : -1;
}
template <class Axis>
inline constexpr int axis_index =
    index_of<Axis, axes::transport, axes::intra_node, axes::sharding, axes::placement, axes::fusion,
             axes::sync, axes::update, axes::wire, axes::progress, axes::waiting, axes::trace>();

// What is wrong with one policy, seen alone.
template <class Policy> constexpr slip slip_of_policy() noexcept {
    if constexpr (!std::is_same_v<Policy, std::remove_cvref_t<std::remove_pointer_t<Policy>>>)
        return slip::decorated;
    else if constexpr (std::is_class_v<Policy> && !complete<Policy>)
        return declared_name<Policy> < 0 ? slip::incomplete : slip::header_left_out;
    else if constexpr (!with_axis<Policy>)
        return slip::not_a_policy;
    else if constexpr (axis_index<typename Policy::axis> < 0)
        return slip::unknown_axis;
    else if constexpr (std::is_polymorphic_v<Policy>)
        return slip::polymorphic;
    else if constexpr (nameless<Policy>)
        return slip::nameless;
    else
        return slip::none;
}

// What is moved byte by byte, and into chunks of at least 4 KiB: cuts at cache lines need lcm(64, size) bytes.
template <class Element>
concept fit_element =
    std::is_trivially_copyable_v<Element> && std::is_default_constructible_v<Element> &&
    !std::is_polymorphic_v<Element> &&
    !std::is_pointer_v<Element> && !std::is_member_pointer_v<Element> && !std::is_null_pointer_v<Element> &&
    !std::is_same_v<Element, bool> && !std::is_array_v<Element> && alignof(Element) <= 64 &&
    (sizeof(Element) <= 64 || (sizeof(Element) <= 256 && sizeof(Element) % 4 == 0));

template <class Element> constexpr slip slip_of_element() noexcept {
    if constexpr (is_element<Element>)
        return fit_element<Element> ? slip::none : slip::element_unfit;
    else if constexpr (with_axis<std::remove_cvref_t<Element>>)
        return slip::element_left_out;
    else
        return slip::element;
}

template <class... Policy> constexpr slip slip_of_policies() noexcept {
    slip first = slip::none;
    (void)(((first = slip_of_policy<Policy>()) != slip::none) || ...);
    return first;
}

// declared_name of the first policy whose header is left out. Only for packs with that slip.
template <class... Policy> constexpr int name_without_header() noexcept {
    int name = -1;
    (void)((slip_of_policy<Policy>() == slip::header_left_out && (name = declared_name<Policy>, true)) ||
           ...);
    return name;
}

// Index of the first axis that two policies name; -1 if none. Only for packs of sound policies.
template <class... Policy> constexpr int doubled_axis() noexcept {
    bool seen[11] = {};
    int doubled = -1;
    [[maybe_unused]] auto const visit = [&](int axis) { // unused by an empty pack
        if (seen[axis] && doubled < 0) doubled = axis;
        seen[axis] = true;
    };
    (visit(axis_index<typename Policy::axis>), ...);
    return doubled;
}

// A set of policies that is looked up by overload resolution: policy, else default.
template <class Axis, class Policy> struct slot { using type = Policy; };
template <class... Policy> struct given : slot<typename Policy::axis, Policy>... {};
template <class Axis, class Policy> slot<Axis, Policy> look_up(slot<Axis, Policy> const*);
template <class Axis> default_policy<Axis> look_up(void const*);
template <class Axis, class Given>
using policy_for = typename decltype(detail::look_up<Axis>(static_cast<Given const*>(nullptr)))::type;

template <class... Policy> constexpr slip slip_of_defaults() noexcept {
    auto const named = [](auto tag) {
        using axis = typename decltype(tag)::type;
        if constexpr ((std::is_same_v<axis, typename Policy::axis> || ...))
            return true;
        else
            return with_default<axis>;
    };
    auto const fine = [&](auto... tags) { return (named(tags) && ...); };
    if (!(std::is_same_v<typename Policy::axis, axes::transport> || ...)) return slip::missing_transport;
    using std::type_identity;
    return fine(type_identity<axes::intra_node>(), type_identity<axes::sharding>(),
                type_identity<axes::placement>(), type_identity<axes::fusion>(), type_identity<axes::sync>(),
                type_identity<axes::update>(), type_identity<axes::wire>(), type_identity<axes::progress>(),
                type_identity<axes::waiting>(), type_identity<axes::trace>())
               ? slip::none
               : slip::no_default;
}

// The first slip of a pack; `axis` is the doubled one, if that is the slip.
struct verdict {
    slip what = slip::none;
    int doubled = -1;
    constexpr bool sound() const noexcept { return what == slip::none && doubled < 0; }
};

// Stands for the element type where policies are judged outside a pack.
struct no_pack {};

template <class Element, class... Policy> constexpr verdict judge() noexcept {
    if constexpr (!std::is_same_v<Element, no_pack> && slip_of_element<Element>() != slip::none)
        return {slip_of_element<Element>(), -1};
    else if constexpr (std::is_same_v<Element, no_pack> || slip_of_policies<Policy...>() != slip::none)
        return {slip_of_policies<Policy...>(), -1};
    else if constexpr (doubled_axis<Policy...>() >= 0)
        return {slip::none, doubled_axis<Policy...>()};
    else
        return {slip_of_defaults<Policy...>(), -1};
}

// Both stop at the first that does not hold. Plain recursion, because what a compiler prints around a
// sentence names every template on the way: a conjunction over a pack prints pages.
template <class Policy, class... Rest> constexpr bool models() noexcept {
    if constexpr (!holds<check<typename Policy::axis, Policy>>)
        return false;
    else if constexpr (sizeof...(Rest) > 0)
        return models<Rest...>();
    else
        return true;
}
template <class Pack> constexpr bool met(needs<>) noexcept { return true; }
template <class Pack, class Need, class... Rest> constexpr bool met(needs<Need, Rest...>) noexcept {
    if constexpr (!holds<typename Need::template check<Pack>>)
        return false;
    else
        return detail::met<Pack>(needs<Rest...>());
}
template <class Pack> constexpr bool fits() noexcept { return true; }
template <class Pack, class Policy, class... Rest> constexpr bool fits() noexcept {
    if constexpr (requires { typename Policy::needs; }) {
        if constexpr (!detail::met<Pack>(typename Policy::needs()))
            return false;
        else
            return detail::fits<Pack, Rest...>();
    } else {
        return detail::fits<Pack, Rest...>();
    }
}

} // namespace detail

/// Needs that policies of Herring have, ready for yours.
namespace need {

/// The update rule takes the element type: its `supports<Element>` is true. Every pack has this need.
struct update_for_element {
    template <class Pack> struct check {
        static constexpr bool silent = !requires { Pack::update::template supports<typename Pack::element>; };
        static constexpr bool value = silent || requires {
            requires bool(Pack::update::template supports<typename Pack::element>);
        };
        static_assert(value,
                      "[HRG-M01] update: this rule does not take the element type; a common slip is a "
                      "reducer of integers with the default herring::update::average, which divides; "
                      "name herring::update::sum, min or max, or reduce a floating-point type; a struct "
                      "of your own needs the operator that the rule is made of, + or <");
    };
};

/// Ranks of a node are combined before nodes are, which a rule has to allow: one that says `associative = false` is
/// folded rank by rank. Every pack has this need.
struct associative_where_ranks_join {
    template <class Pack> struct check {
        static constexpr bool joined = requires { requires bool(Pack::intra_node::joins_ranks); };
        static constexpr bool refuses = requires { requires !bool(Pack::update::associative); };
        static constexpr bool value = !joined || !refuses;
        static_assert(
            value, "[HRG-M06] update: this rule is not associative (its associative is false), and the "
                   "intra_node policy combines the ranks of a node before the nodes; a common slip is to add "
                   "shared_memory to a pack that did without; name herring::intra_node::none, which folds "
                   "rank by rank");
    };
};

/// Devices know the built-in element types; one of the user's lies on the host. Every pack has this need.
struct elements_of_devices {
    template <class Pack> struct check {
        static constexpr bool on_device = requires { requires bool(Pack::intra_node::device_memory); };
        static constexpr bool known = requires {
            requires bool(element<typename Pack::element>::in_vectors);
        };
        static constexpr bool value = !on_device || known;
        static_assert(
            value,
            "[HRG-M08] intra_node: its tensors lie on devices, which take numbers only, and the element "
            "is a type of your own; a common slip is to add pcie_staging to a pack that did without; "
            "name herring::intra_node::shared_memory, or reduce plain numbers");
    };
};

/// A rule that lifts contributions is summed by the host: kernels of devices do not lift. Every pack has this need.
struct lifted_by_the_host {
    template <class Pack> struct check {
        static constexpr bool on_device = requires { requires bool(Pack::intra_node::sums_on_device); };
        static constexpr bool lifts = requires(float contribution) { Pack::update::lift(contribution); };
        static constexpr bool value = !on_device || !lifts;
        static_assert(
            value, "[HRG-M07] update: this rule has a lift, and the intra_node policy sums on devices, whose "
                   "kernels do not lift; a common slip is a sum of squares with nvlink; name "
                   "herring::intra_node::pcie_staging, or lift the tensors before they are made ready");
    };
};

/// The transport reaches the memory in which the intra_node policy keeps tensors, or that policy stages it
/// through the host (`host_staging`). Every pack has this need.
struct reachable_memory {
    template <class Pack> struct check {
        static constexpr bool on_device = requires { requires bool(Pack::intra_node::device_memory); };
        static constexpr bool staged = requires { requires bool(Pack::intra_node::host_staging); };
        static constexpr bool reached = requires { requires bool(Pack::transport::device_memory); };
        static constexpr bool value = !on_device || staged || reached;
        static_assert(value,
                      "[HRG-M02] intra_node: its tensors stay on a device, and this transport reaches host "
                      "memory only (its device_memory is false); a common slip is nvlink over TCP; name "
                      "herring::intra_node::pcie_staging, or a transport that has device_memory");
    };
};

/// The wire format can carry the element type. Every pack has this need.
struct wire_for_element {
    template <class Pack> struct check {
        static constexpr bool value = requires {
            typename Pack::wire::template type<typename Pack::element>;
        };
        static_assert(value,
                      "[HRG-M03] wire: this format cannot carry the element type; a common slip is a 16-bit "
                      "float format with integers; name herring::wire::same, or reduce a type that the "
                      "format takes");
    };
};

/// The transport delivers messages of one peer in the order in which they were sent.
struct ordered {
    template <class Pack> struct check {
        static constexpr bool value = requires { requires bool(Pack::transport::keeps_order); };
        static_assert(
            value, "[HRG-M04] transport: a policy of this pack needs messages in order, and this transport "
                   "does not keep it (its keeps_order is false); a common slip is EFA, whose SRD reorders; "
                   "name an ordered transport, or a policy that addresses by tag");
    };
};

} // namespace need

namespace detail {

using needs_of_every_pack =
    needs<need::update_for_element, need::wire_for_element, need::reachable_memory,
          need::associative_where_ranks_join, need::lifted_by_the_host, need::elements_of_devices>;

// What stands in for a refused pack has the user's element type where spans of it can be, so that the code around it
// compiles.
template <class Element>
concept lies_in_spans =
    std::is_object_v<Element> && complete<Element> && !std::is_abstract_v<Element> && !with_axis<Element>;
template <bool Sound, class Element, class... Policy> struct build {
    using plain = std::remove_cvref_t<Element>;
    using type = rejected<std::conditional_t<lies_in_spans<plain>, plain, float>>;
};
template <class Element, class... Policy> struct build<true, Element, Policy...> {
    using by_axis = given<Policy...>;
    using pack = policies<Element, policy_for<axes::transport, by_axis>,
                          policy_for<axes::intra_node, by_axis>, policy_for<axes::sharding, by_axis>,
                          policy_for<axes::placement, by_axis>, policy_for<axes::fusion, by_axis>,
                          policy_for<axes::sync, by_axis>, policy_for<axes::update, by_axis>,
                          policy_for<axes::wire, by_axis>, policy_for<axes::progress, by_axis>,
                          policy_for<axes::waiting, by_axis>, policy_for<axes::trace, by_axis>>;
    static constexpr bool fit = [] {
        if constexpr (!detail::met<pack>(needs_of_every_pack()))
            return false;
        else
            return detail::fits<pack, Policy...>();
    }();
    using type = std::conditional_t<fit, pack, typename build<false, Element>::type>;
};

// The sentences for the pack itself.
template <class Element, class... Policy> struct slips {
    static constexpr verdict found = judge<Element, Policy...>();
    static constexpr slip what = found.what;
    static constexpr bool value = found.sound();
    static constexpr int name = what == slip::header_left_out ? detail::name_without_header<Policy...>() : -1;

    static_assert(
        what != slip::missing_transport,
        "[HRG-P01] transport: none is named, and it has no default; a common slip is to rely on one; add "
        "herring::transport::tcp, or herring::transport::inproc for threads of one process");
#define HERRING_ONCE(index, axis)                                                                            \
    static_assert(found.doubled != (index),                                                                  \
                  "[HRG-P02] " axis ": named twice, and an axis takes one policy; a "                        \
                  "common slip is to add a policy beside the one that it replaces; "                         \
                  "keep one of the two")
    HERRING_ONCE(0, "transport");
    HERRING_ONCE(1, "intra_node");
    HERRING_ONCE(2, "sharding");
    HERRING_ONCE(3, "placement");
    HERRING_ONCE(4, "fusion");
    HERRING_ONCE(5, "sync");
    HERRING_ONCE(6, "update");
    HERRING_ONCE(7, "wire");
    HERRING_ONCE(8, "progress");
    HERRING_ONCE(9, "waiting");
    HERRING_ONCE(10, "trace");
#undef HERRING_ONCE
    static_assert(what != slip::not_a_policy,
                  "[HRG-P03] policy: this type is none, for it names no axis; a common slip is to leave out "
                  "'using axis = herring::axes::<axis>;' or 'public:'; add it to your type");
    static_assert(what != slip::unknown_axis,
                  "[HRG-P04] policy: the axis that this type names does not exist; a common slip is a tag of "
                  "one's own; 'axis' must be one of the types in namespace herring::axes");
    static_assert(
        what != slip::decorated,
        "[HRG-P05] policy: this type is a pointer, a reference, or const; a common slip is "
        "'decltype((x))' or 'decltype(x)' of a const; give the plain type, as in 'std::remove_cvref_t<...>'");
    static_assert(
        what != slip::element,
        "[HRG-P06] element: tensors of this type cannot be reduced; float, double, herring::float16, "
        "herring::bfloat16 and integers of 32 and 64 bits can; a common slip is bool, char, short or const; "
        "reduce one of these, or say is_element of a struct of your own");
    static_assert(what != slip::element_unfit,
                  "[HRG-P14] element: a type of your own has to be trivially copyable and default "
                  "constructible, of at most 256 "
                  "bytes (above 64 a multiple of 4) and an alignment of at most 64, and neither bool, array "
                  "nor pointer; a common "
                  "slip is a std::string or std::vector in it; keep plain numbers");
    static_assert(
        what != slip::element_left_out,
        "[HRG-P07] element: a policy stands where the element type belongs; a common slip is to leave it "
        "out; write it first, as in herring::reducer<float, ...>");
    static_assert(
        what != slip::no_default,
        "[HRG-P08] policy: an axis is left out whose default is not known here; a common slip is to include "
        "herring/policy.hpp alone; include <herring/reducer.hpp>");
    static_assert(what != slip::incomplete,
                  "[HRG-P09] policy: this type is declared, but not defined here; a common slip is to forget "
                  "its header; include herring/<axis>/<model>.hpp, or define your type above the reducer");
    static_assert(
        what != slip::polymorphic,
        "[HRG-P10] policy: this type has virtual functions, and nothing that moves bytes is "
        "virtual; a common slip is a common base with a virtual destructor; make it a template or remove "
        "'virtual'");
    static_assert(
        what != slip::nameless,
        "[HRG-P13] policy: its name is empty, or nullptr; a common slip is to fill it in later; ranks "
        "compare names and errors print them: give it the name of your type");
#define HERRING_HEADER(index, policy, header)                                                                \
    static_assert(name != (index),                                                                           \
                  "[HRG-P11] policy: herring::" policy " is declared, but not defined here; a "              \
                  "common slip is to forget its header; include <herring/" header ">")
    HERRING_HEADER(0, "transport::tcp", "transport/tcp.hpp");
    HERRING_HEADER(1, "transport::inproc", "transport/inproc.hpp");
    HERRING_HEADER(2, "transport::ofi", "transport/ofi.hpp");
    HERRING_HEADER(3, "intra_node::shared_memory", "intra_node/shared_memory.hpp");
    HERRING_HEADER(4, "intra_node::pcie_staging", "intra_node/pcie_staging.cuh");
    HERRING_HEADER(5, "intra_node::nvlink", "intra_node/nvlink.cuh");
#undef HERRING_HEADER
};

// The sentence for a policy alone whose axis has said nothing here.
template <class Policy> struct with_axis_header {
    static constexpr bool value = !requires {
        typename check<typename Policy::axis, Policy>::axis_header_left_out;
    };
    static_assert(value,
                  "[HRG-P12] policy: what its axis asks for is not known here; a common slip is to include "
                  "herring/policy.hpp alone; include herring/<axis>/<axis>.hpp, or <herring/herring.hpp>");
};

template <class Policy> constexpr bool judge_alone() noexcept {
    if constexpr (holds<slips<no_pack, Policy>>)
        if constexpr (holds<with_axis_header<Policy>>) (void)holds<check<typename Policy::axis, Policy>>;
    return true; // what is wrong has been said
}

} // namespace detail

/// For whoever writes a policy, behind its definition: `static_assert(herring::checked_policy<mine>);`. The compiler says
/// there what it would say at a reducer: the one sentence for what `mine` lacks, `[HRG-Pnn]` or `[HRG-<axis>nn]`.
///
/// Result: true, also when a sentence was printed, so that it is the only error. To ask a question, as in a `requires`, take
///         the concept of the axis, `herring::<axis>_policy<mine>`, which prints no sentence.
/// Traps:  what a policy needs from the rest of a pack (its `needs`) is checked at the reducer.
template <class Policy> inline constexpr bool checked_policy = detail::judge_alone<Policy>();

/// Maps an element type and policies in any order to `policies<...>`, with the defaults filled in.
///
/// Errors:  one static_assert sentence, `[HRG-Pnn]` for the pack itself, `[HRG-<axis>nn]` for a policy that
///          breaks a clause of its axis, `[HRG-Mnn]` for policies that do not fit together; then the type is
///          `rejected<Element>`. `docs/errors.md` has each with cause and fix.
/// Traps:   not caught here, because the language stops earlier: a value where a type belongs (`25_MiB`), a
///          template without its arguments (`balanced_buffer`), a bare brace list as a value
///          (clang refuses `adaptive_with<{...}>`; write `adaptive_with<adaptive_tuning{.spin_ns = 5000}>`).
template <class Element, class... Policy> struct resolve {
    static constexpr bool sound = [] {
        if constexpr (!holds<detail::slips<Element, Policy...>>)
            return false;
        else
            return detail::models<Policy...>();
    }();
    using type = typename detail::build<sound, Element, Policy...>::type;
};

template <class Element, class... Policy> using resolve_t = typename resolve<Element, Policy...>::type;

namespace detail {

// The compiler's spelling of a type, e.g. "my_models::fast_tcp".
template <class Spelled> constexpr std::string_view spelling() noexcept {
    std::string_view const all = __PRETTY_FUNCTION__;
    std::string_view const mark = "Spelled = ";
    std::size_t const from = all.find(mark) + mark.size();
    std::size_t const semicolon = all.find(';', from);
    return all.substr(from, (semicolon < all.size() ? semicolon : all.rfind(']')) - from);
}

} // namespace detail

/// What a policy is called in messages: its `static constexpr` member `name`, else as the compiler spells it.
///
/// A policy with values in its type leaves `name` out or writes the values into it: ranks compare names.
template <class Policy> constexpr std::string_view policy_name() noexcept {
    if constexpr (requires { std::string_view(Policy::name); })
        return Policy::name;
    else
        return detail::spelling<Policy>();
}

/// What is said of a policy where ranks compare theirs.
struct policy_fact {
    std::string_view axis, name;
    bool must_agree = false;
};

/// `all`: those of a canonical pack, in its order.
template <class Pack> struct policy_facts;
template <class Element, class... Policy> struct policy_facts<policies<Element, Policy...>> {
    static constexpr policy_fact all[sizeof...(Policy)] = {
        {Policy::axis::name, policy_name<Policy>(), Policy::axis::must_agree}...};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_HPP
