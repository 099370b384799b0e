// herring: tests of model/roles.hpp; what make_plan refuses is in plan_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/roles.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring;
using detail::defect_of;

namespace {
roles of(std::vector<int> contributors, std::vector<int> servers, std::vector<int> shares = {}) {
    return {std::move(contributors), std::move(servers), std::move(shares)};
}
std::string wrong(roles const& all, bool dedicated = true) {
    detail::roles_defect const defect = defect_of(all, topology({0, 1, 2, 2}), dedicated);
    if (defect.what == nullptr) return "";
    return (defect.of_servers ? "server " : "contributor ") + std::to_string(defect.node) + " " + defect.what;
}
bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
} // namespace

TEST_CASE("roles: a node's numbers as contributor and as server") {
    roles const all = of({1, 2}, {0, 2});
    CHECK(all.contributor(0) == contributor_id{});
    CHECK(all.contributor(1) == contributor_id{0});
    CHECK(all.contributor(2) == contributor_id{1});
    CHECK(all.server(0) == server_id{0});
    CHECK(all.server(1) == server_id{});
    CHECK(all.server(2) == server_id{1});
    CHECK(all.server(3) == server_id{});
    CHECK(all.node_of(server_id{1}) == 2);
    CHECK(all.node_of(contributor_id{0}) == 1);
    CHECK(all.contributor_count() == 2);
    CHECK(all.server_count() == 2);
    for (int const nodes : {1, 2, 7, 64})
        for (int n = 0; n < nodes; ++n) REQUIRE(roles::both(nodes).contributor(n).value == n);
}

TEST_CASE("roles: ranks that contribute, and the largest of their nodes") {
    topology const map({0, 1, 2, 2, 0, 0});
    CHECK(of({1, 2}, {0}).contributing_ranks(map) == 3);
    CHECK(of({1, 2}, {0}).largest_contributor(map) == 2);
    CHECK(roles::both(3).contributing_ranks(map) == 6);
}

TEST_CASE("roles: shares are equal, or as given") {
    CHECK(of({0}, {0, 1, 2}).share({2}) == 1);
    CHECK(of({0}, {0, 1, 2}).all_shares() == 3);
    CHECK(of({0}, {0, 1, 2}, {5, 1, 4}).share({2}) == 4);
    CHECK(of({0}, {0, 1, 2}, {5, 1, 4}).all_shares() == 10);
}

TEST_CASE("roles: what a placement must not assign") {
    CHECK(wrong(roles::both(3), false) == "");
    CHECK(wrong(of({1, 2}, {0})) == "");
    CHECK(wrong(of({0, 1, 2}, {1})) == "");
    CHECK(says(wrong(of({}, {0, 1, 2})), "names no contributor"));
    CHECK(says(wrong(of({0, 1, 2}, {})), "names no server"));
    CHECK(wrong(of({0, 1, 3}, {2})) == "contributor 3 does not exist");
    CHECK(wrong(of({0, 1, 2}, {-1})) == "server -1 does not exist");
    CHECK(wrong(of({0, 1, 1, 2}, {2})) == "contributor 1 is listed twice");
    CHECK(says(wrong(of({0, 1, 2}, {2, 0})), "server 0 follows a larger number"));
    CHECK(wrong(of({0, 1}, {0})) == "contributor 2 neither contributes nor serves");
    CHECK(says(wrong(of({0, 1, 2}, {0, 1}, {1})), "another number of shares"));
    CHECK(wrong(of({0, 1, 2}, {0, 1}, {1, 0})) == "server 1 has no share");
    CHECK(says(wrong(of({0, 1, 2}, {0, 1}, {1 << 24, 1})), "above 2^24"));
    CHECK(says(wrong(of({0, 1, 2}, {1}), false), "0 has one role only"));
    CHECK(says(wrong(of({1, 2}, {0, 1, 2}), false), "0 has one role only"));
}

TEST_CASE("roles: in a constant expression") {
    constexpr bool fine = [] {
        roles const all = roles::both(3);
        return all.server(2) == server_id{2} && all.all_shares() == 3 &&
               defect_of(all, topology::uniform(3, 2), false).what == nullptr;
    }();
    static_assert(fine);
}
