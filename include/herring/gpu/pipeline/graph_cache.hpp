// herring: stream work that a pipeline repeats: enqueued the first time, captured the second time, replayed from then on.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP
#define HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/runtime.hpp"

namespace HERRING_NAMESPACE::gpu {

/// One piece of a plan's work, the same in every step: first enqueued, then captured in a graph, then replayed.
///
/// Enqueued first, because libraries may not be initialised during a capture; captured at the second time, because
/// work that comes twice comes again.
/// Cost:     a replay is one launch, whatever the graph holds. Device memory of the driver, some KiB per kernel.
/// Lifetime: the streams that replayed the graph end before it does.
/// Errors:   those of the runtime: `failed()` names what cannot be captured.
template <class Runtime> class graph_cache {
  public:
    /// Enqueues on `in` what `enqueue()` enqueues. `same`: it is the same as last time. Returns whether this was a
    /// replay.
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
            state_ = captured;
        }
        device.replay(in, graph_);
        return true;
    }

  private:
    enum { never, seen, captured } state_ = never;
    typename Runtime::graph graph_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_GRAPH_CACHE_HPP
