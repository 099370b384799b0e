// herring: set-up code of gather.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_GATHER_IMPL_HPP
#define HERRING_JOIN_GATHER_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/control/variables.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/gather.hpp"
#include "herring/join/gather_call.hpp"
#include "herring/join/gather_exchange.hpp"
#include "herring/join/join_as.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/name_lookup.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Listens on rank 0, and stores the address in `who`. `nearby`: every rank is on this node.
HERRING_SETUP inline std::vector<descriptor> listen_by_gather(join_target& who, std::string const& address,
                                                              bool nearby, time_point deadline,
                                                              gather_source const& source) {
    std::vector<descriptor> listeners;
    if (!address.empty()) {
        host_and_port const at = split_address(address, "HERRING_ADDR");
        who.host = at.host;
        who.port = at.port;
        failure const how = failure_of(
            0, "join", [&] { listeners = listen_on_all(resolve_address(who, deadline), who, deadline); });
        if (how.what == errc::ok) return listeners;
        // Each world listens, and keeps its port as long as it lives.
        throw error(how.what, 0, -1, "join",
                    {how.text, "; a program that joins several ", source.groups,
                     " leaves HERRING_ADDR out, for one address serves one of them: rank 0 then takes a free "
                     "port, and ",
                     source.name, " tells the others which"});
    }
    who.host = !who.interface.empty() ? interface_address_of(who.interface, 0)
               : nearby               ? std::string("127.0.0.1")
                                      : outward_address();
    std::string why;
    fixed_array<endpoint> const at = resolve(who.host, 0, deadline, why);
    listeners.emplace_back(at.empty() ? -1 : listen_on(at[0]));
    if (listeners[0].get() < 0)
        throw error(errc::unreachable, 0, -1, "join",
                    {"rank 0 cannot listen on ", who.host, ": ",
                     at.empty() ? why.c_str() : std::strerror(errno),
                     "; set HERRING_ADDR=host:port or HERRING_INTERFACE on rank 0"});
    who.port = local_end(listeners[0].get()).port();
    return listeners;
}

/// Takes the first exchange: rank → its node and whether it has a secret. True if all are on one node.
///
/// Errors: `mismatch` where only some have a secret, or a rank gives other bytes.
HERRING_SETUP inline bool all_are_near(given_by_all const& all, gathered_rank const& mine, int rank,
                                       gather_source const& source) {
    bool near = true;
    for (std::size_t r = 0; r < all.size(); ++r) {
        gathered_rank other;
        if (!other.read(all[r]))
            throw error(errc::mismatch, rank, static_cast<int>(r), "join",
                        {source.name, " returned bytes of it that no rank gives; run one build of Herring on "
                                      "all ranks"});
        near = near && other.node == mine.node;
        if (other.has_secret != mine.has_secret)
            throw error(errc::mismatch, rank, static_cast<int>(r), "join",
                        {mine.has_secret ? "it has no secret, this rank has one"
                                         : "it has a secret, this rank has none",
                         "; set HERRING_SECRET or HERRING_SECRET_FILE alike on every rank, or on none: then ",
                         source.name, " hands one out"});
    }
    return near;
}

/// Takes rank 0's bytes of the second exchange: the address, behind a secret if this rank has none.
HERRING_SETUP inline void take_address(join_target& who, std::span<std::byte const> bytes) {
    std::string_view text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    if (!who.secret) {
        std::string_view const given = text.substr(0, 2 * secret_key::size);
        text.remove_prefix(given.size());
        if (!secret_fault(given).empty())
            throw error(errc::protocol, who.rank, 0, "join",
                        "rank 0 handed out no secret of 64 digits; run one build of Herring on all ranks");
        who.secret.emplace(secrets{secret(given), {}, {}});
    }
    if (who.rank == 0) return;
    std::string address(text);
    wire::make_printable(address); // errors show it
    host_and_port const at = split_address(address, "rank 0's address");
    who.host = at.host;
    who.port = at.port;
}

HERRING_SEPARABLE world join_by(gather_call gather, int rank, int size, join_options const& options,
                                gather_source const& source) {
    auto const variables = variables::of_process();
    warn_of_unknown_variables(variables);
    join_target who;
    gathered_rank mine;
    time_point const deadline = deadline_in(options.timeout);
    // Errors of one rank alone come before another rank waits for it.
    failure failed = failure_of(rank, "join", [&] {
        if (size < 1 || size > most_ranks || rank < 0 || rank >= size)
            bad_setting({"rank ", rank, " of ", size, " (from ", source.name, "'s caller) is out of range; ",
                         size < 1 || size > most_ranks ? "size is from 1 to " : "ranks go from 0 to ",
                         size < 1 || size > most_ranks ? most_ranks : size - 1});
        who.rank = rank;
        who.size = size;
        who.source = source.name;
        read_settings(who, options, variables);
        if (!who.interface.empty()) interface_address_of(who.interface, 0);
        if (who.seals != nullptr) who.seals->check(rank);
        // Not required where the gather may carry one.
        who.secret = read_secret(options.secret, options.secret_file,
                                 options.require_secret && !source.is_private, "join_options", variables);
        mine.nonce = random_nonce();
        std::string const name = node_identity();
        mine.node = hash_of(name.data(), name.size());
        mine.has_secret = who.secret.has_value();
    });
    gather_exchange exchange(gather, rank, size, source.name);
    auto const together = [&](std::span<std::byte const> bytes, auto&& take) {
        return failure_of(rank, "join", [&] { take(all_or_none(rank, "join", failed, bytes, exchange)); });
    };
    bool near = true;
    failure told = together(mine.write(),
                            [&](given_by_all const& all) { near = all_are_near(all, mine, rank, source); });
    if (failed.what == errc::ok) failed = told;
    if (exchange.broken()) throw error(failed);

    byte_buffer given; // of rank 0: the address, behind the secret, if the gather carries one
    given.append(exchange.identity());
    std::vector<descriptor> listeners;
    bool const alone = size + options.servers.count == 1;
    if (failed.what == errc::ok && rank == 0 && !alone)
        failed = failure_of(rank, "join", [&] {
            listeners = listen_by_gather(
                who, options.address.empty() ? std::string(variables.text("HERRING_ADDR")) : options.address,
                near && options.servers.count == 0, deadline, source);
            if (!who.secret) wire::append(given, secret_text(random_nonce()));
            wire::append(given, local_end(listeners[0].get()).text());
        });
    told = together(given, [&](given_by_all const& all) {
        for (std::size_t r = 0; r < all.size(); ++r) {
            auto const words = exchange.of_same_job(all[r], r);
            if (r == 0 && !alone) take_address(who, words);
        }
    });
    if (failed.what == errc::ok) failed = told;
    if (failed.what != errc::ok) throw error(failed);
    // Another job has other keys, also under the same secret.
    if (who.secret) {
        who.secret->proves.bind(exchange.identity());
        if (who.secret->also) who.secret->also->bind(exchange.identity());
    }
    return join_as(std::move(who), options.timeout, std::move(listeners));
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_GATHER_IMPL_HPP
