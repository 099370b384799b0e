// herring: tests of progress/progress.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/progress/progress.hpp"

#include "doctest/doctest.h"

namespace {
struct sound {
    using axis = herring::axes::progress;
    static constexpr herring::progress_facts facts{.background = true};
};
struct not_constant {
    using axis = herring::axes::progress;
    [[maybe_unused]] static inline herring::progress_facts facts{.background = true};
};
struct beside_its_facts : sound {
    static constexpr bool background = false;
};
struct a_number {
    using axis = herring::axes::progress;
    static constexpr int facts = 1;
};
} // namespace

TEST_CASE("progress: the concept") {
    CHECK(herring::progress_policy<sound>);
    CHECK_FALSE(herring::progress_policy<not_constant>);
    CHECK_FALSE(herring::progress_policy<beside_its_facts>);
    CHECK_FALSE(herring::progress_policy<a_number>);
}

TEST_CASE("caller: no thread") {
    CHECK_FALSE(herring::progress::caller::facts.background);
    CHECK(std::is_empty_v<herring::progress::caller>);
}

TEST_CASE("thread: a thread") {
    CHECK(herring::progress::thread::facts.background);
    CHECK(std::is_empty_v<herring::progress::thread>);
}
