// herring: calls of PyTorch's backend with tensors on a device: torch/device.hpp over CUDA's streams and events, without torch.
// SPDX-License-Identifier: Apache-2.0
//
// Over the stand-in for CUDA's runtime, in the short run too. Streams are late on purpose: what does not wait reads old values.
#include "herring/torch/device.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

void checked(cudaError_t result, char const* what) {
    if (result == cudaSuccess) return;
    std::fprintf(stderr, "FAILED: torch_device: %s: %s\n", what, cudaGetErrorName(result));
    std::exit(1);
}
#define HERRING_CHECKED(call) checked(call, #call)

thread_local cudaStream_t current_stream = nullptr;

/// A device as PyTorch has it: each thread has a current stream, calls have one of their own.
struct cuda {
    using stream = cudaStream_t;
    class event {
      public:
        event() { HERRING_CHECKED(cudaEventCreateWithFlags(&of_, cudaEventDisableTiming)); }
        event(event&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        ~event() {
            if (of_ != nullptr) (void)cudaEventDestroy(of_);
        }
        cudaEvent_t get() const noexcept { return of_; }

      private:
        cudaEvent_t of_ = nullptr;
    };
    struct guard {
        cudaStream_t before;
        ~guard() { current_stream = before; }
    };

    cudaStream_t of_calls;

    stream current() const { return current_stream; }
    stream side() const { return of_calls; }
    guard enter(stream in) const { return {std::exchange(current_stream, in)}; }
    event record(stream in) const {
        event made;
        HERRING_CHECKED(cudaEventRecord(made.get(), in));
        return made;
    }
    void wait(stream in, event const& before) const {
        HERRING_CHECKED(cudaStreamWaitEvent(in, before.get(), 0));
    }
    std::shared_ptr<std::byte> pinned(std::size_t size) const {
        void* made = nullptr;
        HERRING_CHECKED(cudaMallocHost(&made, size));
        return {static_cast<std::byte*>(made), [](std::byte* at) { (void)cudaFreeHost(at); }};
    }
    void to_host(void* host, void const* device, std::size_t bytes) const {
        HERRING_CHECKED(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, current_stream));
        HERRING_CHECKED(cudaStreamSynchronize(current_stream));
    }
    void to_device(void* device, void const* host, std::size_t bytes) const {
        HERRING_CHECKED(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, current_stream));
        HERRING_CHECKED(cudaStreamSynchronize(current_stream));
    }
};

constexpr std::size_t elements = 5000, bytes = elements * sizeof(int);
void late(cudaStream_t in) {
    HERRING_CHECKED(cudaLaunchHostFunc(
        in, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
}

} // namespace

int main() {
    using namespace herring::torch;
    int wrong = 0;
    cudaStream_t callers = nullptr, calls = nullptr;
    HERRING_CHECKED(cudaStreamCreateWithFlags(&callers, cudaStreamNonBlocking));
    HERRING_CHECKED(cudaStreamCreateWithFlags(&calls, cudaStreamNonBlocking));
    void *in = nullptr, *out = nullptr, *pinned = nullptr;
    HERRING_CHECKED(cudaMalloc(&in, bytes));
    HERRING_CHECKED(cudaMalloc(&out, bytes));
    HERRING_CHECKED(cudaMallocHost(&pinned, bytes));
    current_stream = callers;
    int* const host = static_cast<int*>(pinned);
    for (int round = 1; round <= 10; ++round) {
        for (std::size_t i = 0; i < elements; ++i) host[i] = round;
        late(callers);
        HERRING_CHECKED(cudaMemcpyAsync(in, host, bytes, cudaMemcpyHostToDevice, callers));
        device_order<cuda> order(cuda{calls}); // as a caller makes it, whose stream has not come so far
        std::thread([&] {                      // as the worker runs it
            order.run([&] {
                host_memory<cuda> memory(order.device());
                int* const changed = static_cast<int*>(memory.change({in, bytes, false}));
                int* const written = static_cast<int*>(memory.write({out, bytes, false}));
                for (std::size_t i = 0; i < elements; ++i) {
                    written[i] = changed[i] * 100;
                    changed[i] += 1000;
                }
                memory.finish();
            });
        })
            .join();
        order.wait();
        for (auto const& [tensor, value] : {std::pair(in, round + 1000), std::pair(out, round * 100)}) {
            HERRING_CHECKED(cudaMemcpyAsync(host, tensor, bytes, cudaMemcpyDeviceToHost, callers));
            HERRING_CHECKED(cudaStreamSynchronize(callers));
            for (std::size_t i = 0; i < elements; ++i) wrong += host[i] != value;
        }
    }
    HERRING_CHECKED(cudaFree(in));
    HERRING_CHECKED(cudaFree(out));
    HERRING_CHECKED(cudaFreeHost(pinned));
    HERRING_CHECKED(cudaStreamDestroy(callers));
    HERRING_CHECKED(cudaStreamDestroy(calls));
    if (wrong != 0)
        std::fprintf(stderr,
                     "FAILED: torch_device: %d elements are not what the streams' order makes of them\n",
                     wrong);
    else
        std::puts("torch_device: calls wait for their caller's stream, and it for them");
    return wrong != 0;
}
