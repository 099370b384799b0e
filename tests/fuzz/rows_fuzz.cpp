// herring: fuzz target of ensemble/row_format: rows of any bytes, in every wire form, through check, decode and fold.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which format, elements − 1, rows − 1 (0 to 3), what is done (bit 0: rows that were refused are folded as well, as those that
// change in shared memory after their check; bit 1: with weights, 4 bytes a row; bit 2: each row has a length of its own, 2 bytes),
// then the rows. A row whose first byte is missing is that of zeroes.
#include "fuzz.hpp"

#include "row_formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace outputs = herring::outputs;
namespace space = herring::space;
using fuzz::require;
using herring::detail::ensembles::row_check;

namespace {

struct given {
    std::size_t elements = 1;
    bool unchecked = false;
    std::vector<std::vector<std::byte>> rows{}; // each at an odd address, and as long as it is
    std::vector<float> weights{};
};

/// Memory that begins at a cache line and ends where it ends.
class aligned_room {
  public:
    explicit aligned_room(std::size_t bytes)
        : begin_(static_cast<std::byte*>(::operator new(bytes + 64))),
          first_((64 - std::bit_cast<std::uintptr_t>(begin_) % 64) % 64), bytes_(bytes) {
        std::fill_n(begin_, bytes + 64, guard);
    }
    ~aligned_room() { ::operator delete(begin_); }
    aligned_room(aligned_room const&) = delete;
    aligned_room& operator=(aligned_room const&) = delete;
    std::span<std::byte> room() const { return {begin_ + first_, bytes_}; }
    bool is_untouched_around() const {
        auto const is = [](std::byte each) { return each == guard; };
        return std::all_of(begin_, begin_ + first_, is) &&
               std::all_of(begin_ + first_ + bytes_, begin_ + bytes_ + 64, is);
    }

  private:
    static constexpr std::byte guard{0xa5};
    std::byte* begin_;
    std::size_t first_, bytes_;
};

template <class T> float number_of(T x) {
    return static_cast<float>(static_cast<herring::accumulator<T>>(x));
}
bool is_share(float x) { return x >= 0 && x <= 1.01f; }

template <class Space> struct target {
    /// What rows that passed their check come to.
    template <class Format, class T>
    static void require_dense(typename Format::results const& found, bool weighted_as_given, T) {
        for (T const x : found.values) {
            if (!weighted_as_given) require(!std::isnan(number_of(x)), "a combined element is a number");
            if constexpr (std::is_same_v<Space, space::probability>)
                if (!weighted_as_given) require(is_share(number_of(x)), "a combined probability is one");
        }
    }
    template <class Format> static void require_entries(typename Format::results const& found) {
        for (herring::entry const& each : found.entries)
            require(is_share(each.value), "the value of an entry is a share");
        require(is_share(found.missing), "the missing mass is a share");
        require(!found.entries.empty(), "somebody has an entry");
    }
};

template <class Case> struct one_format;
template <class T, class Combine, class Wire, class... Outputs>
struct one_format<fuzz::row_case<T, Combine, Wire, Outputs...>> {
    using format = typename fuzz::row_case<T, Combine, Wire, Outputs...>::format;
    using space_of = typename Combine::space;
    using weights_of = typename Combine::weighting;

    static std::size_t row_bytes(std::size_t elements) { return format::row_bytes(elements); }

    static void run(given const& all) {
        std::size_t const n = all.elements;
        std::vector<std::span<std::byte const>> rows;
        std::vector<float> weights;
        bool sound = true;
        for (std::size_t r = 0; r < all.rows.size(); ++r) {
            auto const row = std::span(all.rows[r]).subspan(1);
            row_check const is = format::check(row, n);
            require(is == row_check::wrong_size ? row.size() != row_bytes(n) : row.size() == row_bytes(n),
                    "a row has its size");
            require(format::check(row, n) == is, "a check says the same twice");
            if (row.size() != row_bytes(n) || (is != row_check::good && !all.unchecked)) continue;
            sound = sound && is == row_check::good;
            decode(row, n, is == row_check::good);
            rows.emplace_back(row);
            weights.push_back(r < all.weights.size() ? all.weights[r] : 1.0f);
        }
        if (rows.empty()) return;
        bool const weighted = !all.weights.empty() && format::fault_of_weights(weights) == nullptr;
        if (!weighted) weights.clear();
        fold(rows, weights, n, sound);
    }

  private:
    /// A mean is none below or above all that it is of. Where sums may be too large, it is not looked at.
    static void require_between(std::span<std::span<std::byte const> const> rows,
                                std::span<float const> weights, std::size_t n, std::span<T const> found) {
        std::vector<T> row(n);
        std::vector<float> least(n, std::numeric_limits<float>::infinity()), most(n, -least[0]);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (!weights.empty() && weights[r] == 0) continue;
            format::decode(rows[r], n, row);
            for (std::size_t i = 0; i < n; ++i) {
                least[i] = std::min(least[i], number_of(row[i]));
                most[i] = std::max(most[i], number_of(row[i]));
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            float const size = std::max(std::fabs(least[i]), std::fabs(most[i]));
            if (size > 1e37f) continue;
            float const off = 1e-5f * size + 1e-37f;
            require(number_of(found[i]) >= least[i] - off && number_of(found[i]) <= most[i] + off,
                    "a mean lies between its rows");
        }
    }
    static void decode(std::span<std::byte const> row, std::size_t n, bool sound) {
        if constexpr (format::dense) {
            std::vector<T> out(n);
            format::decode(row, n, out);
            for (T const x : out) {
                if (!sound) break;
                require(!std::isnan(number_of(x)), "an element of a checked row is a number");
                if constexpr (std::is_same_v<space_of, space::probability>)
                    require(is_share(number_of(x)), "an element of a checked row is a probability");
            }
        } else {
            std::vector<herring::entry> out(format::row_entries(n));
            std::size_t const count = format::decode(row, n, out);
            require(count <= out.size(), "a row has no more entries than it may have");
            for (std::size_t i = 0; sound && i < count; ++i)
                require(out[i].id < n && is_share(out[i].value) && (i == 0 || out[i - 1].id < out[i].id),
                        "an entry of a checked row is one");
        }
    }
    static void fold(std::span<std::span<std::byte const> const> rows, std::span<float const> weights,
                     std::size_t n, bool sound) {
        aligned_room const memory(format::result_bytes(n, rows.size()));
        typename format::results found = format::results_in(memory.room(), n, rows.size());
        bool const folded = format::fold(rows, weights, n, found);
        require(memory.is_untouched_around(), "fold stays in its memory");
        if (weights.empty() && sound) require(folded, "rows without weights can be combined");
        if (!folded) return;
        bool const plausible = format::is_sound(found);
        if (std::is_same_v<space_of, space::probability> && sound && weights_of::normalised)
            require(plausible, "probabilities of checked rows are probabilities");
        if constexpr (format::dense && std::is_same_v<space_of, space::value> && Combine::facts.linear)
            if (sound && weights_of::normalised) require_between(rows, weights, n, found.values);
        bool const as_given = weights_of::weighted && !weights_of::normalised;
        if constexpr (format::dense) {
            if (!sound) return;
            target<space_of>::template require_dense<format>(found, as_given, T{});
        } else {
            require(found.chosen < n, "the choice is an element");
            for (std::size_t i = 0; i < found.entries.size(); ++i)
                require(found.entries[i].id < n, "the id of an entry is that of an element");
            if (!sound) return;
            for (std::size_t i = 1; i < found.entries.size(); ++i)
                require(found.entries[i - 1].id < found.entries[i].id, "ids ascend");
            if (!as_given) target<space_of>::template require_entries<format>(found);
        }
        auto const finite = [](float x, char const* what) { require(std::isfinite(x) && x >= 0, what); };
        if constexpr (format::dense && (std::is_same_v<Outputs, outputs::mean_entropy> || ...)) {
            finite(found.template get<outputs::entropy_of_mean>(), "the entropy of the mean is finite");
            finite(found.template get<outputs::mean_entropy>(), "the mean entropy is finite");
            finite(found.template get<outputs::mutual_information>(), "the mutual information is finite");
            for (auto const x : found.template get<outputs::variance>())
                finite(static_cast<float>(x), "a variance is finite");
        }
        if constexpr ((std::is_same_v<Outputs, outputs::disagreement> || ...))
            require(is_share(found.template get<outputs::disagreement>()), "a disagreement is a share");
    }
};

template <class Cases> struct formats;
template <class... Cases> struct formats<std::tuple<Cases...>> {
    static constexpr std::size_t count = sizeof...(Cases);
    static std::size_t row_bytes(std::size_t which, std::size_t elements) {
        std::size_t bytes = 0, at = 0;
        ((at++ == which ? void(bytes = one_format<Cases>::row_bytes(elements)) : void()), ...);
        return bytes;
    }
    static void run(std::size_t which, given const& all) {
        std::size_t at = 0;
        ((at++ == which ? one_format<Cases>::run(all) : void()), ...);
    }
};

using every = formats<fuzz::row_cases>;

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    auto const which = static_cast<std::size_t>(in.number(1)) % every::count;
    given all;
    all.elements = 1 + in.number(1);
    std::size_t const rows = 1 + in.number(1) % 4;
    auto const what = in.number(1);
    all.unchecked = (what & 1) != 0;
    if ((what & 2) != 0)
        for (std::size_t r = 0; r < rows; ++r)
            all.weights.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(in.number(4))));
    for (std::size_t r = 0; r < rows; ++r) {
        std::size_t const due = every::row_bytes(which, all.elements);
        std::size_t const bytes = (what & 4) != 0 ? in.number(2) % 4096 : due;
        std::vector<std::byte> row(1 + bytes);
        auto const said = in.bytes(bytes);
        std::copy(said.begin(), said.end(), row.begin() + 1);
        row.shrink_to_fit();
        all.rows.push_back(std::move(row));
    }
    fuzz::memory::begin();
    every::run(which, all);
    fuzz::memory::require_below(64 * 1024, 512 * 1024);
    return 0;
}
