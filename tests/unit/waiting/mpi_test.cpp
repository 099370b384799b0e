// herring: waiting inside an MPI program.
// SPDX-License-Identifier: Apache-2.0
// What it is for, MPI's own messages, is tested with herring/mpi/reduce.hpp.
#include "herring/waiting/mpi.hpp"

#include "doctest/doctest.h"

#include <cstdint>

TEST_CASE("waiting::mpi: pauses, then yields, and never sleeps") {
    using herring::wait_action;
    MPI_Init(nullptr, nullptr);
    herring::waiting::mpi const policy;
    for (std::uint32_t round = 0; round < 20; ++round) {
        CHECK(policy.next(round, 0, false) == wait_action::pause);
        CHECK(policy.next(round, herring::waiting::mpi::spin_ns, false) == wait_action::yield);
        CHECK(policy.next(round, std::int64_t{1} << 60, false) == wait_action::yield);
        CHECK(policy.next(round, 0, true) == wait_action::yield);
    }
    MPI_Finalize();
}
