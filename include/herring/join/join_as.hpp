// herring: joins a world, given the rank of this process and the address of rank 0.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_JOIN_AS_HPP
#define HERRING_JOIN_JOIN_AS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/alone.hpp"
#include "herring/control/rendezvous/rendezvous.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/probe.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Resolves rank 0's address. An unknown name is resolved again every 200 ms, for up to 2 s.
HERRING_SETUP inline fixed_array<endpoint> resolve_address(join_target const& who, time_point deadline) {
    time_point const until = std::min(deadline, clock::now() + std::chrono::seconds(2));
    std::string why;
    while (true) {
        fixed_array<endpoint> found = resolve(who.host, who.port, deadline, why);
        if (!found.empty()) return found;
        if (clock::now() + std::chrono::milliseconds(200) >= until) break;
        sleep_for(std::chrono::milliseconds(200));
    }
    throw error(errc::unreachable, who.rank, -1, "join",
                {"the host '", who.host, "' of rank 0's address does not resolve: ", why,
                 "; set HERRING_ADDR to a name or an IP address that every rank can resolve"});
}

/// Returns rank 0's sockets, which listen on exactly these addresses.
HERRING_SETUP inline std::vector<descriptor> listen_on_all(fixed_array<endpoint> const& at,
                                                           join_target const& who, time_point deadline) {
    for (endpoint const& e : at)
        if (e.wildcard())
            throw error(
                errc::bad_argument, 0, -1, "join",
                {"rank 0's address is ", who.host, ":", who.port,
                 ", which means every interface, and no other rank could connect to it; name one address "
                 "of rank 0's machine: ",
                 interfaces_text(interfaces())});
    // A process of the previous job may be about to release the port.
    time_point const patience = std::min(deadline, clock::now() + std::chrono::seconds(1));
    while (true) {
        std::vector<descriptor> sockets;
        int why = 0;
        for (endpoint const& e : at) {
            descriptor socket(listen_on(e));
            if (socket.get() >= 0)
                sockets.push_back(std::move(socket));
            else if (why != EADDRINUSE)
                why = errno;
        }
        if (!sockets.empty() && why != EADDRINUSE) return sockets;
        sockets.clear();
        if (why == EADDRINUSE && clock::now() < patience) {
            sleep_for(std::chrono::milliseconds(50));
            continue;
        }
        if (why == EADDRINUSE)
            throw error(errc::no_resources, 0, -1, "join",
                        {"port ", who.port, " of ", who.host,
                         " is in use by another process; choose another port in HERRING_ADDR, the same on "
                         "every rank, "
                         "or end that process (ss -ltnp shows it)"});
        if (why == EADDRNOTAVAIL)
            throw error(errc::unreachable, 0, -1, "join",
                        {"rank 0 cannot listen on ", who.host, ":", who.port,
                         ", which is not an address of its machine; set HERRING_ADDR to one of: ",
                         interfaces_text(interfaces())});
        throw error(errc::unreachable, 0, -1, "join",
                    {"rank 0 cannot listen on ", who.host, ":", who.port, ": ", std::strerror(why),
                     "; set HERRING_ADDR to an address and a free port above 1023 of rank 0's machine"});
    }
}

/// Warns on stderr if rank 0 has no secret and processes of other machines may reach it.
HERRING_SETUP inline void warn_without_secret(std::vector<descriptor> const& listeners) {
    for (descriptor const& listener : listeners) {
        endpoint const at = local_end(listener.get());
        if (at.loopback()) continue;
        std::fprintf(
            stderr,
            "herring: rank 0 listens on %s WITHOUT A SECRET: whoever reaches that port may take a rank's "
            "place "
            "and read or change the sums; set HERRING_SECRET_FILE on every rank (openssl rand -hex 32)\n",
            at.text().c_str());
        return;
    }
}

/// For so long rank 0 tells workers that it was lent no servers; those that wait for it look twice a second.
inline constexpr std::chrono::milliseconds time_to_tell{2'000};

/// Joins as the rank of `who`. `listeners`: sockets on which rank 0 listens already, if any.
HERRING_SETUP inline world join_as(join_target who, std::chrono::milliseconds timeout,
                                   std::vector<descriptor> listeners = {}) {
    if (who.node.size() > 512)
        bad_setting({"HERRING_NODE has ", who.node.size(), " characters; 512 are the most"});
    int const workers = who.size;
    who.size += who.lent();
    if (who.size == 1) {
        membership alone;
        if (!who.interface.empty()) alone.local_address = interface_address_of(who.interface, 0);
        alone.job = random_bits();
        alone.key = random_key();
        alone.has_secret = true;
        alone.map = topology({0}, {who.role}, {who.rate});
        alone.times = resolve(who.times);
        alone.links = who.links;
        alone.control = control_alone::make(who.on_failure);
        return world(std::move(alone));
    }
    if (who.seals != nullptr) {
        if (!who.secret)
            bad_setting({"control connections are to be sealed, and there is no secret to make keys of; give "
                         "join_options::secret_file, HERRING_SECRET_FILE or HERRING_SECRET, made by: openssl "
                         "rand -hex 32"});
        who.seals->check(who.rank);
    }
    bool const v6 = who.host.find(':') != std::string::npos;
    rendezvous::settings joining;
    joining.address_text = text({v6 ? "[" : "", who.host, v6 ? "]:" : ":", who.port});
    if (who.lent() > 0) {
        if (!who.secret || who.size > most_ranks)
            bad_setting({"servers of a service join a world of at most ", most_ranks,
                         " ranks that has a secret, by which strangers are told from them; give "
                         "join_options::secret_file, HERRING_SECRET_FILE or HERRING_SECRET"});
        if (who.rank != 0) timeout += who.servers->queue_for;
        if (who.rank == 0) try {
                joining.lent = who.servers->ask(*who.servers, {.workers = workers,
                                                               .address = joining.address_text,
                                                               .seals = who.seals != nullptr,
                                                               .timeout = timeout});
                joining.secret_of_lent.emplace(secrets{secret(joining.lent.secret), {}, {}});
                erase(joining.lent.secret);
                joining.on_drain = who.servers->on_drain;
            } catch (error const& why) {
                if (workers == 1) throw;
                joining.not_lent = why.why();
                timeout = std::min(timeout, time_to_tell);
            }
    }
    joining.workers = workers;
    time_point const deadline = deadline_in(timeout);
    joining.rank = who.rank;
    joining.size = who.size;
    joining.node = who.node.empty() ? node_identity() : text({"HERRING_NODE=", who.node});
    joining.boot = boot_id();
    joining.role = who.role;
    joining.rate = who.rate;
    joining.links = who.links;
    joining.rack = std::move(who.rack);
    joining.secret = std::move(who.secret);
    joining.seals = who.seals;
    joining.listeners = std::move(listeners);
    if (joining.listeners.empty()) {
        joining.addresses = resolve_address(who, deadline);
        // An interface that does not exist is an error before any rank waits.
        if (!who.interface.empty()) interface_address_of(who.interface, joining.addresses[0].family());
        if (who.rank == 0) joining.listeners = listen_on_all(joining.addresses, who, deadline);
    }
    if (who.rank == 0 && !joining.secret) warn_without_secret(joining.listeners);
    int const family = joining.listeners.empty() ? joining.addresses[0].family()
                                                 : local_end(joining.listeners[0].get()).family();
    std::string const own =
        who.interface.empty() ? std::string() : interface_address_of(who.interface, family);
    joining.deadline = deadline;
    joining.timeout = timeout;
    joining.asked = who.times;
    joining.on_failure = who.on_failure;
    joining.times = resolve(who.times);
    membership joined = rendezvous::join_world(std::move(joining));
    if (!own.empty()) joined.local_address = own;
    world here(std::move(joined));
    if (who.links != links{} && who.links != here.links()) {
        failure const why = failure::make(errc::mismatch, who.rank, 0, "join",
                                          {"rank ", who.rank, " has links ", to_string(who.links),
                                           ", rank 0 has ", to_string(here.links()),
                                           "; give all ranks the same HERRING_LINKS, or rank 0 alone"});
        here.fail(why);
        throw error(why);
    }
    if (here.links().probe) here.state().links = probe_links(here, here.links());
    return here;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_JOIN_AS_HPP
