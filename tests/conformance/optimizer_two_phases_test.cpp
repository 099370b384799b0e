// herring: optimizers in two phases, and of gradients of 16 bits, over every route: the bits of an all-reduce and every rank's own
// update, with the norms that the reducer tells.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/optimizer_suite.hpp"

#include "conformance/dissemination_suite.hpp"
#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/lamb.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/on_nonfinite.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include <cmath>
#include <limits>

using namespace herring::conformance;
namespace optimizer = herring::optimizer;
namespace update = herring::update;
using shared = herring::intra_node::shared_memory;

namespace two_phases {

using threads = with_dear_messages<herring::transport::inproc>;
using sockets = with_dear_messages<herring::transport::tcp>;
using rough = herring::transport::chaos<
    threads, herring::transport::chaos_tuning{
                 .not_now_per_1000 = 250, .delay_per_1000 = 500, .hold_back_per_1000 = 400, .longest = 25}>;

/// One of the user's that asks for norms: layer-wise rates (You et al., 2017), without momentum.
struct layer_wise {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "layer_wise";
    static constexpr herring::optimizer_facts facts{.tensor_norms = true};
    struct hyper {
        double rate = 0.1, trust = 0.01;
    };
    template <class Number> struct numbers { Number rate, trust; };
    template <class Number> static numbers<Number> prepare(hyper const& values, std::uint64_t) noexcept {
        return {static_cast<Number>(values.rate), static_cast<Number>(values.trust)};
    }
    template <class Number>
    static Number direction(Number, Number gradient, Number*, numbers<Number> const&) noexcept {
        return gradient + Number(0.25); // what lies between tensors has a direction, and is part of no norm
    }
    template <class Number>
    static numbers<Number> adapt(numbers<Number> with, herring::tensor_norms const& of) noexcept {
        if (of.directions > 0) with.rate *= with.trust * static_cast<Number>(of.weights / of.directions);
        return with;
    }
    template <class Number>
    static void step(Number& weight, Number direction, Number*, numbers<Number> const& with) noexcept {
        weight = weight - herring::lanes::product(with.rate, direction);
    }
};

template <class Inner> using skipping = optimizer::on_nonfinite<Inner, herring::nonfinite::skip_step>;

template <class Transport, class Element, class Optimizer, class... More>
findings of_16_bits(settings const& how = {}, std::size_t shapes = 10) {
    return optimizer_suite<
        herring::reducer<Element, Transport, herring::fusion::whole_model, Optimizer, update::average,
                         More...>,
        herring::reducer<float, Transport, herring::fusion::whole_model, update::average, More...>>(how,
                                                                                                    shapes);
}

template <class Transport, class Optimizer, class... More>
findings as_own(settings const& how = {}, std::size_t shapes = 10) {
    return optimizer_suite<
        herring::reducer<float, Transport, herring::fusion::per_tensor, Optimizer, update::average, More...>,
        herring::reducer<float, Transport, herring::fusion::per_tensor, update::average, More...>>(how,
                                                                                                   shapes);
}

std::size_t const few = 10 / HERRING_TEST_PART;

} // namespace two_phases

using namespace two_phases;

TEST_CASE("optimizer: clipped, in two phases, by every route") {
    CHECK(text(as_own<threads, optimizer::clipped<optimizer::adamw>, shared>({}, few)) == "");
    CHECK(text(as_own<threads, optimizer::clipped<bounded_signs>>({}, 4)) == "");
    CHECK(text(as_own<threads, optimizer::clipped<optimizer::sgd>, shared, herring::progress::thread>(
              {}, 4)) == "");
}

TEST_CASE("optimizer: what asks for the norms of tensors, by every route") {
    CHECK(text(as_own<threads, optimizer::lamb, shared>({}, few)) == "");
    CHECK(text(as_own<threads, layer_wise>({}, 4)) == "");
    CHECK(text(optimizer_suite<
               herring::reducer<double, threads, optimizer::clipped<optimizer::lamb>, shared, update::sum>,
               herring::reducer<double, threads, shared, update::sum>>({}, 4)) == "");
}

TEST_CASE("optimizer: steps that are skipped leave all as it was, by every route") {
    CHECK(text(as_own<threads, skipping<optimizer::adamw>, shared>({}, few)) == "");
    CHECK(text(as_own<threads, optimizer::clipped<skipping<optimizer::lamb>>>({}, 4)) == "");
}

TEST_CASE("optimizer: gradients of 16 bits, by every route") {
    using herring::bfloat16;
    using herring::float16;
    CHECK(text(of_16_bits<threads, bfloat16, optimizer::adamw, shared>({}, few)) == "");
    CHECK(text(of_16_bits<threads, bfloat16, optimizer::clipped<optimizer::lamb>>({}, few)) == "");
    CHECK(text(of_16_bits<threads, float16, skipping<optimizer::momentum>, shared>({}, few)) == "");
}

TEST_CASE("optimizer: in two phases between processes, and with messages in any order") {
    CHECK(text(of_16_bits<sockets, herring::bfloat16, optimizer::clipped<skipping<optimizer::lamb>>, shared>(
              {.start = ranks_as::processes}, few)) == "");
    CHECK(text(as_own<rough, optimizer::clipped<optimizer::lamb>, shared>({}, 4)) == "");
}

namespace two_phases {

void fill_with_ones(std::size_t, auto weights) {
    for (auto& weight : weights) weight = std::remove_cvref_t<decltype(weight)>(1.0f);
}
constexpr auto ones = [](std::size_t i, auto weights) { fill_with_ones(i, weights); };

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

/// One step of gradients of 1, but for one.
template <class Trainer> void step_with(Trainer& train, std::size_t tensor, std::size_t at, float one) {
    for (std::size_t i = 0; i < train.size(); ++i) fill_with_ones(i, train.tensor(i));
    train.tensor(tensor)[at] = typename Trainer::element_type(one);
    for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
}

float const infinity = std::numeric_limits<float>::infinity();

} // namespace two_phases

TEST_CASE("optimizer: a gradient that is not finite, in two phases, and where it passes") {
    for (auto const& nodes :
         {std::vector<std::string>{"a", "a", "a"}, std::vector<std::string>{"a", "a", "b"}}) {
        CHECK(text(run_case("fails", 3, nodes, {}, [](auto& on) {
                  herring::reducer<float, threads, optimizer::clipped<optimizer::sgd>, shared> train(
                      on.ranks, herring::layout{{"first", 17}, {"second", 20'000}});
                  train.start(0, ones);
                  step_with(train, 1, 19'999, on.rank() == 1 ? infinity : 1);
                  std::string const said = refused(herring::errc::bad_argument, [&] { train.wait(); });
                  on.expect(has(said, "'second'") && has(said, "19999"), said);
              })) == "");
        CHECK(text(run_case("passes", 3, nodes, {}, [](auto& on) {
                  herring::reducer<float, threads,
                                   optimizer::on_nonfinite<optimizer::sgd, herring::nonfinite::pass>, shared>
                      train(on.ranks, herring::layout{{"first", 17}, {"second", 20'000}});
                  train.start(0, ones);
                  step_with(train, 1, 5'000, on.rank() == 1 ? infinity : 1);
                  on.expect(train.wait() == herring::step::exchanged, "the step was exchanged");
                  on.expect(train.weights(1)[5'000] == -infinity, "the weight is lost");
                  on.expect(train.weights(1)[4'999] == 1 - 0.01f && train.weights(0)[0] == 1 - 0.01f,
                            "others are updated");
                  on.ranks.barrier();
              })) == "");
    }
}

TEST_CASE("optimizer: a scale of the loss that is too great is lowered after a step that was skipped") {
    CHECK(text(run_case("loss scale", 2, {"a", "b"}, {}, [](auto& on) {
              using herring::errc;
              herring::reducer<herring::float16, threads, skipping<optimizer::sgd>> train(
                  on.ranks, herring::layout{{"a", 30}, {"b", 3'000}});
              train.start(1, ones);
              on.expect(has(refused(errc::bad_argument, [&] { train.set_loss_scale(0); }), "scale"),
                        "no scale");
              for (double const other : {-1.0, 1e46, 1e-39, std::numeric_limits<double>::infinity()})
                  on.expect(has(refused(errc::bad_argument, [&] { train.set_loss_scale(other); }), "scale"),
                            "a scale whose inverse no float has");
              on.expect(train.loss_scale() == 1, "no scale at first");
              train.set_loss_scale(1 << 17);
              step_with(train, 1, 7, 1 << 17);
              on.expect(train.wait(std::chrono::seconds(20)).ok() &&
                            train.outcome() == herring::step::skipped && std::isinf(train.gradient_norm()),
                        "beyond the range of 16 bits");
              on.expect(train.weights(1)[7].bits == herring::float16(1.0f).bits, "no weight is touched");
              train.set_loss_scale(1 << 10);
              step_with(train, 1, 7, 1 << 10);
              on.expect(train.wait() == herring::step::exchanged, "within it");
              on.expect(train.weights(1)[7].bits == herring::float16(1 - 0.01f).bits, "a gradient of 1");
              train.set_loss_scale(on.rank() == 0 ? 2 : 4);
              on.expect(has(refused(errc::mismatch,
                                    [&] {
                                        step_with(train, 0, 0, 1);
                                        train.wait();
                                    }),
                            "same hyper values"),
                        "scales that differ");
          })) == "");
}

TEST_CASE("optimizer: groups that are not there, that differ, and that are frozen on one rank alone") {
    using trainer = herring::reducer<float, threads, shared, optimizer::clipped<optimizer::adamw>>;
    using herring::errc;
    for (auto const& nodes : {std::vector<std::string>{"a", "a"}, std::vector<std::string>{"a", "b"}})
        CHECK(text(run_case("groups", 2, nodes, {}, [](auto& on) {
                  trainer train(on.ranks, herring::layout{{"a", 10}, {"b", 20'000, 2}});
                  on.expect(train.groups() == 3, "groups up to the last one");
                  train.start(0, ones);
                  auto values = train.hyper(2);
                  values.clip = 0.5;
                  values.rate = 0.25;
                  train.set(2, values);
                  on.expect(train.hyper().clip == 1 && train.hyper(2).clip == 0.5, "values of one group");
                  for (auto const& said : {refused(errc::bad_argument, [&] { train.set(3, values); }),
                                           refused(errc::bad_argument, [&] { (void)train.hyper(3); }),
                                           refused(errc::bad_argument, [&] { train.freeze(3); })})
                      on.expect(has(said, "no group 3"), said);
                  train.freeze(2, on.rank() == 1);
                  on.expect(has(refused(errc::mismatch,
                                        [&] {
                                            step_with(train, 0, 0, 1);
                                            train.wait();
                                        }),
                                "same hyper values"),
                            "frozen on one rank");
              })) == "");
    CHECK(text(run_case("layout", 2, {"a", "b"}, {}, [](auto& on) {
              std::string const said = refused(errc::mismatch, [&] {
                  trainer train(on.ranks, herring::layout{{"a", 10, on.rank() == 0 ? 1u : 0u}});
              });
              on.expect(has(said, "group 0") && has(said, "group 1"), said);
          })) == "");
    CHECK(text(run_case("too many", 2, {"a", "b"}, {}, [](auto& on) {
              std::string const said = refused(errc::bad_argument, [&] {
                  trainer train(on.ranks, herring::layout{{"a", 10}, {"b", 10, 1024}});
              });
              on.expect(has(said, "'b'") && has(said, "1024"), said);
          })) == "");
}
