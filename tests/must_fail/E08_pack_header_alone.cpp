// herring: must not compile: an ensemble's pack where only its header is included.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/pack.hpp"
#ifdef HERRING_TWIN
#include "herring/ensemble.hpp"
#endif

using mine = herring::detail::ensembles::resolve_t<float, herring::combine::mean<herring::space::value>>;

#include "use.hpp"
