// herring: must not compile: the mutual information of a mean of logits.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = herring::combine::mean<herring::space::logit>;
#else
using own = herring::combine::mean<herring::space::probability>;
#endif

inline constexpr bool mine = herring::holds<herring::detail::ensembles::rows_fit<
    float, own, herring::wire::as_is, herring::outputs::of<herring::outputs::mutual_information>>>;
