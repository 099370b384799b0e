// herring: tests of all_reduce of device memory: where it is reduced, what is copied, opened, closed and forgotten meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/nvlink.hpp"
#include "herring/gpu/pipeline/pcie_staging.hpp"
#include "herring/gpu/pipeline/peer_memory.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace herring;
using memory = gpu::host_runtime::memory;
using names = std::vector<std::string>;

constexpr std::size_t piece = 4096; // elements
using peer_sums = gpu::basic_nvlink<gpu::host_runtime, gpu::peer_sums_tuning{.piece_bytes = 4 * piece}>;
using staging = gpu::basic_pcie_staging<gpu::host_runtime, gpu::staging_tuning{.piece_bytes = 4 * piece}>;

/// A rank with a reducer, a device and a stream, and buffers that it reduces.
template <class Node> class rank_of_calls {
  public:
    rank_of_calls(world& ranks, layout tensors)
        : ranks_(ranks), reduce(ranks, std::move(tensors)), device(ranks), stream_(device) {}

    /// Sums ranks and positions; whether that is what comes out, once the stream has come to its end.
    bool sums(memory const& in, std::size_t from, std::size_t elements) {
        auto* const values = reinterpret_cast<float*>(in.data()) + from;
        auto const n = static_cast<std::size_t>(ranks_.size());
        for (std::size_t i = 0; i < elements; ++i)
            values[i] = static_cast<float>(i % 251 + static_cast<std::size_t>(ranks_.rank()));
        reduce.all_reduce({values, elements}, stream_.handle());
        device.machine().drain(*stream_.handle());
        for (std::size_t i = 0; i < elements; ++i)
            if (values[i] != static_cast<float>(i % 251 * n + n * (n - 1) / 2)) return false;
        return true;
    }
    void forget(memory const& what) { reduce.forget({reinterpret_cast<float*>(what.data()) + 17, 3}); }

  private:
    world& ranks_;

  public:
    reducer<float, update::sum, transport::inproc, Node> reduce;
    gpu::host_runtime device;

  private:
    gpu::host_runtime::stream stream_;
};

template <class Body> int launched(names const& nodes, Body const& body) {
    launch_options options;
    options.nodes = nodes;
    std::atomic<int> good{0};
    launch_threads(
        static_cast<int>(nodes.size()),
        [&](world& ranks) {
            good += body(ranks);
            return 0;
        },
        options);
    return good;
}

/// How many copies within devices a call of five pieces and a bit takes, of all ranks.
template <class Node>
int copies_of_call(names const& nodes, layout const& tensors, std::size_t from, bool openable) {
    constexpr std::size_t elements = 5 * piece + 17;
    gpu::host_machine machine;
    CHECK(launched(nodes, [&](world& ranks) {
              rank_of_calls<Node> mine(ranks, tensors);
              memory const own(mine.device, 4 * (elements + 64), openable);
              ranks.barrier(); // constructions copy, too
              if (ranks.rank() == 0) machine.copies = 0;
              ranks.barrier();
              bool const good = mine.sums(own, from, elements);
              ranks.barrier();
              return good;
          }) == static_cast<int>(nodes.size()));
    CHECK(machine.device_used == 0);
    return machine.copies;
}
} // namespace

TEST_CASE("gpu calls: a buffer is reduced where it lies, whatever the layout") {
    for (layout const& tensors : {layout{}, layout{{"a", 1}}, layout{{"a", 1024}, {"b", 100'000}}})
        for (names const& nodes : {names{"a"}, names{"a", "a", "a"}, names{"a", "b"}, names{"a", "a", "b"}}) {
            CAPTURE(nodes.size());
            CHECK(copies_of_call<peer_sums>(nodes, tensors, 0, true) == 0);
            CHECK(copies_of_call<staging>(nodes, tensors, 0, true) == 0);
            CHECK(copies_of_call<staging>(nodes, tensors, 1, false) == 0);
        }
}

TEST_CASE("gpu calls: what other ranks cannot reach, or is not aligned, goes through slots") {
    constexpr int pieces = 6, both_ways = 2;
    CHECK(copies_of_call<peer_sums>({"a", "a", "a"}, {{"a", 10}}, 0, false) == 3 * pieces * both_ways);
    CHECK(copies_of_call<peer_sums>({"a", "a", "b"}, {{"a", 10}}, 0, false) == 2 * pieces * both_ways);
    CHECK(copies_of_call<peer_sums>({"a", "a", "b"}, {{"a", 10}}, 1, true) == 3 * pieces * both_ways);
}

TEST_CASE("gpu calls: one rank's memory goes through slots, the others' is read where it lies") {
    gpu::host_machine machine({.processes = true});
    CHECK(launched({"a", "a", "a"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {});
              memory const own(mine.device, 4 * 30'000, ranks.rank() != 1);
              bool const good = mine.sums(own, ranks.rank() == 2 ? 4 : 0, 29'000) && mine.sums(own, 0, 100);
              ranks.barrier();
              return good;
          }) == 3);
    CHECK(machine.opened == 0);
    CHECK(machine.openings == 4); // of two ranks', by two each
}

TEST_CASE(
    "gpu calls: between processes an allocation is opened once, and anew when another lies at its address") {
    gpu::host_machine machine({.processes = true});
    CHECK(launched({"a", "a", "b"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {{"a", 10}});
              bool good = true;
              std::byte* before = nullptr;
              for (int round = 0; round < 3; ++round) {
                  memory const own(mine.device, 4 * 20'000);
                  for (int call = 0; call < 3; ++call)
                      good = good && mine.sums(own, static_cast<std::size_t>(call) * 4, 19'000);
                  ranks.barrier();
                  if (ranks.rank() == 0) CHECK(machine.openings == 2 * (round + 1));
                  // An allocator may well give the same address, a device does: as another allocation.
                  before = before == nullptr ? own.data() : before;
                  ranks.barrier();
              }
              return good;
          }) == 3);
    CHECK(machine.opened == 0);
    CHECK(machine.device_used == 0);
}

TEST_CASE("gpu calls: memory that is freed and comes back at its address is opened anew") {
    // The machine gives a number to what is entered: here the same bytes are entered twice.
    gpu::host_machine machine({.processes = true});
    CHECK(launched({"a", "a"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {});
              memory const own(mine.device, 4 * 5'000);
              bool good = mine.sums(own, 0, 5'000);
              ranks.barrier();
              machine.erase(own.data());
              machine.enter(own.data(), 4 * 5'000, mine.device.number(), true);
              ranks.barrier();
              good = mine.sums(own, 0, 5'000) && good;
              ranks.barrier();
              if (ranks.rank() == 0) {
                  CHECK(machine.openings == 4);
                  CHECK(machine.opened == 2); // what it was before is closed
              }
              ranks.barrier();
              return good;
          }) == 2);
}

TEST_CASE("gpu calls: what is forgotten is closed everywhere, and may be reduced again") {
    gpu::host_machine machine({.processes = true});
    CHECK(launched({"a", "a", "a", "b"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {});
              memory const one(mine.device, 4 * 9'000), other(mine.device, 4 * 9'000);
              bool good = true;
              mine.forget(one); // nobody knows it
              good = mine.sums(one, 0, 9'000) && mine.sums(other, 0, 9'000) && good;
              ranks.barrier();
              if (ranks.rank() == 0)
                  CHECK(machine.opened == 12); // three ranks, two others each, two allocations
              ranks.barrier();
              mine.forget(one);
              if (ranks.rank() == 0) CHECK(machine.opened == 6);
              ranks.barrier();
              good = mine.sums(one, 0, 9'000) && mine.sums(other, 0, 9'000) && good;
              mine.forget(one);
              mine.forget(other);
              if (ranks.rank() == 0) CHECK(machine.opened == 0);
              ranks.barrier();
              return good;
          }) == 4);
}

TEST_CASE("gpu calls: no more allocations stay open than there is room for") {
    gpu::host_machine machine({.processes = true});
    constexpr int most = static_cast<int>(gpu::lent_memory<gpu::host_runtime>::most);
    CHECK(launched({"a", "a"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {});
              std::vector<std::unique_ptr<memory>> all;
              for (int i = 0; i < most + 3; ++i)
                  all.push_back(std::make_unique<memory>(mine.device, 4 * 300));
              bool good = true;
              for (auto const& own : all) good = mine.sums(*own, 0, 300) && good;
              ranks.barrier();
              if (ranks.rank() == 0) {
                  CHECK(machine.opened == 2 * most);
                  CHECK(machine.openings == 2 * (most + 3));
              }
              ranks.barrier();
              // The last ones are those that are open.
              for (std::size_t i = 5; i < all.size(); ++i) good = mine.sums(*all[i], 0, 300) && good;
              ranks.barrier();
              if (ranks.rank() == 0) CHECK(machine.openings == 2 * (most + 3));
              ranks.barrier();
              return good;
          }) == 2);
    CHECK(machine.opened == 0);
}

TEST_CASE("gpu calls: an allocation that cannot be opened ends the call on every rank, with the pair") {
    gpu::host_machine machine({.processes = true});
    std::string said[2];
    launched({"a", "a"}, [&](world& ranks) {
        gpu::host_runtime device(ranks);
        memory const own(device, 4 * 300); // after an error it has to outlive the reducer
        rank_of_calls<peer_sums> mine(ranks, {});
        if (ranks.rank() == 0) machine.refuses = 1;
        ranks.barrier();
        try {
            (void)mine.sums(own, 0, 300);
        } catch (error const& why) {
            said[ranks.rank()] = why.what();
        }
        return true;
    });
    CHECK(said[1] == "herring: rank 1: all_reduce: device error (rank 0): it was made to fail");
    CHECK(said[0].find("rank 1 gave this rank up: it was made to fail") != std::string::npos);
    CHECK(machine.opened == 0);
}

TEST_CASE("gpu calls: a span that is not aligned to its elements is refused, and the call can be repeated") {
    gpu::host_machine machine;
    CHECK(launched({"a", "a"}, [&](world& ranks) {
              rank_of_calls<peer_sums> mine(ranks, {});
              memory const own(mine.device, 4 * 300);
              std::string said;
              try {
                  gpu::host_runtime::stream in(mine.device);
                  mine.reduce.all_reduce({reinterpret_cast<float*>(own.data() + 2), 7}, in.handle());
              } catch (error const& why) {
                  said = why.what();
              }
              CHECK(said.find("not aligned to its elements") != std::string::npos);
              return mine.sums(own, 0, 300);
          }) == 2);
}

TEST_CASE(
    "gpu calls: memory that a rank has freed after its deadline is not touched by one that calls later") {
    gpu::host_machine machine;
    std::atomic<bool> freed{false};
    std::string late;
    launched({"a", "a"}, [&](world& ranks) {
        gpu::host_runtime device(ranks);
        auto own = std::make_unique<memory>(device, 4 * 300);
        auto mine = std::make_unique<rank_of_calls<peer_sums>>(ranks, layout{});
        gpu::host_runtime::stream in(device);
        device_span<float> const all(reinterpret_cast<float*>(own->data()), 300);
        if (ranks.rank() == 1) {
            CHECK(!mine->reduce.all_reduce(all, in.handle(), std::chrono::milliseconds(50)).ok());
            mine.reset();
            own.reset();
            freed = true;
        } else {
            while (!freed) std::this_thread::yield();
            status const ended = mine->reduce.all_reduce(all, in.handle(), std::chrono::seconds(5));
            late = ended.ok() ? "nothing" : ended.why().text;
        }
        return true;
    });
    CHECK(late.find("deadline") != std::string::npos); // rank 1's, whatever rank 0 would have seen
}

TEST_CASE("gpu calls: forget waits for the device, tells all ranks where that is late, and can be repeated") {
    gpu::host_machine machine({.workers = 3, .processes = true});
    std::atomic<bool> open{false};
    std::string said[2];
    launch_options options;
    options.nodes = {"a", "a"};
    options.timeout = std::chrono::seconds(2);
    launch_threads(
        2,
        [&](world& ranks) {
            rank_of_calls<peer_sums> mine(ranks, {});
            memory const own(mine.device, 4 * 300);
            gpu::host_runtime::stream in(mine.device);
            auto const gate = [](void* of) {
                while (!*static_cast<std::atomic<bool>*>(of)) std::this_thread::yield();
            };
            if (ranks.rank() == 0) gpu::host_runtime::launch(in.handle(), gate, &open);
            mine.reduce.all_reduce({reinterpret_cast<float*>(own.data()), 300}, in.handle());
            try {
                mine.forget(own);
            } catch (error const& why) {
                said[ranks.rank()] = why.what();
            }
            open = true;
            machine.drain(*in.handle());
            mine.forget(own);
            if (ranks.rank() == 0) CHECK(machine.opened == 0);
            ranks.barrier();
            return 0;
        },
        options);
    for (std::string const& one : said) {
        CAPTURE(one);
        CHECK(one.find(": forget: ") != std::string::npos);
        CHECK(one.find("has not done the calls before") != std::string::npos);
    }
}
