// herring: AdamW as a rank has it that updates all weights by itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_ADAMW_REPLICA_HPP
#define HERRING_BENCH_ADAMW_REPLICA_HPP

#include "training_data.hpp"

#include <herring/optimizer/adamw.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// AdamW as every rank has it for itself: all weights and all of the state. Vectorised; reads and writes everything once.
class adamw_replica {
  public:
    explicit adamw_replica(std::vector<std::size_t> const& counts) {
        for (std::size_t const n : counts)
            tensors_.push_back({std::vector<float>(n), std::vector<float>(n), std::vector<float>(n)});
        for (std::size_t i = 0; i < tensors_.size(); ++i) initial_weights(i, tensors_[i].weights);
    }
    std::vector<float> const& weights(std::size_t i) const { return tensors_[i].weights; }
    void begin_step() { with_ = herring::optimizer::adamw::prepare<float>({}, ++steps_); }
    void update(std::size_t i, float const* gradient) {
        using lanes [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
        auto& t = tensors_[i];
        std::size_t const n = t.weights.size();
        float *const w = t.weights.data(), *const m = t.first.data(), *const v = t.second.data();
        std::size_t k = 0;
        for (; k + 8 <= n; k += 8) {
            using whole [[gnu::vector_size(32)]] = float;
            whole weight = *reinterpret_cast<lanes const*>(w + k);
            whole state[2] = {*reinterpret_cast<lanes const*>(m + k), *reinterpret_cast<lanes const*>(v + k)};
            whole const g = *reinterpret_cast<lanes const*>(gradient + k);
            herring::optimizer::adamw::step(weight, g, state, with_);
            *reinterpret_cast<lanes*>(w + k) = weight;
            *reinterpret_cast<lanes*>(m + k) = state[0];
            *reinterpret_cast<lanes*>(v + k) = state[1];
        }
        for (; k < n; ++k) {
            float state[2] = {m[k], v[k]};
            herring::optimizer::adamw::step(w[k], gradient[k], state, with_);
            m[k] = state[0], v[k] = state[1];
        }
    }

  private:
    struct tensor {
        std::vector<float> weights, first, second;
    };
    std::vector<tensor> tensors_;
    herring::optimizer::adamw::prepared<float> with_{};
    std::uint64_t steps_ = 0;
};

} // namespace bench

#endif // HERRING_BENCH_ADAMW_REPLICA_HPP
