// herring: std::complex as an element type: sums, products and averages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COMPLEX_HPP
#define HERRING_COMPLEX_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/update/update.hpp"

#include <complex>

namespace HERRING_NAMESPACE {

template <> inline constexpr bool is_element<std::complex<float>> = true;
template <> inline constexpr bool is_element<std::complex<double>> = true;

namespace detail {
template <class Real> struct complex_facts : own_element<std::complex<Real>> {
    static constexpr std::complex<Real> canonical(std::complex<Real> const& x) noexcept {
        return {with_one_nan(x.real()), with_one_nan(x.imag())};
    }
};
} // namespace detail

/// `std::complex<float>` and `std::complex<double>`: with update::sum, product and average. Included on its
/// own: who does not need it does not compile `<complex>`.
template <> struct element<std::complex<float>> : detail::complex_facts<float> {};
template <> struct element<std::complex<double>> : detail::complex_facts<double> {};

namespace update {
template <class Real> struct lane_of<std::complex<Real>> { using type = Real; };
} // namespace update

} // namespace HERRING_NAMESPACE

#endif // HERRING_COMPLEX_HPP
