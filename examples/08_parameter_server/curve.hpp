// parameter server: the loss by epoch of the runs that trained one model, as a table that survives them and as a picture.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_PARAMETER_SERVER_CURVE_HPP
#define HERRING_EXAMPLES_PARAMETER_SERVER_CURVE_HPP

#include "../05_training/svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace parameter_server {

struct point {
    std::size_t epoch;
    double loss;
    double accuracy; ///< 0 to 1
};
/// The epochs of one run.
struct curve {
    int workers, servers;
    std::vector<point> points;
};

inline void append(std::string const& path, int workers, int servers, point const& at) {
    std::ofstream(path, std::ios::app)
        << workers << ' ' << servers << ' ' << at.epoch << ' ' << at.loss << ' ' << at.accuracy << '\n';
}
inline std::vector<curve> read(std::string const& path) {
    std::vector<curve> all;
    std::ifstream file(path);
    int workers = 0, servers = 0;
    for (point at{}; file >> workers >> servers >> at.epoch >> at.loss >> at.accuracy;) {
        if (all.empty() || all.back().workers != workers || all.back().servers != servers)
            all.push_back({workers, servers, {}});
        all.back().points.push_back(at);
    }
    return all;
}

/// Loss, logarithmic, over epochs: a colour a run, and a line where the one before it ended.
inline void draw(std::string const& path, std::vector<curve> const& all) {
    using training::number, training::svg;
    using enum svg::anchor;
    constexpr double left = 74, right = 776, top = 84, bottom = 324;
    constexpr char const* colours[] = {"#2563a8", "#2b8a57", "#8a5a2b"};
    double least = 1e9, most = 0, last = 0;
    for (curve const& run : all)
        for (point const& at : run.points) {
            least = std::min(least, at.loss), most = std::max(most, at.loss);
            last = std::max(last, static_cast<double>(at.epoch));
        }
    double const low = std::log(least / 1.2), high = std::log(most * 1.2);
    auto const x = [&](double epoch) {
        return left + (epoch - 1) / std::max(1.0, last - 1) * (right - left);
    };
    auto const y = [&](double loss) { return top + (high - std::log(loss)) / (high - low) * (bottom - top); };

    svg out(860, 380, "Training loss before and after a server was killed");
    out.text(left, 32, "Training loss: one model, two sets of ranks", start, 18, "#222222", true);
    for (double decade = std::pow(10, std::floor(std::log10(least / 1.2))); decade < most * 1.2; decade *= 10)
        for (double const loss : {decade, 2 * decade, 5 * decade})
            if (std::log(loss) > low && std::log(loss) < high) {
                out.line(left, y(loss), right, y(loss), "#e6e6e6");
                out.text(left - 10, y(loss) + 4, number(loss, loss < 0.01 ? 3 : 2), end, 12, "#666666");
            }
    for (double epoch = 1; epoch <= last; ++epoch)
        out.text(x(epoch), bottom + 18, number(epoch, 0), middle, 12, "#666666");
    out.text((left + right) / 2, bottom + 40, "epoch", middle, 12.5, "#222222");
    double legend = left;
    for (std::size_t run = 0; run < all.size(); ++run) {
        char const* const colour = colours[run % 3];
        std::vector<std::pair<double, double>> line;
        for (point const& at : all[run].points)
            line.emplace_back(x(static_cast<double>(at.epoch)), y(at.loss));
        out.curve(line, colour);
        for (auto const& [at_x, at_y] : line) out.dot(at_x, at_y, colour);
        std::string const name = std::to_string(all[run].workers) + " workers, " +
                                 std::to_string(all[run].servers) +
                                 (all[run].servers == 1 ? " server" : " servers");
        out.text(legend, 56, name, start, 13, colour, true);
        legend += 190;
        if (run + 1 == all.size()) break;
        double const ended = x(static_cast<double>(all[run].points.back().epoch) + 0.5);
        out.line(ended, top, ended, bottom, "#c2410c", 1.2, "5 4");
        out.text(ended + 6, top + 14, "a server is killed; others go on from the checkpoint", start, 11.5,
                 "#c2410c");
    }
    out.save(path);
}

} // namespace parameter_server

#endif // HERRING_EXAMPLES_PARAMETER_SERVER_CURVE_HPP
