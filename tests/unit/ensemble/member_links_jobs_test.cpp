// herring: tests of ensemble/member_links.hpp: each job has a request, a link and a row of its own.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_links.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ensemble_member_jobs_test {

using namespace herring::detail::ensembles;

struct link_double {
    std::uint32_t jobs = 0;
};
using all_jobs = member_jobs<float, link_double>;

TEST_CASE("member jobs: as many as there may be, each counted where it came from") {
    all_jobs jobs(3, 2);
    link_double one, other;
    CHECK(jobs.size() == 2);
    CHECK(jobs.any_free());
    place_index const first = jobs.take({.id = 7, .deadline = 70, .place = 4}, one);
    place_index const second = jobs.take({.id = 8, .deadline = 80, .place = 5}, other);
    CHECK(first != second);
    CHECK(!jobs.any_free());
    CHECK(one.jobs == 1);
    CHECK(other.jobs == 1);
    CHECK(jobs[first].request.id == 7);
    CHECK(jobs[second].request.deadline == 80);
    CHECK(jobs[second].request.place == 5);
    CHECK(&jobs.give(first) == &one);
    CHECK(one.jobs == 0);
    CHECK(jobs.any_free());
    CHECK(jobs[first].from == nullptr);
}

TEST_CASE("member jobs: a slot that is used again begins anew") {
    all_jobs jobs(3, 1);
    link_double one, other;
    place_index const first = jobs.take({.id = 7}, one);
    jobs[first].row = all_jobs::row_state::bad;
    (void)jobs.give(first);
    place_index const again = jobs.take({.id = 8}, other);
    CHECK(again == first);
    CHECK(jobs[again].row == all_jobs::row_state::open);
    CHECK(jobs[again].request.id == 8);
    CHECK(&jobs.give(again) == &other);
    CHECK(one.jobs == 0);
}

TEST_CASE("member jobs: rows of all jobs, and of none, lie beside each other") {
    for (std::size_t const elements : {1u, 3u, 16u, 17u, 1000u}) {
        CAPTURE(elements);
        all_jobs jobs(elements, 4);
        std::vector<std::span<float>> rows;
        for (place_index i = 0; i < 4; ++i) rows.push_back(jobs.row(i));
        rows.push_back(jobs.spare_row());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            CHECK(rows[i].size() == elements);
            std::fill(rows[i].begin(), rows[i].end(), static_cast<float>(i + 1));
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            auto const wrong = std::count_if(rows[i].begin(), rows[i].end(),
                                             [&](float x) { return x != static_cast<float>(i + 1); });
            CHECK(wrong == 0);
            CHECK(reinterpret_cast<std::uintptr_t>(rows[i].data()) % 64 == 0); // no line is two rows'
        }
    }
}

} // namespace ensemble_member_jobs_test
