// herring: the update policy `product`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_UPDATE_PRODUCT_HPP
#define HERRING_UPDATE_PRODUCT_HPP

#include "herring/update/update.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE::update {

/// Multiplies the contributions, in rank order.
///
/// Shape:   ((x0 * x1) * x2) * ... per element, in the accumulator's type.
/// Errors:  none: integers wrap, modulo 2^32 or 2^64, and that is defined. Floats become infinite, or zero.
struct product {
    using axis = axes::update;
    static constexpr char const* name = "product";
    static constexpr update_facts facts{.takes_vectors = true, .with_finish = true};
    template <class Element> static constexpr bool supports = multiplied<Element>;

    template <class Acc> HERRING_HOST_DEVICE static constexpr Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_integral_v<Acc>) {
            using bits = std::make_unsigned_t<Acc>;
            return static_cast<Acc>(static_cast<bits>(a) * static_cast<bits>(b));
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

} // namespace HERRING_NAMESPACE::update

#endif // HERRING_UPDATE_PRODUCT_HPP
