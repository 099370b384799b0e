// herring: must not compile: a median of the few elements that travel.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = herring::combine::median<herring::space::probability>;
#else
using own = herring::combine::mean<herring::space::probability>;
#endif

inline constexpr bool mine = herring::holds<
    herring::detail::ensembles::rows_fit<float, own, herring::wire::top_k<64>, herring::outputs::of<>>>;
