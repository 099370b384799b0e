// herring: must not compile: the header of a decorator is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/transport/tcp.hpp"
#ifdef HERRING_TWIN
#include "herring/transport/sealed.hpp"
#endif

using mine = pack<float, herring::transport::sealed<herring::transport::tcp>>;

#include "use.hpp"
