// herring: stream work that a pipeline repeats: put into its stream once, captured the second time, replayed from then on.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP
#define HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/runtime.hpp"

namespace HERRING_NAMESPACE::gpu {

/// One piece of work of a plan's, which is the same in every step: first enqueued, then captured in a graph, then replayed.
///
/// Enqueued first, because what a library settles at its first call it may not settle in a capture; captured at the second
/// time, because a second time shows that there will be more.
/// Cost:     of a replay: one launch, whatever there is in it. Device memory for the graph: the driver's, some KiB a kernel.
/// Lifetime: the streams that it was replayed in end before it goes.
/// Errors:   the runtime's: `failed()` tells what cannot be captured.
template <class Runtime> class graph_cache {
  public:
    /// Puts what `enqueue()` puts into `in` there. `same`: it is what it was last time. Returns whether it was a replay.
    template <class Enqueue>
    bool run(Runtime& device, typename Runtime::stream_handle in, bool same,
             Enqueue const& enqueue) noexcept {
        if (!same || state_ == never) {
            state_ = seen;
            enqueue();
            return false;
        }
        if (state_ == seen) {
            device.capture(in);
            enqueue();
            if (!device.captured(in, graph_)) return false;
            state_ = made;
        }
        device.replay(in, graph_);
        return true;
    }

  private:
    enum { never, seen, made } state_ = never;
    typename Runtime::graph graph_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP
