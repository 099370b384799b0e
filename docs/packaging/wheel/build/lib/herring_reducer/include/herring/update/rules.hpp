// herring: the update rules sum, average, min, max, product, logical_and and logical_or.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_RULES_HPP
#define HERRING_UPDATE_RULES_HPP

#include "herring/base/config.hpp"
#include "herring/update/update.hpp"

#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE::update {

/// Adds two vectors of integers modulo 2^bits, as `sum` adds scalars. Host only.
template <class Vector> constexpr Vector wrapping_sum(Vector a, Vector b) noexcept {
    typedef std::make_unsigned_t<lane<Vector>> bits __attribute__((vector_size(sizeof(Vector))));
    return Vector(bits(a) + bits(b));
}

/// Adds the contributions in rank order; user-defined elements by their operator+.
///
/// Shape:   ((x0 + x1) + x2) + ... per element, in the accumulator's type.
/// Errors:  none. Integers of n bits wrap modulo 2^n (two's complement, defined), so a total that fits is
///          right whatever the partial sums were; an overflow is not reported. Floats become infinite.
struct sum {
    using axis = axes::update;
    static constexpr char const* name = "sum";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};

    template <class Element> static constexpr bool supports = added<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_integral_v<Acc>) {
            using bits = std::make_unsigned_t<Acc>;
            return static_cast<Acc>(static_cast<bits>(a) + static_cast<bits>(b));
        } else if constexpr (std::is_integral_v<lane<Acc>>) {
            return wrapping_sum(a, b);
        } else {
            return a + b;
        }
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }
};
static_assert(update_policy<sum>);

/// Adds the contributions in rank order and divides the total by the number of ranks, correctly rounded. The
/// default.
///
/// Shape:   (((x0 + x1) + x2) + ...) / ranks per element, in the accumulator's type; floating point only.
/// Cost:    one division an element; where ranks is a power of two, one multiplication, with the same bits.
struct average {
    using axis = axes::update;
    static constexpr char const* name = "average";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};

    template <class Element>
    static constexpr bool supports =
        element_type<Element>&& std::is_floating_point_v<lane<accumulator<Element>>>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return sum::combine(a, b);
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int ranks) noexcept {
        return total / static_cast<lane<Acc>>(ranks);
    }

    /// Multiplies the total by a power of two: exact but for the one rounding that the division would make as
    /// well.
    template <class Number> struct scaled {
        Number factor;
        template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
            return total * factor;
        }
    };
    template <class Number> struct divided {
        Number divisor;
        template <class Acc> HERRING_HOST_DEVICE constexpr Acc operator()(Acc total) const noexcept {
            return total / divisor;
        }
    };

    /// Calls `kernel` with the cheaper of the two, decided once; ranks = 0 leaves the total as it is.
    template <class Number, class Kernel>
    static constexpr void with_finish(int ranks, Kernel&& kernel) noexcept {
        if ((ranks & (ranks - 1)) == 0)
            kernel(scaled<lane<Number>>{lane<Number>(1) / static_cast<lane<Number>>(ranks == 0 ? 1 : ranks)});
        else
            kernel(divided<lane<Number>>{static_cast<lane<Number>>(ranks)});
    }
};

/// The rule of a pack that names none: `average` for tensors that are made ready. `all_reduce` requires a
/// named rule, so that an average does not replace MPI_SUM unnoticed.
struct unnamed_average : average {};

static_assert(update_policy<average> && update_policy<unnamed_average>);
static_assert(update_supports<average, float> && !update_supports<average, std::int32_t>);

/// Keeps the smallest contribution of each element.
///
/// A NaN wins over every number, so that no rank's NaN is lost. Between contributions that compare equal, +0
/// and -0 among them, the lowest rank's stays; so the result does not depend on how contributions were
/// grouped. User-defined elements are compared by their operator<, or by a `least(a, b)` declared beside the
/// type.
struct min {
    using axis = axes::update;
    static constexpr char const* name = "min";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};

    template <class Element> static constexpr bool supports = compared<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_floating_point_v<lane<Acc>>)
            return ((b < a) | (b != b)) ? b : a;
        else if constexpr (requires { least(a, b); })
            return least(a, b);
        else
            return (b < a) ? b : a;
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }
};
static_assert(update_policy<min>);

/// Keeps the largest contribution of each element; NaN and equal contributions as for `min`. User-defined
/// elements are compared by their operator>, or by a `greatest(a, b)` declared beside the type.
struct max {
    using axis = axes::update;
    static constexpr char const* name = "max";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};

    template <class Element> static constexpr bool supports = compared<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_floating_point_v<lane<Acc>>)
            return ((b > a) | (b != b)) ? b : a;
        else if constexpr (requires { greatest(a, b); })
            return greatest(a, b);
        else
            return (b > a) ? b : a;
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }
};
static_assert(update_policy<max>);

/// Multiplies the contributions in rank order.
///
/// Shape:   ((x0 * x1) * x2) * ... per element, in the accumulator's type.
/// Errors:  none. Integers of n bits wrap modulo 2^n, which is defined; floats become infinite, or zero.
struct product {
    using axis = axes::update;
    static constexpr char const* name = "product";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};

    template <class Element> static constexpr bool supports = multiplied<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_integral_v<Acc>) {
            using bits = std::make_unsigned_t<Acc>;
            return static_cast<Acc>(1u * static_cast<bits>(a) * static_cast<bits>(b)); // 16 bits: not as int
        } else if constexpr (std::is_integral_v<lane<Acc>>) {
            return wrapping_product(a, b);
        } else {
            return a * b;
        }
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return total;
    }
    template <class Number, class Kernel> static constexpr void with_finish(int, Kernel&& kernel) noexcept {
        kernel(as_is{});
    }

  private:
    template <class Vector> static constexpr Vector wrapping_product(Vector a, Vector b) noexcept {
        typedef std::make_unsigned_t<lane<Vector>> bits __attribute__((vector_size(sizeof(Vector))));
        return Vector(bits(a) * bits(b));
    }
};
static_assert(update_policy<product>);

/// 1 where no contribution is zero, else 0, as MPI's MPI_LAND.
///
/// Shape:   each element of the result is 0 or 1, in a world of one rank too; integers and bool only.
struct logical_and {
    using axis = axes::update;
    static constexpr char const* name = "logical_and";
    static constexpr update_facts facts{.takes_vectors = true};

    template <class Element>
    static constexpr bool supports = element_type<Element>&& std::is_integral_v<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return ((a != 0) & (b != 0)) ? one<Acc> : Acc{};
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return (total != 0) ? one<Acc> : Acc{};
    }

  private:
    template <class Acc> static constexpr Acc one = static_cast<Acc>(Acc{} + lane<Acc>(1));
};
static_assert(update_policy<logical_and>);
static_assert(update_supports<logical_and, unsigned> && !update_supports<logical_and, float>);

/// 1 where any contribution is not zero, else 0, as MPI's MPI_LOR.
///
/// Shape:   each element of the result is 0 or 1, in a world of one rank too; integers and bool only.
struct logical_or {
    using axis = axes::update;
    static constexpr char const* name = "logical_or";
    static constexpr update_facts facts{.takes_vectors = true};

    template <class Element>
    static constexpr bool supports = element_type<Element>&& std::is_integral_v<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        return ((a != 0) | (b != 0)) ? one<Acc> : Acc{};
    }
    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc finish(Acc total, int) noexcept {
        return (total != 0) ? one<Acc> : Acc{};
    }

  private:
    template <class Acc> static constexpr Acc one = static_cast<Acc>(Acc{} + lane<Acc>(1));
};
static_assert(update_policy<logical_or>);
static_assert(update_supports<logical_or, unsigned> && !update_supports<logical_or, float>);

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_RULES_HPP
