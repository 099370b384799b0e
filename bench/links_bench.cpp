// herring: every way that declared links can choose, for each size, beside the one that they choose.
// SPDX-License-Identifier: Apache-2.0
//
//   links_bench [BYTES ...]     joins by HERRING_RANK, _SIZE and _ADDR; HERRING_LINKS has the figures. bench/links starts it
//
// Each way has a reducer, whose links are such that they choose it; all take turns, and medians are printed.
#include <herring/herring.hpp>
#include <herring/join.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using reducer =
    herring::reducer<float, herring::transport::tcp, herring::update::sum, herring::fusion::whole_model>;
using herring::links, herring::way;

bool alike(way const& a, way const& b) {
    return a.path == b.path && a.levels == b.levels &&
           (a.path != herring::route::two_hop || a.servers == b.servers);
}

/// Links that choose each way, of those that do with the chunk that is nearest to the declared links'.
std::vector<std::pair<way, links>> ways_of(herring::network_shape const& shape, std::size_t bytes,
                                           links const& declared) {
    herring::choice const own = herring::choose(shape, bytes, declared);
    std::vector<std::pair<way, links>> found{{own, declared}};
    std::vector<std::size_t> distances{0};
    for (std::uint32_t message = 1; message <= 10'000'000; message *= 2)
        for (std::uint32_t latency = 1; latency <= 10'000'000; latency *= 8)
            for (std::uint32_t rate = 1; rate <= 10'000'000; rate *= 4) {
                links one = declared;
                one.send_ns = one.receive_ns = message;
                one.latency_ns = latency;
                one.rate_mbit = rate;
                herring::choice const chosen = herring::choose(shape, bytes, one);
                std::size_t const distance = std::max(chosen.chunk_bytes, own.chunk_bytes) -
                                             std::min(chosen.chunk_bytes, own.chunk_bytes);
                std::size_t at = 0;
                while (at < found.size() && !alike(found[at].first, chosen)) ++at;
                if (at == found.size()) {
                    found.push_back({chosen, one});
                    distances.push_back(distance);
                } else if (distance < distances[at]) {
                    found[at] = {chosen, one};
                    distances[at] = distance;
                }
            }
    return found;
}

double slowest(herring::world& world, double mine) {
    double most = mine;
    for (auto const& one : world.all_gather(std::as_bytes(std::span(&mine, 1)))) {
        double theirs = 0;
        std::memcpy(&theirs, one.data(), sizeof theirs);
        most = std::max(most, theirs);
    }
    return most;
}

int compare(herring::world& world, std::size_t bytes, int& good) {
    links const declared = world.links();
    herring::layout const tensors{{"tensor", bytes / sizeof(float)}};
    herring::network_shape shape;
    links complete;
    {
        reducer first(world, tensors);
        shape = first.plan().shape();
        complete = first.plan().tuning.links;
    }
    auto const ways = ways_of(shape, bytes, complete);
    std::vector<std::unique_ptr<reducer>> all;
    for (auto const& [chosen, by] : ways) {
        world.state().links = by;
        auto one = std::make_unique<reducer>(world, tensors);
        // The limits of memory may refuse a way.
        auto const& first = one->plan().buckets[0];
        if (all.empty() || (first.path == chosen.path &&
                            (first.path != herring::route::two_hop || int(first.shards) == chosen.servers)))
            all.push_back(std::move(one));
    }
    world.state().links = declared;
    std::vector<float> buffer(bytes / sizeof(float), 1.0f);
    std::vector<std::vector<double>> times(all.size());
    int const calls = bytes < 256 * 1024 ? 50 : bytes < 4 * 1024 * 1024 ? 5 : 2;
    for (int round = -1; round < 11; ++round) // the first warms up
        for (std::size_t w = 0; w < all.size(); ++w) {
            world.barrier();
            auto const begin = herring::clock::now();
            for (int c = 0; c < calls; ++c) all[w]->all_reduce(buffer);
            double const us =
                std::chrono::duration<double, std::micro>(herring::clock::now() - begin).count() / calls;
            double const most = slowest(world, us);
            if (round >= 0) times[w].push_back(most);
        }
    double best = 0;
    for (auto& one : times) {
        std::nth_element(one.begin(), one.begin() + 5, one.end());
        best = best == 0 ? one[5] : std::min(best, one[5]);
    }
    bool const is_good = times[0][5] <= 1.1 * best;
    good += is_good;
    for (std::size_t w = 0; world.rank() == 0 && w < all.size(); ++w) {
        auto const& b = all[w]->plan().buckets[0];
        // Estimates are those of the declared links; other links give the way, not its time.
        std::printf("%10zu  %-14s %3u servers %12.1f us %6.2f of the best%s\n", bytes, to_string(b.path),
                    b.shards, times[w][5], times[w][5] / best,
                    w == 0 ? is_good ? "   chosen" : "   chosen, NOT within 10 %" : "");
        if (w == 0)
            std::printf("%10s  estimated %.1f us, next best %s and %d servers in %.1f us\n", "",
                        double(herring::choose(shape, bytes, complete).time_ns) / 1000,
                        to_string(herring::choose(shape, bytes, complete).next.path),
                        herring::choose(shape, bytes, complete).next.servers,
                        double(herring::choose(shape, bytes, complete).next.time_ns) / 1000);
    }
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        herring::world world = herring::join();
        if (world.links().rate_mbit == 0)
            throw herring::error(herring::errc::bad_argument, world.rank(), -1, "links_bench",
                                 "set HERRING_LINKS, with a rate");
        std::vector<std::size_t> sizes;
        for (int i = 1; i < argc; ++i)
            sizes.push_back(std::max(std::size_t{4}, std::size_t(std::strtoull(argv[i], nullptr, 10))));
        if (sizes.empty())
            for (std::size_t bytes = 64; bytes <= 16u << 20; bytes *= 4) sizes.push_back(bytes);
        int cases = 0, good = 0;
        for (std::size_t const bytes : sizes) cases += compare(world, bytes, good);
        if (world.rank() == 0)
            std::printf("links %s, %d ranks on %d nodes: the chosen way is the fastest, or within 10 %%, in "
                        "%d of %d cases\n",
                        to_string(world.links()).c_str(), world.size(), world.nodes(), good, cases);
        return 0;
    } catch (herring::error const& failed) {
        std::fprintf(stderr, "links_bench: %s\n", failed.what());
        return 1;
    }
}
