// herring: tests of herring.hpp: one include has the core, and reaches no library.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#if defined(BOOST_ASIO_VERSION) || defined(CUDART_VERSION) || defined(MPI_VERSION) ||                        \
    defined(FI_MAJOR_VERSION)
#error "the host core must reach no Asio, CUDA, MPI or libfabric"
#endif

#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("herring: the order of policies does not matter, and defaults are what they are said to be") {
    using namespace herring;
    using a = reducer<float, transport::inproc, update::sum>;
    using b = reducer<float, update::sum, transport::inproc>;
    CHECK(std::is_same_v<a, b>);
    using spelt =
        reducer<float, waiting::adaptive, trace::off, transport::inproc, intra_node::none, sharding::balanced,
                placement::colocated, fusion::balanced_buffer<>, update::unnamed_average, progress::caller>;
    CHECK(std::is_same_v<spelt, reducer<float, transport::inproc>>);
}

TEST_CASE("herring: a world of one reduces") {
    herring::world alone;
    herring::reducer<float, herring::transport::inproc> reduce{alone, {{"t", 3}}};
    reduce.tensor(0)[1] = 5;
    reduce.ready(0);
    reduce.wait();
    CHECK(reduce.tensor(0)[1] == 5);
}
