// training: the two pictures: loss and accuracy by epoch, and one step as each rank lived it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_PLOTS_HPP
#define HERRING_EXAMPLES_TRAINING_PLOTS_HPP

#include "svg.hpp"
#include "timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace training {

/// What an epoch came to, over all ranks.
struct epoch_result {
    double loss;
    double accuracy; ///< of the test images, 0 to 1
    double samples_per_second;
    double exposed; ///< share of the steps' time spent in wait(), 0 to 1
};

namespace detail {

inline constexpr char const* ink = "#222222";
inline constexpr char const* soft = "#666666";
inline constexpr char const* grid = "#e6e6e6";

/// 1, 2 or 5 times a power of ten: the distance of ticks so that there are about `wanted` of them.
inline double tick_distance(double range, double wanted) noexcept {
    double const power = std::pow(10.0, std::floor(std::log10(range / wanted)));
    double const ratio = range / wanted / power;
    return power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10);
}

} // namespace detail

/// Two panels over the same epochs: training loss (logarithmic), test accuracy with the line that must be
/// reached.
inline void draw_training(std::string const& path, std::vector<epoch_result> const& epochs, double target,
                          std::string const& subtitle) {
    using enum svg::anchor;
    using detail::grid, detail::ink, detail::soft;
    constexpr double left = 74, right = 836, top_y = 98, top_height = 196, gap = 46, bottom_height = 150;
    constexpr double bottom_y = top_y + top_height + gap;
    constexpr char const* blue = "#2563a8";
    constexpr char const* green = "#2b8a57";
    auto const last = static_cast<double>(epochs.size());
    auto const x = [&](double epoch) {
        return left + (epoch - 1) / std::max(1.0, last - 1) * (right - left);
    };

    svg out(900, bottom_y + bottom_height + 58, "Training loss and test accuracy by epoch");
    out.text(left, 32, "Training loss and test accuracy", start, 18, ink, true);
    out.text(left, 53, subtitle, start, 12.5, soft);

    double lowest = epochs.front().loss, highest = lowest;
    for (epoch_result const& e : epochs) {
        lowest = std::min(lowest, e.loss);
        highest = std::max(highest, e.loss);
    }
    double const floor = std::pow(10.0, std::floor(std::log10(std::max(lowest, 1e-6))));
    double const ceiling = highest * 1.15;
    auto const loss_y = [&](double loss) {
        return top_y + (std::log(ceiling) - std::log(std::max(loss, floor))) /
                           (std::log(ceiling) - std::log(floor)) * top_height;
    };
    bool const few_decades = ceiling / floor < 1200;
    for (double decade = floor; decade < ceiling; decade *= 10) {
        int const digits = std::max(0, static_cast<int>(std::lround(-std::log10(decade))));
        for (int i = 1; i < 10 && decade * i < ceiling; ++i) {
            double const y = loss_y(decade * i);
            bool const named = i == 1 || i == 2 || i == 5;
            out.line(left, y, right, y, i == 1 ? "#cfcfcf" : named ? grid : "#f3f3f3");
            if (i == 1 || (named && few_decades))
                out.text(left - 10, y + 4, number(decade * i, digits), end, 12, soft);
        }
    }
    double const least = std::floor(std::min(epochs.front().accuracy, target - 0.1) * 10) / 10;
    auto const accuracy_y = [&](double share) {
        return bottom_y + (1 - (std::max(share, least) - least) / (1 - least)) * bottom_height;
    };
    double const percent_step = std::max(5.0, detail::tick_distance((1 - least) * 100, 5));
    for (double percent = 100; percent > least * 100 - 1e-6; percent -= percent_step) {
        double const y = accuracy_y(percent / 100);
        out.line(left, y, right, y, grid);
        out.text(left - 10, y + 4, number(percent, 0) + " %", end, 12, soft);
    }
    double const epoch_step = std::max(1.0, detail::tick_distance(last, 8));
    for (double epoch = 1; epoch <= last;
         epoch = epoch == 1 && epoch_step > 1 ? epoch_step : epoch + epoch_step) {
        out.line(x(epoch), top_y, x(epoch), top_y + top_height, "#f3f3f3");
        out.line(x(epoch), bottom_y, x(epoch), bottom_y + bottom_height + 5, "#dddddd");
        out.text(x(epoch), bottom_y + bottom_height + 21, number(epoch, 0), middle, 12, soft);
    }
    for (double const y : {top_y, bottom_y}) {
        double const height = y == top_y ? top_height : bottom_height;
        out.line(left, y, left, y + height, "#999999");
        out.line(left, y + height, right, y + height, "#999999");
    }
    out.text((left + right) / 2, bottom_y + bottom_height + 43, "epoch", middle, 12.5, detail::ink);
    out.text(left, top_y - 9, "training loss (mean of the epoch, logarithmic)", start, 12.5, blue, true);
    out.text(left, bottom_y - 9, "test accuracy", start, 12.5, green, true);

    out.line(left, accuracy_y(target), right, accuracy_y(target), "#c2410c", 1.2, "5 4");
    out.text(right - 8, accuracy_y(target) + 14, "to reach: " + number(target * 100, 0) + " %", end, 11.5,
             "#c2410c");

    std::vector<std::pair<double, double>> loss, accuracy;
    for (std::size_t i = 0; i < epochs.size(); ++i) {
        loss.emplace_back(x(static_cast<double>(i + 1)), loss_y(epochs[i].loss));
        accuracy.emplace_back(x(static_cast<double>(i + 1)), accuracy_y(epochs[i].accuracy));
    }
    out.curve(loss, blue);
    out.curve(accuracy, green);
    std::string const end_loss = number(epochs.back().loss, 4),
                      end_accuracy = number(epochs.back().accuracy * 100, 1) + " %";
    out.dot(loss.back().first, loss.back().second, blue, end_loss);
    out.dot(accuracy.back().first, accuracy.back().second, green, end_accuracy);
    out.text(right + 8, loss.back().second + 4, end_loss, start, 12.5, blue, true);
    out.text(right + 8, accuracy.back().second + 4, end_accuracy, start, 12.5, green, true);
    out.save(path);
}

/// For each rank a lane of what it computed and, below, a lane a bucket from the moment it may leave to the
/// moment its sum is back.
inline void draw_step(std::string const& path, step_record const& step, std::vector<int> const& node_of_rank,
                      std::string const& subtitle) {
    using enum svg::anchor;
    using detail::grid, detail::ink, detail::soft;
    struct style {
        char const* name;
        char const* fill;
        char const* words;
    };
    static constexpr style styles[] = {{"forward", "#a9cbe8", "#17324d"},
                                       {"backward, layer by layer", "#2f6fb0", "#ffffff"},
                                       {"bucket in flight (ready → reduced)", "#f2a541", "#4a2c00"},
                                       {"wait: communication that is exposed", "#d4d4d4", "#333333"},
                                       {"update", "#3a9b6b", "#ffffff"}};
    constexpr double left = 92, right = 946, top_y = 104, compute = 22, thin = 13, space = 3, after_rank = 16,
                     after_node = 26;
    std::uint32_t buckets = 0;
    for (interval const& bar : step.bars)
        if (bar.what == activity::bucket) buckets = std::max(buckets, bar.index + 1);
    double const lane = compute + space + buckets * (thin + space);

    std::vector<double> lanes;
    double y = top_y;
    for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
        if (rank > 0) y += lane + (node_of_rank[rank] == node_of_rank[rank - 1] ? after_rank : after_node);
        lanes.push_back(y);
    }
    double const bottom = y + lane + 6;
    double const length_ms = static_cast<double>(step.end_ns - step.begin_ns) * 1e-6;
    auto const x = [&](std::int64_t at) {
        return left + static_cast<double>(at - step.begin_ns) * 1e-6 / length_ms * (right - left);
    };

    svg out(980, bottom + 56, "One training step on every rank");
    out.text(24, 32, "One training step on every rank", start, 18, ink, true);
    out.text(24, 53, subtitle, start, 12.5, soft);
    double legend = 24;
    for (style const& entry : styles) {
        out.rect(legend, 69, 13, 13, entry.fill, {}, 2);
        out.text(legend + 19, 80, entry.name, start, 12, ink);
        legend += 19 + 6.6 * static_cast<double>(std::string_view(entry.name).size()) + 20;
    }
    double const distance = detail::tick_distance(length_ms, 10);
    int const digits = distance < 0.1 ? 2 : distance < 1 ? 1 : 0;
    for (double at = 0; at <= length_ms; at += distance) {
        double const tick = left + at / length_ms * (right - left);
        out.line(tick, top_y - 8, tick, bottom + 5, grid);
        out.text(tick, bottom + 21, number(at, digits), middle, 12, soft);
    }
    out.line(left, bottom, right, bottom, "#999999");
    out.text((left + right) / 2, bottom + 43, "milliseconds since the first rank began the step", middle,
             12.5, ink);

    for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
        bool const first_of_node = rank == 0 || node_of_rank[rank] != node_of_rank[rank - 1];
        if (rank > 0 && first_of_node)
            out.line(24, lanes[rank] - after_node / 2, right, lanes[rank] - after_node / 2, "#bbbbbb", 1,
                     "2 3");
        out.text(24, lanes[rank] + 15, "rank " + std::to_string(rank), start, 13, ink, true);
        if (first_of_node)
            out.text(24, lanes[rank] + 31, "node " + std::to_string(node_of_rank[rank]), start, 11.5, soft);
    }
    for (interval const& bar : step.bars) {
        style const& look = styles[static_cast<int>(bar.what)];
        bool const bucket = bar.what == activity::bucket;
        double const height = bucket ? thin : compute;
        double const from = x(bar.begin_ns), width = std::max(0.8, x(bar.end_ns) - from - 0.6);
        double const at = lanes[bar.rank] + (bucket ? compute + space + bar.index * (thin + space) : 0);
        std::string name = bucket                           ? "bucket " + std::to_string(bar.index)
                           : bar.what == activity::forward  ? "forward"
                           : bar.what == activity::backward ? "layer " + std::to_string(bar.index + 1)
                           : bar.what == activity::waiting  ? "wait"
                                                            : "update";
        std::string const time = number(static_cast<double>(bar.end_ns - bar.begin_ns) * 1e-6, 2) + " ms";
        out.rect(from, at, width, height, look.fill, name + ": " + time, 1.5);
        double const size = bucket ? 10 : 11;
        auto const fits = [&](std::string const& words) {
            return static_cast<double>(words.size()) * size * 0.56 + 6 < width;
        };
        if (!fits(name) && bar.what == activity::backward) name = "L" + std::to_string(bar.index + 1);
        if (!fits(name) && bucket) name = std::to_string(bar.index);
        if (fits(name))
            out.text(from + width / 2, at + height / 2 + size * 0.36, name, middle, size, look.words);
    }
    out.save(path);
}

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_PLOTS_HPP
