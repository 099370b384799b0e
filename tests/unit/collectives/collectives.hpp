// herring: what the tests of collectives share: numbers whose sums tell who contributed what.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_COLLECTIVES_COLLECTIVES_HPP
#define HERRING_TESTS_UNIT_COLLECTIVES_COLLECTIVES_HPP

#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"

#include "same_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace collectives {

using flat = herring::reducer<float, herring::transport::inproc, herring::update::sum>;
using nodes = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                               herring::update::sum>;

inline float value(int rank, std::size_t i) {
    return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 31) % 1001);
}
inline float sum(int ranks, std::size_t i) {
    float total = 0;
    for (int r = 0; r < ranks; ++r) total += value(r, i);
    return total;
}

// Both come back after `period` elements: so whole buffers are put together from a table, which costs little where nothing is
// optimised.
constexpr std::size_t period = 143;
template <class Function> std::vector<float> repeated(std::size_t n, std::size_t from, Function&& of) {
    std::vector<float> table, made;
    made.reserve(n);
    for (std::size_t i = 0; i < std::min(n, period); ++i) table.push_back(of(from + i));
    while (n > table.size() && table.size() < 256 * period) {
        std::vector<float> const once = table;
        table.insert(table.end(), once.begin(), once.end());
    }
    while (made.size() < n) {
        std::size_t const more = std::min(table.size(), n - made.size());
        made.insert(made.end(), table.begin(), table.begin() + static_cast<std::ptrdiff_t>(more));
    }
    return made;
}
inline std::vector<float> filled(int rank, std::size_t n, std::size_t from = 0) {
    return repeated(n, from, [rank](std::size_t i) { return value(rank, i); });
}
inline std::vector<float> sums(int ranks, std::size_t n, std::size_t from = 0) {
    return repeated(n, from, [ranks](std::size_t i) { return sum(ranks, i); });
}
// Whether each rank's range of `out` is what that rank has there.
template <class Reducer>
bool has_ranges_of_all(Reducer const& reduce, int ranks, std::span<float const> out) {
    for (int r = 0; r < ranks; ++r) {
        herring::range const theirs = reduce.owned(out.size(), r);
        if (!same_bytes(out.subspan(theirs.offset, theirs.elements),
                        filled(r, theirs.elements, theirs.offset)))
            return false;
    }
    return true;
}

// Nothing, less than a rank each, a mailbox, a piece, a piece and one of three ranks' that is tiny, several, one element more.
inline std::vector<std::size_t> const sizes{0, 1, 5, 64, 1000, 1025, 5000, 40'000, 65'523, 300'001};

// Runs f(world) on ranks of these nodes, as threads; 0: it returned 0 everywhere.
template <class Function> int run(std::vector<std::string> const& on, Function&& f) {
    herring::launch_options options;
    options.nodes = on;
    return herring::launch_threads(static_cast<int>(on.size()), f, options);
}
inline std::vector<std::vector<std::string>> const shapes{
    {"a"}, {"a", "a"}, {"a", "a", "a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "a", "b"}, {"a", "a", "b"}};

} // namespace collectives

#endif // HERRING_TESTS_UNIT_COLLECTIVES_COLLECTIVES_HPP
