// herring: tests of torch/training.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/torch/training.hpp"

#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "torch_ranks.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace torch = herring::torch;
using herring::transport::tcp;

/// A rank's tensors: "a" of 3 elements, "b" of 2 in a group of its own.
constexpr std::array<torch::tensor_entry, 2> tensors{{{"a", 3, 0}, {"b", 2, 1}}};

/// One rank of a table of `Element`s.
template <class Element> struct one_rank {
    torch::training_table const& calls;
    torch::trainer* self = nullptr;
    torch::outcome said{};

    one_rank(torch::training_table const& of, torch_ranks::seat& seat, int size, int servers) : calls(of) {
        torch::training const with{.rank = int(seat.rank),
                                   .size = size,
                                   .servers = servers,
                                   .timeout_ms = 20'000,
                                   .through = seat.through(),
                                   .tensors = tensors.data(),
                                   .count = tensors.size()};
        self = calls.open(with, said);
        good();
    }
    ~one_rank() {
        if (self != nullptr) calls.close(self);
    }
    one_rank(one_rank const&) = delete;
    one_rank& operator=(one_rank const&) = delete;

    void good() {
        CAPTURE(said.text);
        CHECK(said.code == 0);
        said.code = 0;
    }
    void bad(herring::errc what, std::string_view sentence) {
        CAPTURE(said.text);
        CHECK(said.code == int(what));
        CHECK(std::string_view(said.text).find(sentence) != std::string_view::npos);
        said.code = 0;
    }
    Element* weights(std::size_t i) { return static_cast<Element*>(calls.weights(self, i)); }
    void start(Element value) {
        std::vector<Element> const a(3, value), b(2, value);
        std::array<void const*, 2> const from{a.data(), b.data()};
        calls.start(self, 0, from.data(), said);
        good();
    }
    /// A step with this gradient; returns its outcome.
    std::int32_t step(Element gradient) {
        for (std::size_t i = tensors.size(); i-- > 0;) {
            auto* const to = static_cast<Element*>(calls.gradient(self, i));
            for (std::size_t k = 0; k < tensors[i].elements; ++k) to[k] = gradient;
            calls.ready(self, i, said);
            good();
        }
        std::int32_t const became = calls.wait(self, said);
        good();
        return became;
    }
};

/// Runs `rank(one_rank&, number)` on so many ranks, the last of which may be servers.
template <class Element, class Rank>
void with_ranks(torch::training_table const& calls, int size, int servers, Rank rank) {
    torch_ranks::run(size, [&](torch_ranks::seat& seat) {
        one_rank<Element> here(calls, seat, size, servers);
        if (here.self != nullptr) rank(here, seat.rank);
    });
}

struct own_folder {
    std::string name = [] {
        char path[] = "/tmp/herring-training-XXXXXX";
        return std::string(::mkdtemp(path));
    }();
    ~own_folder() { std::filesystem::remove_all(name); }
};

TEST_CASE("training: a table says what it is") {
    auto const& calls = torch::training_of<double, tcp, herring::optimizer::momentum>();
    CHECK(calls.abi == torch::abi);
    CHECK(calls.size == sizeof(torch::training_table));
    CHECK(calls.averages == 0);
    CHECK(calls.hypers == 3);
    CHECK(std::string_view(calls.hyper_name(0)) == "rate");
    CHECK(std::string_view(calls.hyper_name(1)) == "momentum");
    CHECK(std::string_view(calls.hyper_name(2)) == "decay");
}

TEST_CASE("training: weights are updated by the mean, with the values of each group; a checkpoint goes on") {
    auto const& calls = torch::training_of<double, tcp, herring::optimizer::momentum>();
    own_folder const folder;
    with_ranks<double>(calls, 2, 0, [&](one_rank<double>& here, std::size_t rank) {
        here.start(rank == 0 ? 1.0 : 7.0); // rank 0's
        CHECK(here.weights(0)[2] == 1.0);
        std::array<double, 3> values{};
        calls.hyper(here.self, 1, values.data());
        CHECK(values == std::array{0.01, 0.9, 0.0});
        values = {0.5, 0.5, 0.0};
        calls.set(here.self, 1, values.data(), here.said);
        here.good();
        double const gradient = rank == 0 ? 1.0 : 3.0; // the mean is 2
        CHECK(here.step(gradient) == std::int32_t(herring::step::exchanged));
        CHECK(here.weights(0)[0] == 1.0 - 0.01 * 2.0);
        CHECK(here.weights(1)[1] == 1.0 - 0.5 * 2.0);
        CHECK(std::isnan(calls.norm(here.self)));
        std::string_view const bytes = rank == 0 ? "mine" : "not saved";
        calls.save(here.self, folder.name.c_str(), bytes.data(), bytes.size(), here.said);
        here.good();
        here.step(gradient);
        double const after = here.weights(1)[0];
        CHECK(after == -0.5 * (0.5 * 2.0 + 2.0));
        std::string read;
        calls.load(
            here.self, folder.name.c_str(), &read,
            [](void* to, void const* first, std::size_t size) {
                static_cast<std::string*>(to)->assign(static_cast<char const*>(first), size);
            },
            here.said);
        here.good();
        CHECK(read == "mine");
        CHECK(here.weights(1)[0] == 0.0);
        here.step(gradient);
        CHECK(here.weights(1)[0] == after);
        std::size_t kept = 0; // of one number a weight
        calls.state(
            here.self, &kept,
            [](void* to, std::size_t, std::size_t array, std::size_t, void const*, std::size_t elements) {
                if (array == 1) *static_cast<std::size_t*>(to) += elements;
            },
            here.said);
        here.good();
        CHECK(kept <= 5);
    });
}

TEST_CASE("training: a misuse is a sentence, and the step goes on") {
    auto const& calls = torch::training_of<double, tcp, herring::optimizer::momentum>();
    with_ranks<double>(calls, 2, 0, [&](one_rank<double>& here, std::size_t) {
        calls.ready(here.self, 0, here.said);
        here.bad(herring::errc::bad_state, "there are no weights yet");
        here.start(1.0);
        calls.ready(here.self, 0, here.said);
        here.good();
        calls.ready(here.self, 0, here.said);
        here.bad(herring::errc::bad_state, "'a'");
        std::array<double, 3> const values{-1.0, 0.9, 0.0};
        calls.set(here.self, 0, values.data(), here.said);
        here.bad(herring::errc::bad_argument, "rate");
        calls.scale(here.self, 2.0, here.said);
        here.bad(herring::errc::unsupported, "16 bits");
        calls.ready(here.self, 1, here.said);
        calls.wait(here.self, here.said);
        here.good();
    });
}

TEST_CASE("training: with a sync policy each rank has weights of its own, which are averaged when due") {
    auto const& calls = torch::training_of<float, tcp, herring::sync::every<2>>();
    CHECK(calls.averages == 1);
    CHECK(calls.hypers == 0);
    with_ranks<float>(calls, 2, 0, [&](one_rank<float>& here, std::size_t rank) {
        here.start(1.0f);
        auto const update = [&] {
            for (std::size_t i = 0; i < tensors.size(); ++i)
                for (std::size_t k = 0; k < tensors[i].elements; ++k)
                    here.weights(i)[k] -= static_cast<float*>(calls.gradient(here.self, i))[k];
            calls.settle(here.self, here.said);
            here.good();
        };
        float const gradient = rank == 0 ? 1.0f : 3.0f;
        CHECK(here.step(gradient) == std::int32_t(herring::step::local));
        update();
        CHECK(here.weights(0)[1] == 1.0f - gradient);
        CHECK(here.step(gradient) == std::int32_t(herring::step::exchanged));
        update();
        CHECK(here.weights(0)[1] == 1.0f - 2 * 2.0f); // the mean
    });
}

TEST_CASE("training: the last ranks serve") {
    auto const& calls =
        torch::training_of<double, tcp, herring::placement::dedicated, herring::optimizer::momentum>();
    with_ranks<double>(calls, 3, 1, [&](one_rank<double>& here, std::size_t rank) {
        if (rank == 2) {
            calls.serve(here.self, here.said);
            return here.good();
        }
        here.start(1.0);
        here.step(rank == 0 ? 1.0 : 3.0);
        CHECK(here.weights(0)[0] == 1.0 - 0.01 * 2.0);
    });
}

} // namespace
