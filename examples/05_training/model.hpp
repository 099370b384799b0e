// training: a multi-layer perceptron whose backward pass writes each gradient where it is told to.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_MODEL_HPP
#define HERRING_EXAMPLES_TRAINING_MODEL_HPP

#include "data.hpp"
#include "matrix.hpp"
#include "random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace training {

/// ReLU layers, softmax, cross-entropy; float throughout. Knows nothing of ranks.
///
/// Two tensors a layer, the bias and the weight, numbered in the order in which `backward` finishes them:
/// those of the last layer are 0 and 1, those of the first layer the last two.
class perceptron {
  public:
    /// `widths`: inputs, hidden layers, classes. The same seed gives the same parameters on every rank.
    perceptron(std::vector<std::size_t> const& widths, std::uint64_t seed) {
        random draw(seed);
        for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
            layer made(widths[l], widths[l + 1]);
            float const bound = std::sqrt(6.0f / static_cast<float>(made.inputs)); // He et al., 2015
            for (float& w : made.weight) w = bound * draw.symmetric();
            layers_.push_back(std::move(made));
        }
    }

    std::size_t layers() const noexcept { return layers_.size(); }
    std::size_t tensors() const noexcept { return 2 * layers_.size(); }

    /// The layer of a tensor, counted from the input, from 0.
    std::size_t layer_of(std::size_t tensor) const noexcept { return layers_.size() - 1 - tensor / 2; }
    std::string name(std::size_t tensor) const {
        return "layer" + std::to_string(layer_of(tensor) + 1) + (is_bias(tensor) ? ".bias" : ".weight");
    }
    std::span<float const> parameters(std::size_t tensor) const noexcept {
        layer const& here = layers_[layer_of(tensor)];
        return is_bias(tensor) ? here.bias_in_use : here.weight_in_use;
    }
    /// The model reads a tensor's parameters there from now on, and `step` is not called: somebody else updates them.
    void use(std::size_t tensor, std::span<float const> parameters) noexcept {
        layer& here = layers_[layer_of(tensor)];
        (is_bias(tensor) ? here.bias_in_use : here.weight_in_use) = parameters;
    }
    std::span<float> parameters(std::size_t tensor) noexcept {
        layer& here = layers_[layer_of(tensor)];
        return is_bias(tensor) ? here.bias : here.weight;
    }

    /// Runs the model and returns the mean loss of the batch; `backward` continues from here.
    float forward(batch const& in) {
        std::size_t const rows = in.size();
        input_ = in.images.data();
        float const* below = input_;
        for (layer& here : layers_) {
            bool const last = &here == &layers_.back();
            here.output.resize(rows * here.outputs);
            here.delta.resize(rows * here.outputs);
            multiply({below, here.inputs, 1}, here.weight_in_use.data(), here.output.data(), rows,
                     here.inputs, here.outputs);
            for (std::size_t r = 0; r < rows; ++r) {
                float* const out = here.output.data() + r * here.outputs;
                for (std::size_t j = 0; j < here.outputs; ++j) {
                    out[j] += here.bias_in_use[j];
                    if (!last) out[j] = std::max(out[j], 0.0f);
                }
            }
            below = here.output.data();
        }
        return softmax_loss(in.labels);
    }

    /// What the last layer gave to the last `forward`, before softmax: batch × classes.
    std::span<float const> scores() const noexcept { return layers_.back().output; }

    /// Writes the gradient of one tensor, all elements of it. Call it for tensor 0, 1, 2, ... after `forward`. Reads no
    /// parameters of this tensor afterwards, before the next `forward`.
    void backward(std::size_t tensor, std::span<float> gradient) {
        std::size_t const l = layer_of(tensor);
        layer& here = layers_[l];
        std::size_t const rows = here.delta.size() / here.outputs;
        if (is_bias(tensor)) {
            std::fill(gradient.begin(), gradient.end(), 0.0f);
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t j = 0; j < here.outputs; ++j)
                    gradient[j] += here.delta[r * here.outputs + j];
        } else {
            float const* const below = l == 0 ? input_ : layers_[l - 1].output.data();
            multiply({below, 1, here.inputs}, here.delta.data(), gradient.data(), here.inputs, rows,
                     here.outputs);
            if (l > 0) pull_delta(layers_[l - 1], here, rows);
        }
    }

    /// One step of SGD with momentum and weight decay. `gradients.tensor(i)` is the gradient of tensor i.
    template <class Gradients> void step(Gradients& gradients, float rate) {
        for (std::size_t i = 0; i < tensors(); ++i) {
            layer& here = layers_[layer_of(i)];
            std::span<float const> const gradient = gradients.tensor(i);
            if (is_bias(i))
                descend(here.bias, here.bias_velocity, gradient, rate, 0.0f);
            else
                descend(here.weight, here.weight_velocity, gradient, rate, decay);
        }
    }

    /// How many images of the batch it recognises.
    std::size_t correct(batch const& in) {
        if (in.size() == 0) return 0;
        forward(in);
        std::span<float const> const scores = this->scores();
        std::size_t right = 0;
        for (std::size_t r = 0; r < in.size(); ++r) {
            auto const first = scores.begin() + static_cast<std::ptrdiff_t>(r * classes);
            right += std::max_element(first, first + classes) - first == in.labels[r];
        }
        return right;
    }

  private:
    static constexpr float momentum = 0.9f;
    static constexpr float decay = 5e-4f;

    struct layer {
        layer(std::size_t from, std::size_t to)
            : inputs(from), outputs(to), weight(from * to), bias(to), weight_velocity(from * to),
              bias_velocity(to), weight_in_use(weight), bias_in_use(bias) {}
        layer(layer&&) = default; // vectors keep their memory

        std::size_t inputs;
        std::size_t outputs;
        std::vector<float> weight; ///< inputs × outputs
        std::vector<float> bias;
        std::vector<float> weight_velocity;
        std::vector<float> bias_velocity;
        std::span<float const> weight_in_use; ///< weight, or where `use` said
        std::span<float const> bias_in_use;
        std::vector<float> output; ///< batch × outputs, after ReLU
        std::vector<float> delta;  ///< batch × outputs: d loss / d (output before ReLU)
    };

    static bool is_bias(std::size_t tensor) noexcept { return tensor % 2 == 0; }

    float softmax_loss(std::vector<std::uint8_t> const& labels) {
        layer& top = layers_.back();
        float const share = 1.0f / static_cast<float>(labels.size());
        double loss = 0;
        for (std::size_t r = 0; r < labels.size(); ++r) {
            float const* const score = top.output.data() + r * top.outputs;
            float* const delta = top.delta.data() + r * top.outputs;
            float const highest = *std::max_element(score, score + top.outputs);
            float sum = 0;
            for (std::size_t j = 0; j < top.outputs; ++j) sum += delta[j] = std::exp(score[j] - highest);
            for (std::size_t j = 0; j < top.outputs; ++j) delta[j] *= share / sum;
            delta[labels[r]] -= share;
            loss += static_cast<double>(std::log(sum) + highest - score[labels[r]]);
        }
        return static_cast<float>(loss) * share;
    }

    // here.delta = above.delta · transposed above.weight, where ReLU let the signal through
    void pull_delta(layer& here, layer const& above, std::size_t rows) {
        transposed_.resize(above.weight_in_use.size());
        constexpr std::size_t tile = 16; // both sides stay in cache
        for (std::size_t i0 = 0; i0 < above.inputs; i0 += tile)
            for (std::size_t j0 = 0; j0 < above.outputs; j0 += tile)
                for (std::size_t i = i0; i < std::min(i0 + tile, above.inputs); ++i)
                    for (std::size_t j = j0; j < std::min(j0 + tile, above.outputs); ++j)
                        transposed_[j * above.inputs + i] = above.weight_in_use[i * above.outputs + j];
        multiply({above.delta.data(), above.outputs, 1}, transposed_.data(), here.delta.data(), rows,
                 above.outputs, above.inputs);
        for (std::size_t i = 0; i < here.delta.size(); ++i)
            here.delta[i] = here.output[i] > 0.0f ? here.delta[i] : 0.0f;
    }

    static void descend(std::vector<float>& parameter, std::vector<float>& velocity,
                        std::span<float const> gradient, float rate, float shrink) noexcept {
        for (std::size_t i = 0; i < parameter.size(); ++i) {
            velocity[i] = momentum * velocity[i] + gradient[i] + shrink * parameter[i];
            parameter[i] -= rate * velocity[i];
        }
    }

    std::vector<layer> layers_;
    float const* input_ = nullptr;
    std::vector<float> transposed_;
};

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_MODEL_HPP
