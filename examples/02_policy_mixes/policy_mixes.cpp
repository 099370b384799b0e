// policy_mixes: one reduction under three mixes of policies: what each costs, and the same result.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

using namespace herring::literals;

// What a rank measured with a mix; plain bytes, so that it can be gather_result.
struct row {
    double us_per_step;
    std::uint64_t bytes_sent; ///< a step
    std::uint64_t hash;       ///< of all tensors
};

// A model whose tensors are as uneven as those of real ones: 24 layers, 4 MiB in all.
herring::layout uneven_model() {
    std::vector<herring::tensor_spec> tensors;
    for (std::size_t i = 0; i < 24; ++i) {
        std::string const layer = "layer" + std::to_string(24 - i);
        tensors.push_back({layer + ".bias", 64 + 8 * i});
        tensors.push_back({layer + ".weight", i == 0 ? 400'000 : 3'000 + 2'000 * i});
    }
    return herring::layout(tensors);
}

// Multiples of 1/4, small enough to be added without rounding: every order of adding gives the same bits.
float value(int rank, std::size_t tensor, std::size_t element) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 7 + tensor * 3 + element) % 1021) * 0.25f;
}

template <class Reducer> row measure(herring::world& world, herring::layout const& model) {
    constexpr int warm_up = 5, steps = 40;
    Reducer reduce(world, model);
    std::vector<double> times;
    std::uint64_t bytes_before = 0;
    for (int step = 0; step < warm_up + steps; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (std::size_t k = 0; k < reduce.tensor(i).size(); ++k)
                reduce.tensor(i)[k] = value(world.rank(), i, k);
        if (step == warm_up) bytes_before = reduce.counters().bytes_sent;
        world.barrier();
        auto const begin = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
        reduce.wait();
        std::chrono::duration<double, std::micro> const took = std::chrono::steady_clock::now() - begin;
        if (step >= warm_up) times.push_back(took.count());
    }
    std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
    row mine{times[steps / 2], (reduce.counters().bytes_sent - bytes_before) / steps, 0xcbf29ce484222325u};
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (std::byte const byte : std::as_bytes(reduce.tensor(i)))
            mine.hash = (mine.hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u; // FNV-1a
    return mine;
}

// One line of the table: time of the slowest rank, bytes of all ranks. Returns the hash; 0 if ranks differ.
template <class Reducer>
std::uint64_t compare(herring::world& world, herring::layout const& model, char const* mix) {
    row const mine = measure<Reducer>(world, model);
    double slowest = 0;
    std::uint64_t bytes = 0;
    bool same = true;
    for (std::span<std::byte const> const from : world.all_gather(std::as_bytes(std::span(&mine, 1)))) {
        row theirs;
        std::memcpy(&theirs, from.data(), sizeof theirs);
        slowest = std::max(slowest, theirs.us_per_step);
        bytes += theirs.bytes_sent;
        same = same && theirs.hash == mine.hash;
    }
    if (world.rank() == 0)
        std::printf("%-62s %9.0f %14.2f   %016llx\n", mix, slowest, static_cast<double>(bytes) / (1 << 20),
                    static_cast<unsigned long long>(mine.hash));
    return same ? mine.hash : 0;
}

int compare_all(herring::world& world) {
    using herring::reducer;
    namespace transport = herring::transport;
    namespace intra_node = herring::intra_node;
    namespace fusion = herring::fusion;
    namespace sharding = herring::sharding;

    herring::layout const model = uneven_model();
    if (world.rank() == 0)
        std::printf("%zu tensors, %zu floats; %d ranks on %d nodes\n\n%-62s %9s %14s   %s\n", model.size(),
                    model.elements(), world.size(), world.nodes(), "policies", "us/step", "MiB sent/step",
                    "hash of the result");

    // The order in which policies are named does not matter; what is left out takes its default.
    std::uint64_t const hashes[] = {
        compare<reducer<float, transport::tcp>>(world, model, "tcp, all else by default"),
        compare<reducer<float, transport::tcp, sharding::whole_tensor, fusion::per_tensor>>(
            world, model, "tcp, whole_tensor, per_tensor: the naive parameter server"),
        compare<reducer<float, transport::tcp, intra_node::shared_memory, fusion::balanced_buffer<1_MiB>>>(
            world, model, "tcp, shared_memory, balanced_buffer<1_MiB>"),
    };
    bool const same = hashes[0] != 0 && hashes[1] == hashes[0] && hashes[2] == hashes[0];
    if (world.rank() == 0)
        std::printf("\nthe result is %s on every rank under every mix\n", same ? "the same" : "NOT the same");
    return same ? 0 : 1;
}

int main() { return herring::launch(4, compare_all, {.nodes = {"a", "a", "b", "b"}}); }
