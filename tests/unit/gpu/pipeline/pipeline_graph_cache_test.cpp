// herring: a replay does what enqueuing does, with the values of the day; what cannot be captured is an error that says so.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/pipeline.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring;
using gpu::host_runtime;

namespace {
struct bench {
    gpu::host_machine machine{{.workers = 0}};
    world alone;
    host_runtime device{alone};
    host_runtime::memory memory{device, 4096};
    host_runtime::stream stream{device}, other{device};
    gpu::graph_cache<host_runtime> work;

    float* at(std::size_t i) { return reinterpret_cast<float*>(memory.data()) + i; }
    void finish() { machine.drain(*stream.handle()); }
    std::string failure() const { return device.failed() == nullptr ? "" : device.failed()->text; }
};
} // namespace

TEST_CASE("graph_cache: enqueued, captured, replayed: the same for other values") {
    bench b;
    gpu::fold_args sum;
    sum.sources[0] = b.at(0);
    sum.sources[1] = b.at(100);
    sum.targets[0] = b.at(200);
    sum.source_count = 2;
    sum.target_count = 1;
    sum.where = {0, 50, 50, 0, 1};
    float out[50] = {};
    int enqueued = 0;
    for (int step = 0; step < 5; ++step) {
        for (std::size_t i = 0; i < 50; ++i) *b.at(i) = static_cast<float>(step), *b.at(100 + i) = 0.5f;
        bool const replayed = b.work.run(b.device, b.stream.handle(), true, [&] {
            ++enqueued;
            b.device.fold<update::sum, float>(b.stream.handle(), sum);
            b.device.to_host(b.stream.handle(), reinterpret_cast<std::byte*>(out),
                             reinterpret_cast<std::byte*>(b.at(200)), sizeof out);
        });
        CHECK(replayed == (step > 0));
        CHECK(enqueued == (step == 0 ? 1 : 2));
        CHECK(out[49] == (step == 0 ? 0.0f : static_cast<float>(step - 1) + 0.5f)); // nothing before its turn
        b.finish();
        CHECK(out[0] == static_cast<float>(step) + 0.5f);
        CHECK(out[49] == static_cast<float>(step) + 0.5f);
    }
    CHECK(b.failure() == "");
}

TEST_CASE("graph_cache: work that is not the same is enqueued again") {
    bench b;
    bool const same[] = {false, true, true, false, true, true};
    bool const replayed[] = {false, true, true, false, true, true};
    for (int step = 0; step < 6; ++step) {
        std::byte* const to = b.memory.data() + (step < 3 ? 0 : 512);
        std::byte const value{static_cast<unsigned char>(step + 1)};
        b.memory.data()[1024] = value;
        CHECK(b.work.run(b.device, b.stream.handle(), same[step], [&] {
            b.device.to_device(b.stream.handle(), to, b.memory.data() + 1024, 1);
        }) == replayed[step]);
        b.finish();
        CHECK(*to == value);
    }
}

TEST_CASE("graph_cache: an event cannot be captured, a list of copies can") {
    auto const captured = [](auto const& call) {
        bench b;
        host_runtime::event mark(b.device, false);
        host_runtime::batch many(b.device, 2);
        for (int step = 0; step < 2; ++step)
            (void)b.work.run(b.device, b.stream.handle(), true, [&] { call(b, mark, many, step); });
        b.finish();
        return b.failure();
    };
    CHECK(captured([](bench& b, auto& mark, auto&, int) {
              b.device.record(mark, b.stream.handle());
          }).find("record: an event cannot be captured") != std::string::npos);
    CHECK(captured([](bench& b, auto& mark, auto&, int) {
              b.device.wait(b.stream.handle(), mark);
          }).find("wait: an event cannot be captured") != std::string::npos);
    CHECK(captured([](bench& b, auto&, auto& many, int) {
              gpu::copy_item const items[] = {{b.at(0), b.at(100), 4}, {b.at(1), b.at(200), 4}};
              b.device.list(many, 0, items);
              b.device.copy_many(b.stream.handle(), many, 0, 2);
          }) == "");
    CHECK(captured([](bench& b, auto& mark, auto&, int) { b.device.record(mark, b.other.handle()); }) == "");
}
