// herring: hyper values as text: one by name, all in a list, and the first that differs from another rank's list.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_HYPER_VALUES_IMPL_HPP
#define HERRING_ENGINE_HYPER_VALUES_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/hyper_values.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void hyper_values::name(char (&to)[64], std::size_t place) const noexcept {
    std::size_t const of_group = members.size() + 1, member = place % of_group;
    auto const group = static_cast<unsigned>(place / of_group);
    char which[24] = "";
    if (all.size() > of_group + 1) std::snprintf(which, sizeof which, " of group %u", group);
    if (place + 1 == all.size())
        std::snprintf(to, sizeof to, "the loss scale");
    else if (member == members.size())
        std::snprintf(to, sizeof to, "whether group %u is frozen (0 or 1)", group);
    else if (members[member] != nullptr)
        std::snprintf(to, sizeof to, "hyper::%.24s%s", members[member], which);
    else
        std::snprintf(to, sizeof to, "member %u of hyper%s", static_cast<unsigned>(member), which);
}

HERRING_SEPARABLE std::size_t hyper_values::list(char* to, std::size_t size) const noexcept {
    std::size_t used = 0;
    for (double const value : all) {
        char one[32];
        auto const length =
            static_cast<std::size_t>(std::snprintf(one, sizeof one, used == 0 ? "%.9g" : " %.9g", value));
        if (used + length >= size) break;
        std::memcpy(to + used, one, length + 1);
        used += length;
    }
    return used;
}

HERRING_SEPARABLE bool hyper_values::compare(char (&to)[160], char const* listed, int other,
                                             int rank) const noexcept {
    for (std::size_t place = 0; place < all.size() && *listed != 0; ++place) {
        char own[32];
        std::snprintf(own, sizeof own, "%.9g", all[place]);
        std::size_t const length = std::strcspn(listed, " ;");
        if (length != std::strlen(own) || std::memcmp(listed, own, length) != 0) {
            char what[64];
            name(what, place);
            std::snprintf(to, sizeof to, "%s is %.*s on rank %d and %s on rank %d", what,
                          static_cast<int>(length < 24 ? length : 24), listed, other, own, rank);
            return true;
        }
        listed += length;
        if (*listed != ' ') break;
        ++listed;
    }
    return false;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_HYPER_VALUES_IMPL_HPP
