// herring: errors of CUDA's that a program has not read, that Herring's own calls leave, and in a process that was forked: by cuda_device alone.
// SPDX-License-Identifier: Apache-2.0
//
// Over the stand-in for CUDA's runtime, in the short run too. gpu_test.cu has the same for calls of reducers.
#include "herring/gpu/cuda/cuda_device.cuh"
#include "herring/launch.hpp"

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

using namespace herring;

namespace {

int wrong = 0;
void check(bool good, std::string const& what) {
    if (good) return;
    ++wrong;
    std::fprintf(stderr, "FAILED: errors: %s\n", what.c_str());
}

void launch_of(dim3 grid, dim3 block) { (void)cudaLaunchKernel(&wrong, grid, block, nullptr, 0, nullptr); }

bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

int unread(world& alone) {
    gpu::use_device(alone);
    gpu::cuda_device device(alone);
    auto const told = [&] {
        char const* const text = device.unread();
        return std::string(text != nullptr ? text : "");
    };
    struct {
        cudaError_t code;
        void (*fails)();
    } const cases[] = {{cudaErrorInvalidValue, [] { launch_of(1, 5000); }},
                       {cudaErrorInvalidConfiguration, [] { launch_of(0, 32); }},
                       {cudaErrorInvalidDeviceFunction, [] { launch_of(1, 32); }},
                       {cudaErrorInvalidDevice, [] { (void)cudaSetDevice(99); }}};
    for (auto const& one : cases) {
        std::string const name = cudaGetErrorName(one.code);
        check(told() == "", "nothing is unread");
        one.fails();
        check(cudaSetDevice(0) == cudaSuccess, "cudaSetDevice");
        std::string const text = told();
        check(has(text, name.c_str()) && has(text, "has not read") && has(text, "cudaGetLastError()") &&
                  has(text, "Nothing was done; call again"),
              "an unread error is told: " + name + ": " + text);
        check(cudaGetLastError() == one.code, "it is still the program's: " + name);
    }

    // Answers, not errors: beside access that is enabled already, that work is not done.
    check(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess &&
              cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled,
          "cudaDeviceEnablePeerAccess");
    check(told() == "", "access that was enabled already is no error");
    check(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled, "it is still the program's: access");
    static std::atomic<bool> go{false};
    cudaStream_t busy = nullptr;
    check(cudaStreamCreate(&busy) == cudaSuccess, "cudaStreamCreate");
    check(cudaLaunchHostFunc(
              busy,
              [](void*) {
                  while (!go) std::this_thread::yield();
              },
              nullptr) == cudaSuccess,
          "cudaLaunchHostFunc");
    check(cudaStreamQuery(busy) == cudaErrorNotReady, "cudaStreamQuery");
    check(told() == "", "work that is not done is no error");
    go = true;
    check(cudaStreamSynchronize(busy) == cudaSuccess && cudaStreamDestroy(busy) == cudaSuccess, "its end");
    (void)cudaGetLastError();

    std::thread([] { launch_of(1, 5000); }).join();
    check(told() == "", "an error of another thread is that thread's");

    // What is told as Herring's own is not found again, nor told as the program's.
    check(!gpu::detail::quietly(cudaSetDevice(99)), "quietly");
    check(told() == "" && cudaPeekAtLastError() == cudaSuccess, "of a quiet call no error is left");
    device.checked("cudaSetDevice", [] { return cudaSetDevice(99); });
    check(device.failed() != nullptr, "a failure is kept");
    check(told() == "" && cudaPeekAtLastError() == cudaSuccess, "of a failure that is kept no error is left");
    return wrong != 0;
}

int forked(world&) {
    int count = 0;
    check(cudaGetDeviceCount(&count) == cudaSuccess, "cudaGetDeviceCount"); // CUDA is used from here on
    int const inner = launch(1, [](world& alone) {
        wrong = 0;
        for (bool const by_use_device : {true, false}) {
            std::string text = "nothing";
            try {
                if (by_use_device)
                    gpu::use_device(alone);
                else
                    gpu::cuda_device const device(alone);
            } catch (error const& why) {
                text = why.what();
                check(why.code() == errc::bad_state, "a process that was forked: the code");
            }
            check(has(text, "this process was forked, by herring::launch or the program, after CUDA had been "
                            "used in its parent") &&
                      has(text, "call launch before anything of CUDA's, or use launch_threads"),
                  "a process that was forked: " + text);
            check(cudaPeekAtLastError() == cudaSuccess, "a process that was forked: no error is left");
        }
        return wrong != 0;
    });
    return wrong != 0 || inner != 0;
}

} // namespace

int main() {
    int const first = launch(1, unread), second = launch(1, forked);
    if (first != 0 || second != 0) return 1;
    std::puts("errors: what a program has not read is refused, and a process that was forked is told");
    return 0;
}
