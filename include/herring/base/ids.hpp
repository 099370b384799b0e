// herring: numbers of servers, contributors and peers, each a type of its own.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_IDS_HPP
#define HERRING_BASE_IDS_HPP

#include "herring/base/config.hpp"

#include <compare>
#include <cstddef>

namespace HERRING_NAMESPACE {

/// A number from 0 on, comparable with numbers of its kind only. −1: none.
template <class Tag> struct index {
    int value = -1;

    /// The id of an element of a table.
    static constexpr index at(std::size_t place) noexcept { return {static_cast<int>(place)}; }
    /// The place in a table that has an element for each id; not for −1.
    constexpr std::size_t place() const noexcept { return static_cast<std::size_t>(value); }

    friend constexpr auto operator<=>(index, index) = default;
};

struct of_server;
struct of_contributor;
struct of_peer;

using server_id = index<of_server>;           ///< [0, servers)
using contributor_id = index<of_contributor>; ///< [0, contributors): the order of combination
using peer_id = index<of_peer>;               ///< place in `transport_needs::peers`

} // namespace HERRING_NAMESPACE

#endif // HERRING_BASE_IDS_HPP
