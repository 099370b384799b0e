// herring: must not compile: entropies with weights that need not sum to 1.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = herring::combine::mean<herring::space::probability, herring::weighting::as_given>;
#else
using own = herring::combine::mean<herring::space::probability, herring::weighting::renormalised>;
#endif

inline constexpr bool mine = herring::holds<herring::detail::ensembles::rows_fit<
    float, own, herring::wire::as_is, herring::outputs::of<herring::outputs::mean_entropy>>>;
