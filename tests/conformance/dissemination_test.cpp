// herring: tiny buckets that are forwarded from node to node, over every transport; the other collectives beside them.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/dissemination_suite.hpp"

#include "conformance/collectives_suite.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
namespace transport = herring::transport;
using herring::fusion::per_tensor;
using shared = herring::intra_node::shared_memory;
using sum = herring::update::sum;

namespace {

using dear_inproc = with_dear_messages<transport::inproc>;
using dear_tcp = with_dear_messages<transport::tcp>;
using rough = transport::chaos<dear_inproc, transport::chaos_tuning{.not_now_per_1000 = 250,
                                                                    .delay_per_1000 = 500,
                                                                    .hold_back_per_1000 = 400,
                                                                    .longest = 25}>;
template <class Transport> using reducing = herring::reducer<float, Transport, shared, sum, per_tensor>;
settings const processes{.start = ranks_as::processes};

/// No bucket takes one hop.
struct without_one_hop : dear_inproc {
    using dear_inproc::dear_inproc;
    static constexpr char const* name = "without_one_hop";
    static constexpr herring::transport_facts facts = with_tuning(dear_inproc::facts, [] {
        herring::exchange_tuning tuning = disseminating;
        tuning.one_hop_bytes = 0;
        return tuning;
    }());
};
/// Its largest message carries the parts of two nodes, of 2 KiB each.
struct with_small_messages : dear_inproc {
    using dear_inproc::dear_inproc;
    static constexpr char const* name = "with_small_messages";
    static constexpr herring::transport_facts facts = [] {
        herring::transport_facts facts = dear_inproc::facts;
        facts.max_message = 8192;
        facts.envelope_bytes = 0;
        return facts;
    }();
    bool post_send(herring::peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return from.size() <= facts.max_message && dear_inproc::post_send(to, tag, from, token);
    }
};

} // namespace

TEST_CASE("dissemination: over inproc") { CHECK(text(dissemination_suite<reducing<dear_inproc>>()) == ""); }

TEST_CASE("dissemination: between processes, over sockets") {
    CHECK(text(dissemination_suite<reducing<dear_tcp>>(processes)) == "");
}

TEST_CASE("dissemination: messages in any order, refused and late") {
    CHECK(text(dissemination_suite<reducing<rough>>()) == "");
}

TEST_CASE("dissemination: a transport of small messages takes it for smaller buckets") {
    for (int const nodes : {4, 8})
        CHECK(text(run_case(std::to_string(nodes) + " nodes", nodes, even_nodes(nodes, 1), {}, [](stage& on) {
                  std::vector<std::size_t> const sizes{200, 512, 513, 1024};
                  std::size_t const most = on.size() == 4 ? 1024 : 512;
                  reducing<with_small_messages> reduce(on.ranks, herring::layout::of(sizes));
                  for (std::size_t i = 0; i < sizes.size(); ++i) {
                      on.expect((reduce.plan().buckets[i].path == herring::route::dissemination) ==
                                    (sizes[i] <= most),
                                "bucket " + std::to_string(i) + " takes " +
                                    to_string(reduce.plan().buckets[i].path));
                      detail::fill(reduce.tensor(i), on.rank(), i);
                      reduce.ready(i);
                  }
                  reduce.wait();
                  for (std::size_t i = 0; i < sizes.size(); ++i)
                      detail::expect_fold(on, reduce.tensor(i), i, "tensor " + std::to_string(i));
              })) == "");
}

TEST_CASE("dissemination: the other collectives beside it") {
    for (int const local : {1, 2}) {
        if (local == 1 && (HERRING_TEST_ASAN || HERRING_TEST_TSAN)) continue; // two take every path of one
        CHECK(text(run_case("one hop", 4 * local, even_nodes(4, local), {},
                            all_collectives<herring::reducer<float, dear_inproc, shared, sum>>)) == "");
        CHECK(text(run_case("no one hop", 4 * local, even_nodes(4, local), {},
                            all_collectives<herring::reducer<float, without_one_hop, shared, sum>>)) == "");
    }
}

TEST_CASE("dissemination: a link that is cut ends all ranks, and one of its ends is named") {
    using cuts = transport::chaos<dear_inproc, transport::chaos_tuning{.cut = {0, 2}, .after = 40}>;
    for (int const nodes : {4, 5})
        CHECK(text(run_case("a cut link", nodes, even_nodes(nodes, 1), {}, [](stage& on) {
                  reducing<cuts> reduce(on.ranks, herring::layout::of(std::vector<std::size_t>{3, 1000}));
                  herring::status ended;
                  try {
                      for (int step = 0; step < 10'000 && ended.ok(); ++step) {
                          for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
                          ended = reduce.wait(on.patience());
                      }
                  } catch (herring::error const& thrown) { // by ready
                      ended = herring::status(thrown.why());
                  }
                  herring::failure const why = ended.why();
                  on.expect(why.what == herring::errc::peer_lost && (why.peer == 0 || why.peer == 2),
                            "it ends with: " + why.message());
              })) == "");
}
