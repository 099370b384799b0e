// herring: `join(MPI_Comm)`: becomes one rank of a world within an MPI program, which gives the ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_MPI_HPP
#define HERRING_JOIN_MPI_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/join.hpp"
#include "herring/join/join_as.hpp"
#include "herring/machine/name_lookup.hpp"

// The C++ bindings, which MPI-3 removed, would bring virtual functions and warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail {

HERRING_SETUP inline void mpi_check(int rc, int rank, char const* call) {
    if (rc == MPI_SUCCESS) return;
    throw error(errc::unsupported, rank, -1, "join",
                {call, " failed with MPI error ", rc,
                 "; join needs a valid intra-communicator, between MPI_Init and MPI_Finalize"});
}

/// Gathers bytes of all ranks by MPI.
HERRING_SETUP inline gather_result mpi_gather(MPI_Comm communicator, int rank, int size,
                                              std::span<std::byte const> mine) {
    fixed_array<int> counts(static_cast<std::size_t>(size)), begins(static_cast<std::size_t>(size));
    int const count = static_cast<int>(mine.size());
    mpi_check(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, communicator), rank,
              "MPI_Allgather");
    fixed_array<std::size_t> sizes(counts.size());
    int end = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        begins[r] = end;
        if (counts[r] < 0 || __builtin_add_overflow(end, counts[r], &end))
            throw error(
                errc::protocol, rank, static_cast<int>(r), "join",
                "it gives a number of bytes that no rank gives; see that every rank runs the same build");
        sizes[r] = static_cast<std::size_t>(counts[r]);
    }
    gather_result all(std::move(sizes));
    mpi_check(MPI_Allgatherv(mine.data(), count, MPI_BYTE, all[0].data(), counts.data(), begins.data(),
                             MPI_BYTE, communicator),
              rank, "MPI_Allgatherv");
    return all;
}

/// Returns 64 random hexadecimal digits.
HERRING_SETUP inline std::string random_secret() {
    std::string digits;
    for (std::byte const b : random_nonce())
        for (int const shift : {4, 0})
            digits += "0123456789abcdef"[std::to_integer<unsigned>(b) >> shift & 15u];
    return digits;
}

/// Throws outside MPI_Init and MPI_Finalize, where MPI would end the program.
HERRING_SETUP inline void mpi_runs() {
    int begun = 0, over = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    if (begun != 0 && over == 0) return;
    throw error(errc::bad_state, -1, -1, "join",
                {begun == 0 ? "MPI_Init has not been called" : "MPI_Finalize has been called",
                 "; join(MPI_Comm) asks MPI who is who: call it between the two"});
}

/// Listens on rank 0, and stores the address in `who`. `nearby`: every rank is on this node.
HERRING_SETUP inline std::vector<int> mpi_listen(join_target& who, std::string const& address, bool nearby,
                                                 time_point deadline) {
    if (!address.empty()) {
        std::vector<int> listeners;
        host_and_port const at = split_address(address, "HERRING_ADDR");
        who.host = at.host;
        who.port = at.port;
        failure const how = failure_of(
            0, "join", [&] { listeners = listen_on_all(resolve_address(who, deadline), who, deadline); });
        if (how.what == errc::ok) return listeners;
        // The world of each communicator listens, and keeps its port as long as it lives.
        throw error(how.what, 0, -1, "join",
                    {how.text,
                     "; a program that joins several communicators leaves HERRING_ADDR out, for one address "
                     "serves one of them: rank 0 then takes a free port, and MPI tells the others which"});
    }
    who.host = !who.interface.empty() ? interface_address_of(who.interface, 0)
               : nearby               ? std::string("127.0.0.1")
                                      : outward_address();
    std::string why;
    fixed_array<endpoint> const at = resolve(who.host, 0, deadline, why);
    int const socket = at.empty() ? -1 : listen_on(at[0]);
    if (socket < 0)
        throw error(errc::unreachable, 0, -1, "join",
                    {"rank 0 cannot listen on ", who.host, ": ",
                     at.empty() ? why.c_str() : std::strerror(errno),
                     "; set HERRING_ADDR=host:port or HERRING_INTERFACE on rank 0"});
    who.port = local_end(socket).port();
    return {socket};
}

} // namespace detail

/// Joins the ranks of `communicator`, in their order there. Collective over `communicator`.
///
/// MPI gives number and order of the ranks; all other settings are those of `join()`. Rank 0 listens on
/// HERRING_ADDR if that is set, else on a free port: of HERRING_INTERFACE, of 127.0.0.1 if all ranks are on
/// one node, or of its first address that is not loopback. If no rank has a secret, rank 0 draws one, and MPI
/// carries it to the others.
///
/// A rank that waits in a reducer is not inside MPI: name `waiting::mpi` if messages of MPI may be pending.
///
/// Cost:     MPI_Allgather and MPI_Allgatherv, twice, of some bytes per rank. MPI is not used afterwards, and
///           may be finalised before the world ends.
/// Errors:   as `join()`; `bad_state` before MPI_Init and after MPI_Finalize.
/// Example:  MPI_Init(&argc, &argv);
///           herring::world world = herring::join(MPI_COMM_WORLD);
HERRING_SETUP inline world join(MPI_Comm communicator, join_options const& options = {}) {
    detail::mpi_runs();
    detail::join_target who;
    detail::mpi_check(MPI_Comm_rank(communicator, &who.rank), -1, "MPI_Comm_rank");
    detail::mpi_check(MPI_Comm_size(communicator, &who.size), who.rank, "MPI_Comm_size");
    auto const variables = detail::variables::of_process();
    detail::warn_of_unknown_variables(variables);
    auto const setting = [&](std::string const& own, char const* name) {
        return own.empty() ? std::string(variables.text(name)) : own;
    };
    who.source = "MPI";
    who.node = setting(options.node, "HERRING_NODE");
    who.interface = setting(options.interface, "HERRING_INTERFACE");
    who.on_failure = options.on_failure;
    who.times = detail::read_times(options.failure_detector, options.default_timeout, variables,
                                   "join_options", "join");
    time_point const deadline = detail::deadline_in(options.timeout);

    // Errors of one rank alone come before another rank waits for it.
    auto const together = [&](failure const& how, std::span<std::byte const> mine) {
        return detail::all_or_none(who.rank, "join", how, mine, [&](std::span<std::byte const> bytes) {
            return detail::mpi_gather(communicator, who.rank, who.size, bytes);
        });
    };
    std::string const name = detail::node_identity();
    struct {
        std::uint64_t node = 0;
        std::uint64_t has_secret = 0;
    } mine;
    failure const sound = detail::failure_of(who.rank, "join", [&] {
        detail::read_role(who, options, variables);
        if (!who.interface.empty()) detail::interface_address_of(who.interface, 0);
        who.seals = detail::read_protection(options, variables);
        if (who.seals != nullptr) who.seals->check(who.rank);
        // Not required: without a secret, MPI carries one.
        who.secret =
            detail::read_secret(options.secret, options.secret_file, false, "join_options", variables);
    });
    mine.node = detail::hash_of(name.data(), name.size());
    mine.has_secret = who.secret.has_value() ? 1 : 0;
    auto const all = together(sound, std::as_bytes(std::span(&mine, 1)));
    if (who.size == 1) return detail::join_as(std::move(who), options.timeout);
    bool nearby = true;
    for (std::size_t r = 0; r < all.size(); ++r) {
        auto other = mine;
        if (!detail::wire::read_value(all[r], other)) continue;
        nearby = nearby && other.node == mine.node;
        if (other.has_secret != mine.has_secret)
            throw error(errc::mismatch, who.rank, static_cast<int>(r), "join",
                        {mine.has_secret != 0 ? "it has no secret, this rank has one"
                                              : "it has a secret, this rank has none",
                         "; set HERRING_SECRET or HERRING_SECRET_FILE alike on every rank, or on none: then "
                         "MPI hands one "
                         "out"});
    }

    std::string address; // of rank 0, behind the secret, if MPI carries one
    std::vector<int> listeners;
    failure const how = detail::failure_of(who.rank, "join", [&] {
        if (who.rank != 0) return;
        listeners = detail::mpi_listen(who, setting(options.address, "HERRING_ADDR"), nearby, deadline);
        if (!who.secret) address = detail::random_secret();
        address += detail::local_end(listeners[0]).text();
    });
    auto const addresses = together(how, std::as_bytes(std::span<char const>(address)));
    std::string_view text(reinterpret_cast<char const*>(addresses[0].data()), addresses[0].size());
    if (!who.secret) {
        std::string_view const given = text.substr(0, 2 * detail::secret_key::size);
        text.remove_prefix(given.size());
        if (!detail::secret_fault(given).empty())
            throw error(errc::protocol, who.rank, 0, "join",
                        "rank 0 handed out no secret of 64 digits; run one build of Herring on all ranks");
        who.secret.emplace(detail::secrets{detail::secret(given), {}, {}});
    }
    if (who.rank != 0) {
        detail::host_and_port const at = detail::split_address(text, "rank 0's address");
        who.host = at.host;
        who.port = at.port;
    }
    return detail::join_as(std::move(who), options.timeout, std::move(listeners));
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_MPI_HPP
