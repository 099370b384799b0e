// herring: every optimizer, over every route: the bits of an all-reduce and every rank's own update; misuse is told.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/optimizer_suite.hpp"

#include "conformance/dissemination_suite.hpp"
#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include <limits>

using namespace herring::conformance;
namespace optimizer = herring::optimizer;
namespace update = herring::update;
using shared = herring::intra_node::shared_memory;
using per_tensor = herring::fusion::per_tensor;

namespace optimizer_conformance {

using threads = with_dear_messages<herring::transport::inproc>;
using sockets = with_dear_messages<herring::transport::tcp>;
using rough = herring::transport::chaos<
    threads, herring::transport::chaos_tuning{
                 .not_now_per_1000 = 250, .delay_per_1000 = 500, .hold_back_per_1000 = 400, .longest = 25}>;

template <class Transport, class Optimizer, class... More>
findings as_own(settings const& how = {}, std::size_t shapes = 10) {
    return optimizer_suite<
        herring::reducer<float, Transport, per_tensor, Optimizer, update::average, More...>,
        herring::reducer<float, Transport, per_tensor, update::average, More...>>(how, shapes);
}

std::size_t const few = 10 / HERRING_TEST_PART;
settings const processes{.start = ranks_as::processes};

} // namespace optimizer_conformance

using namespace optimizer_conformance;

TEST_CASE("optimizer: the bits of a reduction and an own update, by every route") {
    CHECK(text(as_own<threads, optimizer::adamw, shared>({}, few)) == "");
    CHECK(text(as_own<threads, optimizer::adamw>({}, few)) == "");
    CHECK(text(as_own<threads, bounded_signs, shared>({}, few)) == "");
    CHECK(text(as_own<threads, optimizer::momentum, shared, herring::progress::thread>({}, few / 2)) == "");
    CHECK(text(as_own<threads, optimizer::nesterov, shared>({}, few / 2)) == "");
    CHECK(text(as_own<threads, optimizer::sgd, shared>({}, few / 2)) == "");
}

TEST_CASE("optimizer: doubles, sums, whole models in one bucket") {
    CHECK(text(optimizer_suite<herring::reducer<double, threads, optimizer::adamw, shared, update::sum>,
                               herring::reducer<double, threads, shared, update::sum>>({}, few)) == "");
}

TEST_CASE("optimizer: between processes, over sockets and shared memory") {
    CHECK(text(as_own<sockets, optimizer::adamw, shared>(processes, few)) == "");
    CHECK(text(as_own<sockets, optimizer::sgd>(processes, 2)) == "");
}

TEST_CASE("optimizer: messages in any order, refused and late") {
    CHECK(text(as_own<rough, optimizer::adamw, shared>({}, 4)) == "");
}

namespace optimizer_conformance {

using trainer = herring::reducer<float, threads, per_tensor, shared, optimizer::adamw>;
void fill_with_ones(std::size_t, std::span<float> weights) {
    for (float& weight : weights) weight = 1;
}
/// What an error says, of a call that must throw one of this kind.
template <class Call> std::string refused(herring::errc what, Call const& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.code() == what ? why.what() : "another error: " + std::string(why.what());
    }
    return "no error";
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

} // namespace optimizer_conformance

TEST_CASE("optimizer: calls that come too soon, in the middle of a step, or for what is not there") {
    CHECK(text(run_case("misuse", 2, {"a", "a"}, {}, [](auto& on) {
              trainer train(on.ranks, herring::layout{{"a", 10}, {"b", 20}});
              using herring::errc;
              on.expect(has(refused(errc::bad_state, [&] { train.ready(0); }), "start"),
                        "ready before start");
              on.expect(has(refused(errc::bad_state, [&] { (void)train.weights(0); }), "start"),
                        "weights before start");
              on.expect(has(refused(errc::bad_argument, [&] { train.start(2, fill_with_ones); }), "start"),
                        "a root that is not there");
              auto values = train.hyper();
              on.expect(values.rate == 1e-3, "default hyper values");
              values.rate = 0.5;
              train.set(values);
              train.start(1, fill_with_ones);
              on.expect(train.hyper().rate == 0.5, "start keeps the hyper values");
              on.expect(has(refused(errc::bad_argument, [&] { (void)train.weights(2); }), "2"),
                        "weights out of range");
              for (float& one : train.tensor(0)) one = 0;
              for (float& one : train.tensor(1)) one = 0;
              train.ready(1);
              on.expect(has(refused(errc::bad_state, [&] { train.set(values); }), "set"), "set in a step");
              on.expect(has(refused(errc::bad_state, [&] { train.start(0, fill_with_ones); }), "start"),
                        "start in a step");
              train.ready(0);
              train.wait();
              on.expect(train.weights(0)[0] < 1, "the weights have decayed");
              on.ranks.barrier();
          })) == "");
}

TEST_CASE("optimizer: hyper values that differ, another root, and what fill throws end the world") {
    for (auto const& nodes : {std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b", "c"}}) {
        auto const ranks = static_cast<int>(nodes.size());
        CHECK(text(run_case("hyper values", ranks, nodes, {}, [](auto& on) {
                  trainer train(on.ranks, herring::layout{{"a", 10}, {"b", 20'000}});
                  train.start(0, fill_with_ones);
                  auto values = train.hyper();
                  values.decay = on.rank() == 1 ? 0.1 : 0.2;
                  train.set(values);
                  std::string const said =
                      refused(herring::errc::mismatch, [&] { // whoever is told early is told in ready
                          train.ready(0);
                          train.ready(1);
                          train.wait();
                      });
                  on.expect(has(said, "same hyper values"), "hyper values that differ");
                  // Who is told by another rank names the value; who finds it itself, perhaps all at once, says its own.
                  bool const is_told = has(said, "found that this rank differs");
                  on.expect(has(said, is_told ? "hyper::decay is 0."
                                              : " has hyper values 0.001 0.9 0.999 1e-08 0."),
                            said);
              })) == "");
        CHECK(text(run_case("root", ranks, nodes, {}, [](auto& on) {
                  trainer train(on.ranks, herring::layout{{"a", 10}});
                  on.expect(has(refused(herring::errc::mismatch,
                                        [&] { train.start(on.rank() == 1 ? 1 : 0, fill_with_ones); }),
                                "start from rank"),
                            "another root");
              })) == "");
        CHECK(text(run_case("fill", ranks, nodes, {}, [](auto& on) {
                  trainer train(on.ranks, herring::layout{{"a", 10}});
                  try {
                      train.start(0, [](std::size_t, std::span<float>) {
                          throw std::runtime_error("no such checkpoint");
                      });
                      on.find("no error");
                  } catch (std::exception const& why) { // of root its own, of the others that of a peer
                      on.expect(has(why.what(), "no such checkpoint") &&
                                    (on.rank() == 0 || has(why.what(), "start: peer failed (rank 0)")),
                                why.what());
                  }
              })) == "");
    }
}

TEST_CASE(
    "optimizer: a gradient that is not finite ends the world; its tensor is named, and who brought it") {
    using names = std::vector<std::string>;
    for (auto const& nodes : {names{"a", "a", "a"}, names{"a", "a", "b"}, names{"a", "b", "a"}})
        for (std::size_t const at : {std::size_t{3}, std::size_t{19'999}})
            CHECK(text(run_case("not finite", 3, nodes, {}, [&](auto& on) {
                      trainer train(on.ranks, herring::layout{{"first", 17}, {"second", 20'000}});
                      train.start(0, fill_with_ones);
                      for (std::size_t i = 0; i < 2; ++i)
                          for (float& one : train.tensor(i)) one = 1;
                      if (on.rank() == 1) train.tensor(1)[at] = std::numeric_limits<float>::infinity();
                      train.ready(0);
                      train.ready(1);
                      std::string const said = refused(herring::errc::bad_argument, [&] { train.wait(); });
                      on.expect(has(said, "'second'") && has(said, std::to_string(at).c_str()), said);
                      // A node's owner has its ranks' gradients, the others their sum.
                      on.expect(has(said, "from rank 1") ||
                                    (nodes[2] == "b" && has(said, "from the node of rank 0")),
                                said);
                  })) == "");
}

TEST_CASE("optimizer: finite gradients whose sum is not are nobody's fault, and the error says so") {
    CHECK(text(run_case("sum not finite", 3, {"a", "b", "b"}, {}, [](auto& on) {
              trainer train(on.ranks, herring::layout{{"one", 20'000}});
              train.start(0, fill_with_ones);
              for (float& one : train.tensor(0)) one = 3e38f;
              train.ready(0);
              std::string const said = refused(herring::errc::bad_argument, [&] { train.wait(); });
              on.expect(has(said, "as the sum of gradients that are") || has(said, "from the node of rank 1"),
                        said);
          })) == "");
}
