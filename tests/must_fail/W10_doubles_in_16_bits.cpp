// herring: must not compile: doubles in 16 bits.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#ifndef HERRING_TWIN
using own = herring::wire::bf16;
#else
using own = herring::wire::as_is;
#endif

inline constexpr bool mine =
    herring::holds<herring::detail::ensembles::rows_fit<double, herring::combine::mean<herring::space::value>,
                                                        own, herring::outputs::of<>>>;
