// herring: ranks with sealed transports that fork: a child can seal nothing with the keys that it has a copy of.
// SPDX-License-Identifier: Apache-2.0
#include "fork_scene.hpp"

#include "herring/join/sealed.hpp"
#include "herring/transport/sealed.hpp"

using namespace fault;

namespace fork_sealed_test {

TEST_CASE("fork: with sealed connections a child is refused, and ranks go on") {
    setup s{.how = start::join, .ranks = 3, .name = "a child of each rank but one"};
    s.join.secret = std::string(64, 'd');
    s.join.control = herring::sealed_control();
    using sealed = herring::reducer<float, herring::transport::sealed<herring::transport::tcp>,
                                    herring::update::sum, herring::fusion::per_tensor>;
    report const seen = play(s, [](world& w, board&) { fork_in_a_loop<sealed>(w); });
    INFO(seen.text());
    for (auto const& one : seen.ranks) CHECK(one.how == state::done);
}

} // namespace fork_sealed_test
