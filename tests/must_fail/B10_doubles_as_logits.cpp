// herring: must not compile: logits of doubles.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = double;
#else
using own = float;
#endif

inline constexpr bool mine = herring::holds<herring::detail::ensembles::rows_fit<
    own, herring::combine::mean<herring::space::probability>, herring::wire::as_is, herring::outputs::of<>>>;
