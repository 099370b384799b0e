// herring: what a test program over libfabric asks of it before it forks ranks, so that each of them costs less.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_LIBFABRIC_HPP
#define HERRING_TESTS_LIBFABRIC_HPP

#include <cstdlib>

#include <rdma/fabric.h>

namespace herring::tests {

/// The first question of a process has libfabric before 1.19 read all names of the kernel, 0.1 s (verbs provider): forked ranks
/// have the answer of their parent. In the short run a connection gets 32 of its receive buffers, not 128: half of what a rank
/// costs is clearing those.
inline bool const libfabric_was_asked = [] {
#ifdef HERRING_TESTS_QUICK
    ::setenv("FI_OFI_RXM_MSG_RX_SIZE", "32", 0);
    ::setenv("FI_OFI_RXM_MSG_TX_SIZE", "32", 0);
#endif
    ::fi_info* found = nullptr;
    if (::fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found) == 0) ::fi_freeinfo(found);
    return true;
}();

} // namespace herring::tests

#endif // HERRING_TESTS_LIBFABRIC_HPP
