// herring: the ranks of a job: set-up, collectives and failures: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WORLD_IMPL_HPP
#define HERRING_CONTROL_WORLD_IMPL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/alone.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/split.hpp"
#include "herring/control/world.hpp"
#include "herring/control/world_state.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/machine/identity.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE {

namespace detail {

/// Handles the current exception of a collective of the world: where a server is missing, the server may be
/// serving. Between ranks in two kinds of calls it depends on who looks first whether the server is named, or
/// the rank that waits for it here.
[[noreturn]] HERRING_SETUP inline void rethrow_of_server(error const& current, topology const& map) {
    failure const why = current.why();
    int server = why.peer;
    if (why.what == errc::mismatch && map.servers() > 0 &&
        (server < 0 || server >= map.size() || !map.is_server(server)))
        for (server = 0; !map.is_server(server);) ++server;
    if ((why.what != errc::timeout && why.what != errc::mismatch) || server < 0 || server >= map.size() ||
        server == why.reporter || !map.is_server(server))
        throw;
    throw error(why.what, why.reporter, why.peer, why.operation,
                {why.text, "; rank ", server,
                 " is a server: if it serves, it is in no barrier and no construction meanwhile; call them "
                 "before, or after"});
}

} // namespace detail

HERRING_SEPARABLE world::world() : world(alone()) {}

HERRING_SEPARABLE world::world(detail::membership joined)
    : rank_(joined.rank), owner_(true), state_(detail::world_state::make(std::move(joined))) {}

HERRING_SEPARABLE world::world(world& of, detail::for_reducer) : rank_(of.rank_), state_(of.state_) {
    of.usable("construction");
    state_->hold();
}

HERRING_SEPARABLE void world::barrier(std::chrono::milliseconds timeout) {
    usable("barrier");
    detail::collective_wait const here(*state_);
    try {
        info().control.table->barrier(info().control.self, "barrier", detail::deadline_in(timeout));
    } catch (error const& why) {
        detail::rethrow_of_server(why, info().map);
    }
}

HERRING_SEPARABLE gather_result world::all_gather(std::span<std::byte const> mine) {
    return all_gather(mine, default_timeout());
}

HERRING_SEPARABLE gather_result world::all_gather(std::span<std::byte const> mine,
                                                  std::chrono::milliseconds timeout) {
    usable("all_gather");
    detail::collective_wait const here(*state_);
    try {
        return info().control.table->all_gather(info().control.self, "all_gather", mine,
                                                detail::deadline_in(timeout));
    } catch (error const& why) {
        detail::rethrow_of_server(why, info().map);
    }
}

HERRING_SEPARABLE world world::split(int colour, int key, std::chrono::milliseconds timeout) {
    usable("split");
    if (info().map.servers() > 0)
        throw error(
            errc::unsupported, rank_, -1, "split",
            {"this world has ", info().map.servers(),
             " servers, which no group could share; split a world of workers, and join one with servers "
             "apart"});
    detail::split_group group;
    {
        detail::collective_wait const here(*state_);
        group = info().control.table->split(info().control.self, "split", colour, key,
                                            detail::deadline_in(timeout));
    }
    if (group.ranks.empty()) return world(-1, detail::world_state::none());
    int rank = -1;
    detail::membership made;
    made.control = group.control;
    try {
        rank = detail::place_in(group.ranks, rank_);
        std::byte number[8];
        detail::put(number, group.number);
        made.rank = rank;
        made.number = group.number;
        made.map = info().map.subset(group.ranks);
        made.key = detail::hkdf_key(info().key, "herring group", number);
        std::byte job[8];
        detail::hkdf_expand(made.key, {detail::bytes_of("herring group job")}, job);
        made.job = detail::get<std::uint64_t>(job);
        made.has_secret = info().has_secret;
        made.local_address = info().local_address;
        made.ranks_on_this_machine = info().ranks_on_this_machine;
        made.times = info().times;
        made.links = links();
        if (made.map.racks() == 1) made.links.uplink_rate_mbit = 0; // there is no other rack
    } catch (...) {
        group.control.table->destroy(group.control.self);
        throw;
    }
    return world(rank, detail::world_state::make(std::move(made), state_));
}

HERRING_SEPARABLE void world::check() const {
    if (forked_off()) throw detail::ended_world(*state_, "check");
    if (failure const* const why = failed()) throw error(detail::as_seen_by(*why, rank()));
}

HERRING_SEPARABLE void world::derive_key(std::span<std::byte> out, std::string_view label, int peer,
                                         std::span<std::byte const> context) const {
    usable("derive_key");
    constexpr std::size_t most = 255 * sizeof(detail::sha256_digest);
    if (peer < 0 || peer >= size())
        throw error(errc::bad_argument, rank_, -1, "derive_key",
                    {"there is no rank ", peer, "; ranks go from 0 to ", size() - 1});
    if (out.size() > most || label.find('\0') != label.npos)
        throw error(errc::bad_argument, rank_, -1, "derive_key",
                    out.size() > most ? "more than 8160 bytes asked for" : "the label has a zero in it");
    std::array<std::byte, 16> pair{};
    detail::put(pair.data(), info().job);
    detail::put(pair.data() + 8, static_cast<std::uint32_t>(std::min(rank_, peer)));
    detail::put(pair.data() + 12, static_cast<std::uint32_t>(std::max(rank_, peer)));
    std::byte const zero[1]{};
    detail::secret_key const of_pair = detail::hkdf_key(info().key, "herring pair", pair);
    detail::hkdf_expand(of_pair, {detail::bytes_of(label), zero, context}, out);
}

HERRING_SEPARABLE detail::membership world::alone() {
    detail::membership one;
    one.control = detail::control_alone::make();
    one.job = detail::random_bits();
    one.key = detail::random_key();
    one.has_secret = true;
    return one;
}

HERRING_SEPARABLE void world::usable(char const* operation) const {
    if (state_ == detail::world_state::none())
        throw error(errc::bad_state, rank_, -1, operation,
                    rank_ < 0 ? "this rank is in no group: it gave split a negative colour"
                              : "this world was moved from; use the one it was moved to");
    if (state_->ended()) throw detail::ended_world(*state_, operation);
}

HERRING_SEPARABLE void world::leave() noexcept {
    if (!forked_off()) {
        if (owner_) state_->end();
        state_->release();
    } // else the parent goes on; what its threads held at the fork is not to be touched
    state_ = detail::world_state::none();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_CONTROL_WORLD_IMPL_HPP
