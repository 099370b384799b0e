// herring: tests of machine/address.hpp: addresses that come from another process.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/address.hpp"

#include "doctest/doctest.h"

#include "herring/machine/name_lookup.hpp"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

using herring::detail::endpoint;

TEST_CASE("address: what is written is read") {
    for (char const* const host : {"127.0.0.1", "::1"}) {
        std::string why;
        auto const found =
            herring::detail::resolve(host, 4711, herring::clock::now() + std::chrono::seconds(5), why);
        if (found.empty()) continue; // no IPv6 here
        endpoint there;
        REQUIRE(there.read(found[0].bytes()));
        CHECK(there.text() == found[0].text());
        CHECK(there.port() == 4711);
        CHECK(there.size == found[0].size);
    }
}

TEST_CASE("address: bytes that are no address are not taken, whatever their length") {
    for (std::size_t size = 0; size < 300; ++size) {
        std::vector<std::byte> bytes(size, std::byte{0xff});
        CHECK_FALSE(endpoint().read(bytes));
        sa_family_t const family = AF_INET;
        if (size < sizeof family) continue;
        std::memcpy(bytes.data(), &family, sizeof family);
        CHECK(endpoint().read(bytes) == (size == sizeof(sockaddr_in)));
    }
}
