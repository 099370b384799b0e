// herring: a soak of some seconds; tests/fault/run_soak.sh runs it for as long as wanted. The short run leaves it out.
// SPDX-License-Identifier: Apache-2.0
#include "soak.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"

#include <cstdlib>

TEST_CASE("soak: worlds that are joined, disturbed and ended, one after another") {
    std::fflush(nullptr);
    pid_t const stage = ::fork(); // a network of its own
    if (stage == 0) {
        for (int const number : {SIGTERM, SIGINT, SIGABRT, SIGSEGV}) ::signal(number, SIG_DFL);
        fault::soak::options o;
        o.seconds = 15;
        o.seed = 1;
        if (char const* const other = std::getenv("FAULT_SEED"); other != nullptr)
            o.seed = std::strtoull(other, nullptr, 10);
        o.cores = 2;
        o.longest_life = 1;
        o.longest_outage = 1;
        o.memory = HERRING_TEST_ASAN == 0;
        ::_exit(fault::soak::run(o));
    }
    int raw = 0;
    REQUIRE(::waitpid(stage, &raw, 0) == stage);
    CHECK((WIFEXITED(raw) && WEXITSTATUS(raw) == 0));
}
