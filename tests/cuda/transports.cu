// herring: nvcc compiles reducers of devices over the transports that reach other nodes, and every form of their calls.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/nvlink.cuh"
#include "herring/transport/tcp.hpp"
#if __has_include(<rdma/fabric.h>)
#include "herring/transport/ofi.hpp"
#endif

#include <chrono>

using namespace herring;
using namespace std::chrono_literals;

template <class Transport> void every_call(world& ranks, cudaStream_t stream, device_span<float> buffer) {
    reducer<float, Transport, intra_node::nvlink, update::sum> reduce(ranks, {{"a", 100}});
    reduce.ready(0, stream);
    reduce.wait(stream);
    reduce.ready(0, buffer, stream);
    reduce.wait(stream, 20s).value();
    reduce.wait(stream, clock::now() + 20s).value();
    reduce.all_reduce(buffer, stream);
    reduce.all_reduce(buffer, stream, 20s).value();
    reduce.all_reduce(buffer, stream, clock::now() + 20s).value();
}

template void every_call<transport::tcp>(world&, cudaStream_t, device_span<float>);
#if __has_include(<rdma/fabric.h>)
template void every_call<transport::ofi<provider::tcp>>(world&, cudaStream_t, device_span<float>);
#endif
