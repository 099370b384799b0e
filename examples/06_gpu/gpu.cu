// herring: tensors on GPUs: the first example with another intra-node reducer, and streams.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/pcie_staging.cuh>
#include <herring/launch.hpp>
#include <herring/transport/inproc.hpp>

#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

// On one node no message is sent; between nodes: herring/transport/tcp.hpp and herring::transport::tcp. Where GPUs reach each
// other: herring/intra_node/nvlink.cuh and herring::intra_node::nvlink.
using gradients = herring::reducer<float, herring::transport::inproc, herring::intra_node::pcie_staging>;

__global__ void backward(float* gradient, std::size_t n, float value) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += std::size_t{gridDim.x} * blockDim.x)
        gradient[i] = value;
}

void check(cudaError_t result, char const* what) {
    if (result == cudaSuccess) return;
    throw herring::error(herring::errc::device, -1, -1, what, cudaGetErrorString(result));
}

int train(herring::world& world) {
    herring::gpu::use_device(world); // local ranks take devices by turns
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");

    gradients reduce(world, {{"layer2.weight", 250000}, {"layer1.weight", 1000000}, {"layer1.bias", 1000}});
    for (int step = 0; step < 3; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            auto const tensor = reduce.tensor(i); // device memory
            backward<<<256, 256, 0, stream>>>(tensor.data(), tensor.size(),
                                              static_cast<float>(world.rank() + step));
            check(cudaGetLastError(), "backward");
            reduce.ready(i, stream); // once the stream gets there; this thread goes on
        }
        reduce.wait(stream); // what is put into the stream from here on finds the averages
    }

    float result = 0;
    check(cudaMemcpyAsync(&result, reduce.tensor(2).data() + 999, sizeof result, cudaMemcpyDeviceToHost,
                          stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    std::printf("rank %d of %d: %.1f\n", world.rank(), world.size(), static_cast<double>(result));
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return 0;
}

int main() { return herring::launch(2, train); } // nothing of CUDA is called before this: it forks
