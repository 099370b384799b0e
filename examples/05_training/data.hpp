// training: the digits: read, split, standardised, and handed out so that each rank gets its part of a batch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_DATA_HPP
#define HERRING_EXAMPLES_TRAINING_DATA_HPP

#include "random.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace training {

inline constexpr std::size_t side = 8;
inline constexpr std::size_t pixels = side * side;
inline constexpr std::size_t classes = 10;

/// Images, row by row, and the digit that each shows.
struct digits {
    std::vector<std::array<float, pixels>> images;
    std::vector<std::uint8_t> labels;

    std::size_t size() const noexcept { return labels.size(); }
};

/// Reads `examples/data/digits.csv`: 64 pixels as ink from 0 to 16, and the digit, a line.
inline digits load_digits(std::string const& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path);
    digits read;
    std::string line;
    while (std::getline(file, line)) {
        std::array<int, pixels + 1> values{};
        char const* at = line.data();
        char const* const end = at + line.size();
        for (int& value : values) {
            auto const [next, problem] = std::from_chars(at, end, value);
            if (problem != std::errc()) at = nullptr;
            if (at == nullptr || value < 0 || value > 16)
                throw std::runtime_error(path + ":" + std::to_string(read.size() + 1) +
                                         ": expected 65 numbers from 0 to 16");
            at = next != end && *next == ',' ? next + 1 : next;
        }
        if (values[pixels] >= static_cast<int>(classes))
            throw std::runtime_error(path + ":" + std::to_string(read.size() + 1) +
                                     ": the last number is no digit");
        std::array<float, pixels> image{};
        for (std::size_t i = 0; i < pixels; ++i) image[i] = static_cast<float>(values[i]);
        read.images.push_back(image);
        read.labels.push_back(static_cast<std::uint8_t>(values[pixels]));
    }
    return read;
}

/// A fixed random fifth of the rows is kept for testing: 1,437 to train on, 360 to test.
struct split {
    digits train;
    digits test;

    explicit split(digits const& all) {
        std::size_t const test_rows = (all.size() + 4) / 5;
        std::size_t taken = 0;
        for (std::size_t const row : permutation(all.size(), 2023)) {
            digits& part = taken++ < test_rows ? test : train;
            part.images.push_back(all.images[row]);
            part.labels.push_back(all.labels[row]);
        }
    }
};

/// Brings each pixel of both parts to mean 0 and about variance 1, as measured on the training part.
inline void standardise(split& data) {
    double const count = static_cast<double>(data.train.size());
    for (std::size_t p = 0; p < pixels; ++p) {
        double sum = 0, squares = 0;
        for (auto const& image : data.train.images) {
            double const ink = static_cast<double>(image[p]);
            sum += ink;
            squares += ink * ink;
        }
        double const mean = sum / count;
        // + 1: the pixels of the border are nearly always 0
        double const deviation = std::sqrt(squares / count - mean * mean + 1.0);
        for (digits* const part : {&data.train, &data.test})
            for (auto& image : part->images)
                image[p] = static_cast<float>((static_cast<double>(image[p]) - mean) / deviation);
    }
}

/// Images and their digits, as the model takes them.
struct batch {
    std::vector<float> images; ///< size × 64
    std::vector<std::uint8_t> labels;

    explicit batch(std::size_t size) : images(size * pixels), labels(size) {}
    std::size_t size() const noexcept { return labels.size(); }

    void set(std::size_t i, digits const& from, std::size_t row) noexcept {
        std::copy(from.images[row].begin(), from.images[row].end(),
                  images.begin() + static_cast<std::ptrdiff_t>(i * pixels));
        labels[i] = from.labels[row];
    }
};

/// This rank's part of each global batch.
///
/// The order of the images follows from the epoch alone, so the ranks agree without a message, and what is
/// trained does not depend on how many they are.
class sampler {
  public:
    sampler(digits const& from, int rank, int ranks, std::size_t batch_size)
        : from_(from), rank_(static_cast<std::size_t>(rank)), ranks_(static_cast<std::size_t>(ranks)),
          mine_(batch_size / ranks_) {
        if (batch_size % ranks_ != 0)
            throw std::runtime_error("a batch of " + std::to_string(batch_size) +
                                     " images cannot be shared evenly by " + std::to_string(ranks_) +
                                     " ranks");
    }

    std::size_t batch_size() const noexcept { return mine_; }
    /// Batches in an epoch; the incomplete last one is left out.
    std::size_t steps() const noexcept { return from_.size() / (mine_ * ranks_); }

    void begin(std::size_t epoch) { order_ = permutation(from_.size(), 1000 + epoch); }

    void fill(std::size_t step, batch& out) const noexcept {
        std::size_t const first = (step * ranks_ + rank_) * mine_;
        for (std::size_t i = 0; i < mine_; ++i) out.set(i, from_, order_[first + i]);
    }

  private:
    digits const& from_;
    std::size_t rank_;
    std::size_t ranks_;
    std::size_t mine_;
    std::vector<std::size_t> order_;
};

/// This rank's share of the test images: every ranks-th one.
inline batch test_share(digits const& from, int rank, int ranks) {
    auto const first = static_cast<std::size_t>(rank), stride = static_cast<std::size_t>(ranks);
    batch share(first < from.size() ? (from.size() - first - 1) / stride + 1 : 0);
    for (std::size_t i = 0; i < share.size(); ++i) share.set(i, from, first + i * stride);
    return share;
}

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_DATA_HPP
