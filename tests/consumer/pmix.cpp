// herring: a program of somebody else's that joins by PMIx; nobody has launched it, so it is told.
// SPDX-License-Identifier: Apache-2.0
#include <herring/join/pmix.hpp>
#include <herring/version.hpp>

#include <cstdio>

int main() {
    try {
        herring::join_pmix();
    } catch (herring::error const& why) {
        bool const expected = why.code() == herring::errc::unreachable;
        std::printf("herring %s: %s\n", herring::version_string, expected ? "no PMIx server" : why.what());
    }
}
