// herring: must not compile: the variance of votes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = herring::outputs::of<herring::outputs::variance>;
#else
using own = herring::outputs::of<herring::outputs::disagreement>;
#endif

inline constexpr bool mine = herring::holds<
    herring::detail::ensembles::rows_fit<float, herring::combine::vote<>, herring::wire::as_is, own>>;
