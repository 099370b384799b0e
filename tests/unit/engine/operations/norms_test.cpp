// herring: tests of engine/operations/norms.hpp: rows come to all, sums to servers, and who adds up otherwise is named.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/operations/norms.hpp"

#include "doctest/doctest.h"
#include "unit/engine/operations/server_of_three.hpp"

#include <array>
#include <cstddef>
#include <limits>
#include <string>

using namespace herring;

namespace {

using numbers = std::array<double, 2>;
std::byte const* bytes_of(numbers const& of) { return reinterpret_cast<std::byte const*>(of.data()); }

/// A number is two elements.
struct server : tests::server_of_three {
    detail::norms_traffic traffic{state};
    operations::norms operation{state, traffic};
    numbers kept{-1, -1};
    execution e{.element_bytes = 4, .own = reinterpret_cast<std::byte*>(kept.data()), .elements = 4};
    chunk const all{.offset = 0, .elements = 4};

    void take(numbers const& a, numbers const& b, numbers const& c) {
        combine(operation, e, all, bytes_of(a), bytes_of(b), bytes_of(c));
    }
};

} // namespace

TEST_CASE("operations::norms: a server takes the sums that all workers have") {
    server here;
    here.take({3, 0.1}, {3, 0.1}, {3, 0.1});
    CHECK(here.kept == numbers{3, 0.1});
    CHECK(here.announced.what == errc::ok);
    constexpr double infinity = std::numeric_limits<double>::infinity(),
                     nan = std::numeric_limits<double>::quiet_NaN();
    here.take({infinity, nan}, {infinity, -nan}, {infinity, nan}); // no numbers of other bits are alike
    CHECK(here.announced.what == errc::ok);
    CHECK(here.kept[0] == infinity);
    CHECK(here.kept[1] != here.kept[1]);
}

TEST_CASE("operations::norms: a worker that has added up other numbers is named") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (numbers const& other :
         {numbers{3, 0.25}, numbers{3, std::numeric_limits<double>::quiet_NaN()}, numbers{infinity, 0.5}}) {
        server here;
        here.take({3, 0.5}, {3, 0.5}, other);
        CHECK(here.announced.what == errc::mismatch);
        CHECK(here.announced.reporter == 1);
        CHECK(here.announced.peer == 3);
        CHECK(std::string(here.announced.text)
                  .find("other norms of the gradients than rank 0, from the same numbers") !=
              std::string::npos);
        CHECK(here.kept == numbers{-1, -1});
    }
}

TEST_CASE("operations::norms: of a row the result has the numbers, of the sums the part") {
    server here;
    chunk const row{.offset = 2, .elements = 2, .owner = 0};
    CHECK(here.traffic.sends(here.e, row, 0, 1).elements == 0);
    CHECK(here.traffic.returns(here.e, row, 0));
    CHECK(here.traffic.result(here.e, row) == reinterpret_cast<std::byte*>(&here.kept[1]));
    CHECK(here.traffic.landing(here.e, row) == reinterpret_cast<std::byte*>(&here.kept[1]));
    here.operation.combine(here.e, row, {}); // it is there
    CHECK(here.kept == numbers{-1, -1});

    range const sent = here.traffic.sends(here.e, here.all, 0, 1);
    CHECK(here.traffic.format(here.e, 0).bytes(sent.elements) == 2 * sizeof(double));
    CHECK(here.traffic.part(here.e, here.all, sent, nullptr) ==
          reinterpret_cast<std::byte*>(here.kept.data()));
    CHECK(!here.traffic.returns(here.e, here.all, 0));
    static_assert(operation<operations::norms>);
}
