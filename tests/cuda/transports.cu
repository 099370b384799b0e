// herring: nvcc compiles reducers of devices over the transports that reach other nodes, of CUDA's types too, and every form of their calls.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/nvlink.cuh"
#include "herring/transport/tcp.hpp"
#if __has_include(<rdma/fabric.h>)
#include "herring/transport/ofi.hpp"
#endif

#include <chrono>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

using namespace herring;
using namespace std::chrono_literals;

template <class T, class Transport>
void every_call(world& ranks, cudaStream_t stream, device_span<T> buffer) {
    reducer<T, Transport, intra_node::nvlink, update::sum> reduce(ranks, {{"a", 100}});
    device_span<T> const tensor = reduce.tensor(0);
    (void)tensor;
    reduce.ready(0, stream);
    reduce.wait(stream);
    reduce.ready(0, buffer, stream);
    reduce.wait(stream, 20s).value();
    reduce.wait(stream, clock::now() + 20s).value();
    reduce.all_reduce(buffer, stream);
    reduce.all_reduce(buffer, stream, 20s).value();
    reduce.all_reduce(buffer, stream, clock::now() + 20s).value();
    reduce.forget(buffer);
}

template void every_call<__nv_bfloat16, transport::tcp>(world&, cudaStream_t, device_span<__nv_bfloat16>);
static_assert(std::is_same_v<detail::stored_element<__nv_bfloat16>, bfloat16> &&
              std::is_same_v<detail::stored_element<__half>, float16>);
static_assert(detail::fits_as_stored<__nv_bfloat16> && detail::fits_as_stored<__half>);
#if __has_include(<rdma/fabric.h>)
template void every_call<float, transport::ofi<provider::tcp>>(world&, cudaStream_t, device_span<float>);
#endif
