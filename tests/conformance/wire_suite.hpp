// herring: what every wire policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_WIRE_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_WIRE_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/element.hpp"
#include "herring/wire/wire.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace herring::conformance {

/// How far numbers may be from what was encoded.
struct wire_tolerance {
    double relative = 0; ///< of the number
    double absolute = 0; ///< of the largest number of its group
};

/// A codec over many lengths, for each element type that it supports: it writes all its bytes, reads them, and touches no others;
/// groups are encoded alike wherever they lie; what is decoded is encoded to the same numbers again; a codec that is exact is; 0 and
/// `one` come back as they are, so that masked elements and a row's largest do; any bytes decode, to the same numbers each time.
/// Not for codecs of entries.
template <class P> findings wire_suite(wire_tolerance tolerance = {}) {
    static_assert(wire_policy<P> && !P::facts.entries);
    findings all;
    auto const find = [&](std::string const& test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };
    if (P::name == nullptr || P::name[0] == 0) find("facts", "name is empty");
    if (P::facts.group == 0) {
        find("facts", "a group has no elements");
        return all;
    }
    int supported = 0;
    auto const check = [&]<class T>(std::type_identity<T>, std::string const& name) {
        if constexpr (wire_supports<P, T>) {
            ++supported;
            using number = accumulator<T>;
            constexpr std::size_t group = P::facts.group;
            dice random(sizeof(T));
            constexpr std::size_t guard = 64; // bytes before and behind what the codec is given
            // `around`: what lies there, and in the bytes before they are written.
            auto const encode = [&](std::vector<number> const& from, std::size_t misalignment = 0,
                                    std::byte around = std::byte{0xa5}) {
                std::size_t const bytes = P::template bytes<T>(from.size()), begin = guard + misalignment;
                std::vector<std::byte> out(begin + bytes + guard, around);
                P::template encode<T>(std::span<number const>(from), std::span(out).subspan(begin, bytes));
                auto const first = out.begin() + static_cast<std::ptrdiff_t>(begin),
                           last = first + static_cast<std::ptrdiff_t>(bytes);
                auto const untouched = [&](std::byte b) { return b == around; };
                if (!std::all_of(out.begin(), first, untouched) || !std::all_of(last, out.end(), untouched))
                    find("bounds", name + ": writes beyond the bytes that it asked for");
                return std::vector<std::byte>(first, last);
            };
            auto const decode = [&](std::vector<std::byte> const& from, std::size_t elements,
                                    std::byte around = std::byte{0xa5}) {
                std::vector<std::byte> bytes(from.size() + 2 * guard, around);
                std::copy(from.begin(), from.end(), bytes.begin() + guard);
                std::vector<number> out(elements + 2 * guard, number(-77));
                P::template decode<T>(std::span(bytes).subspan(guard, from.size()),
                                      std::span(out).subspan(guard, elements));
                auto const first = out.begin() + guard, last = first + static_cast<std::ptrdiff_t>(elements);
                auto const untouched = [](number x) { return x == number(-77); };
                if (!std::all_of(out.begin(), first, untouched) || !std::all_of(last, out.end(), untouched))
                    find("bounds", name + ": decodes more numbers than it was asked for");
                return std::vector<number>(first, last);
            };
            for (std::size_t const elements :
                 {std::size_t{1}, std::size_t{3}, std::size_t{16}, std::size_t{17}, group, group + 1,
                  3 * group, std::size_t{1000}}) {
                std::string const about = name + ", " + std::to_string(elements) + " elements";
                std::vector<number> from(elements);
                for (number& x : from) {
                    auto const whole = (static_cast<float>(random(4001)) - 2000.0f) * 0.0037f;
                    // What the element type has: an exact codec keeps elements, not what they are computed in.
                    x = static_cast<number>(static_cast<T>(random(9) == 0 ? 0.0f : whole));
                }
                auto const bytes = encode(from);
                if (encode(from, 0, std::byte{0x5a}) != bytes)
                    find("bytes", about + ": not all bytes are written");
                if (encode(from, 3) != bytes) find("alignment", about + ": other bytes at another alignment");
                auto const back = decode(bytes, elements);
                for (std::size_t i = 0; i < elements; ++i) {
                    double most = 0;
                    for (std::size_t j = i / group * group; j < std::min(elements, (i / group + 1) * group);
                         ++j)
                        most = std::max(most, std::abs(static_cast<double>(from[j])));
                    double const due = static_cast<double>(from[i]),
                                 off = std::abs(static_cast<double>(back[i]) - due);
                    double const bound =
                        P::facts.exact ? 0 : tolerance.relative * std::abs(due) + tolerance.absolute * most;
                    if (due == 0 && back[i] != 0) {
                        find("zero", about + ": 0 comes back as something else");
                        break;
                    }
                    if (!(off <= bound)) {
                        find(P::facts.exact ? "exact" : "error",
                             about + ": a number comes back too far away");
                        break;
                    }
                }
                if (decode(encode(back), elements) != back)
                    find("again", about + ": what was decoded is encoded to other numbers");
                for (std::size_t const cut : {group, 2 * group})
                    if (cut < elements) {
                        auto first = encode({from.begin(), from.begin() + static_cast<std::ptrdiff_t>(cut)});
                        auto const rest =
                            encode({from.begin() + static_cast<std::ptrdiff_t>(cut), from.end()});
                        first.insert(first.end(), rest.begin(), rest.end());
                        if (first != bytes) find("groups", about + ": groups are not encoded each by itself");
                    }
                std::vector<std::byte> junk(bytes.size());
                for (std::byte& b : junk) b = static_cast<std::byte>(random(256));
                auto const once = decode(junk, elements), again = decode(junk, elements, std::byte{0x5a});
                if (std::memcmp(once.data(), again.data(), elements * sizeof(number)) != 0)
                    find("junk", about + ": the same bytes are decoded to other numbers");
            }
            std::vector<number> largest(group, number(0));
            largest[0] = static_cast<number>(P::facts.one);
            if (decode(encode(largest), group) != largest)
                find("one", name + ": `one` does not come back as it is");
        }
    };
    check(std::type_identity<float>(), "float");
    check(std::type_identity<double>(), "double");
    check(std::type_identity<bfloat16>(), "bfloat16");
    check(std::type_identity<float16>(), "float16");
    if (supported == 0) find("facts", "no element type is supported");
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_WIRE_SUITE_HPP
