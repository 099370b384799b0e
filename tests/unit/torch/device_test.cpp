// herring: tests of torch/device.hpp by a device of words; tests/cuda/torch_device.cpp has CUDA's streams.
// SPDX-License-Identifier: Apache-2.0
#include "herring/torch/device.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace torch = herring::torch;

/// Writes down what it is told. Its memory is the host's; stream 0 is current, 1 a call's.
struct notes {
    using stream = int;
    using event = int;

    std::vector<std::string>* lines;
    int* now;

    struct guard {
        int* now;
        int before;
        ~guard() { *now = before; }
    };

    void note(std::string line) const { lines->push_back(std::move(line)); }
    stream current() const { return *now; }
    stream side() const { return 1; }
    guard enter(stream in) const {
        int const before = *now;
        *now = in;
        return {now, before};
    }
    event record(stream in) const {
        note("record in " + std::to_string(in));
        return in;
    }
    void wait(stream in, event before) const {
        note(std::to_string(in) + " waits for " + std::to_string(before));
    }
    std::shared_ptr<std::byte> pinned(std::size_t bytes) const {
        note("pinned " + std::to_string(bytes));
        return std::shared_ptr<std::byte>(new std::byte[bytes + 1], std::default_delete<std::byte[]>());
    }
    void to_host(void* host, void const* device, std::size_t bytes) const {
        note("to host in " + std::to_string(*now));
        std::memcpy(host, device, bytes);
    }
    void to_device(void* device, void const* host, std::size_t bytes) const {
        note("to device in " + std::to_string(*now));
        std::memcpy(device, host, bytes);
    }
};

TEST_CASE("device: without one a call runs, and memory is the tensor's own") {
    torch::device_order<notes> order(std::nullopt);
    int x = 1, ran = 0;
    order.run([&] {
        ++ran;
        torch::host_memory<notes> memory(order.device());
        CHECK(memory.read({&x, sizeof x, true}) == &x);
        CHECK(memory.write({&x, sizeof x, true}) == &x);
        CHECK(memory.change({&x, sizeof x, true}) == &x);
        memory.finish();
    });
    order.wait();
    CHECK(ran == 1);
}

TEST_CASE("device: copies are made in the call's stream, behind what the caller's stream had, and before "
          "what it gets") {
    std::vector<std::string> lines;
    int now = 0, in = 1, out = 2, both = 3;
    torch::device_order<notes> order(notes{&lines, &now});
    order.run([&] {
        torch::host_memory<notes> memory(order.device());
        int const* const from = static_cast<int const*>(memory.read({&in, sizeof in, false}));
        int* const to = static_cast<int*>(memory.write({&out, sizeof out, false}));
        int* const changed = static_cast<int*>(memory.change({&both, sizeof both, false}));
        CHECK(memory.read({nullptr, 0, false}) != nullptr); // an empty tensor is not copied
        CHECK(*from == 1);
        CHECK(*changed == 3);
        *to = *from + 10;
        *changed += 10;
        CHECK(out == 2);
        memory.finish();
        memory.finish(); // nothing is left
    });
    CHECK(now == 0);
    order.wait();
    CHECK(out == 11);
    CHECK(both == 13);
    CHECK(lines == std::vector<std::string>{"record in 0", "1 waits for 0", "pinned 4", "to host in 1",
                                            "pinned 4", "pinned 4", "to host in 1", "pinned 0",
                                            "to device in 1", "to device in 1", "record in 1",
                                            "0 waits for 1"});
}

TEST_CASE("device: after a call that failed nothing is written, and no stream waits") {
    std::vector<std::string> lines;
    int now = 0, x = 1;
    torch::device_order<notes> order(notes{&lines, &now});
    CHECK_THROWS(order.run([&] {
        torch::host_memory<notes> memory(order.device());
        *static_cast<int*>(memory.write({&x, sizeof x, false})) = 5;
        throw std::runtime_error("a peer is lost");
    }));
    order.wait();
    CHECK(now == 0);
    CHECK(x == 1);
    CHECK(lines == std::vector<std::string>{"record in 0", "1 waits for 0", "pinned 4"});
}

} // namespace
