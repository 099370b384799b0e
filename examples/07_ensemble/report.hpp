// ensemble: what the frontend counts: how good answers are, how long they took, and who was in them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_ENSEMBLE_REPORT_HPP
#define HERRING_EXAMPLES_ENSEMBLE_REPORT_HPP

#include <herring/ensemble/member_set.hpp>
#include <herring/ensemble/outcome.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace report {

/// Accuracy, and the expected calibration error over ten equal bins of confidence (Guo et al., 2017).
class quality {
  public:
    void add(std::span<float const> probability, std::uint8_t label) {
        auto const best = std::max_element(probability.begin(), probability.end());
        double const confidence = static_cast<double>(*best);
        bool const right = best - probability.begin() == label;
        bin& in = bins_[std::min<std::size_t>(static_cast<std::size_t>(confidence * 10), 9)];
        ++in.count;
        in.confidence += confidence;
        in.right += right ? 1 : 0;
        ++count_;
        right_ += right;
    }

    double accuracy() const {
        return static_cast<double>(right_) / static_cast<double>(std::max<std::size_t>(count_, 1));
    }
    double calibration_error() const {
        double sum = 0;
        for (bin const& b : bins_) sum += std::abs(b.right - b.confidence); // times the bin's share
        return sum / static_cast<double>(std::max<std::size_t>(count_, 1));
    }
    void print(char const* name) const {
        std::printf("  %-8s  %6.2f %%              %.3f\n", name, accuracy() * 100, calibration_error());
    }

  private:
    struct bin {
        std::size_t count = 0;
        double confidence = 0, right = 0;
    };
    std::array<bin, 10> bins_{};
    std::size_t count_ = 0, right_ = 0;
};

/// Requests of one phase.
struct phase {
    std::vector<double> microseconds{};
    std::array<std::size_t, 6> outcomes{}; ///< by herring::outcome
    herring::member_set last{};            ///< who contributed to the last answer

    void add(std::chrono::steady_clock::duration took, herring::outcome outcome,
             herring::member_set const& who) {
        microseconds.push_back(std::chrono::duration<double, std::micro>(took).count());
        ++outcomes[static_cast<std::size_t>(outcome)];
        last = who;
    }
};

/// One line a phase.
class phases {
  public:
    template <std::size_t N>
    explicit phases(std::array<char const*, N> const& names) : names_(names.begin(), names.end()) {}

    void add(std::string what, phase& now) {
        std::sort(now.microseconds.begin(), now.microseconds.end());
        auto const at = [&](double share) {
            auto const last = now.microseconds.size() - 1;
            return now.microseconds[std::min(
                last, static_cast<std::size_t>(share * static_cast<double>(last + 1)))];
        };
        std::size_t const full = now.outcomes[static_cast<std::size_t>(herring::outcome::full)];
        std::size_t const partial = now.outcomes[static_cast<std::size_t>(herring::outcome::partial)];
        unanswered_ += now.microseconds.size() - full - partial;
        std::string who;
        for (std::size_t m = 0; m < names_.size(); ++m) who += now.last.contains(m) ? names_[m][0] : '-';
        char line[200];
        std::snprintf(line, sizeof line, "  %-22s  %5zu  %7zu  %6zu   %-12s  %8.0f  %8.0f  %8.0f\n",
                      what.c_str(), full, partial, now.microseconds.size() - full - partial, who.c_str(),
                      at(0.5), at(0.99), at(0.999));
        lines_ += line;
    }
    void print() const {
        std::printf(
            "                          outcomes of requests       the last          latency in microseconds\n"
            "                           full  partial  failed   answer is by       p50       p99     "
            "p99.9\n%s",
            lines_.c_str());
    }
    std::size_t unanswered() const { return unanswered_; }

  private:
    std::vector<std::string> names_;
    std::string lines_;
    std::size_t unanswered_ = 0;
};

} // namespace report

#endif // HERRING_EXAMPLES_ENSEMBLE_REPORT_HPP
