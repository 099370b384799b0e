// herring: docs/reference.md: joining through a shared folder, by real processes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/join/gather.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// [snippet folder]
/// `folder`: every rank sees it, no other user reads it, and it is this job's alone, empty at first.
herring::world join_through(std::filesystem::path const& folder, int rank, int size) {
    int call = 0;
    auto const gather = [&](std::span<std::byte const> mine) {
        ++call;
        auto const file = [&](int r) { return folder / (std::to_string(call) + "." + std::to_string(r)); };
        std::ofstream(file(rank) += ".part", std::ios::binary)
            .write(reinterpret_cast<char const*>(mine.data()), std::ssize(mine));
        std::filesystem::rename(file(rank) += ".part", file(rank)); // from now on it is there, and whole
        auto const until = herring::clock::now() + std::chrono::seconds(60);
        std::vector<std::string> all;
        for (int r = 0; r < size; ++r) {
            while (!std::filesystem::exists(file(r))) {
                if (herring::clock::now() > until) throw std::runtime_error("no " + file(r).string());
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
            std::ifstream from(file(r), std::ios::binary);
            all.emplace_back(std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>());
        }
        return all;
    };
    return herring::join(gather, rank, size);
}
// [end]

} // namespace

TEST_CASE("reference: processes that share a folder join through it, and reduce") {
    std::string name = "/tmp/herring-folder-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr); // mode 0700
    int const status = herring::launch(3, [&](herring::world& started) {
        herring::world world = join_through(name, started.rank(), started.size());
        herring::reducer<float, herring::transport::tcp, herring::update::sum> reduce(world);
        float const total = reduce.all_reduce(static_cast<float>(world.rank() + 1));
        return total == 6.0F && world.has_secret() ? 0 : 1;
    });
    CHECK(status == 0);
    std::filesystem::remove_all(name);
}
