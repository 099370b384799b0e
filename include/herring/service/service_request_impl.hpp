// herring: set-up code of service.hpp: rank 0, which asks services for servers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_SERVICE_REQUEST_IMPL_HPP
#define HERRING_SERVICE_SERVICE_REQUEST_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/lent_servers.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/life_signs.hpp"
#include "herring/net/sockets.hpp"
#include "herring/service/messages.hpp"
#include "herring/service/service.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>

namespace HERRING_NAMESPACE::detail::leasing {

/// One service that is asked, by rank 0.
struct asked_service {
    std::string name;
    lease_link over{};

    [[noreturn]] HERRING_SETUP void fail(errc what, std::initializer_list<text_part> why) const {
        throw error(what, 0, -1, "join", {"the service at ", name, ": ", text(why)});
    }
    HERRING_SETUP static bool wait_for(int socket, int what, time_point deadline) noexcept {
        pollfd one{socket, static_cast<short>(what), 0};
        int got = 0;
        while ((got = ::poll(&one, 1, poll_timeout(deadline))) <= 0 && clock::now() < deadline) {
        }
        return got > 0;
    }

    HERRING_SETUP void dial() {
        host_and_port const at = split_address(name, "lent_servers::services");
        std::string why;
        for (endpoint const& to : resolve(at.host, at.port, deadline_in(silence), why)) {
            descriptor made;
            if (detail::dial(made, to, silence)) {
                (void)wait_for(made.get(), POLLOUT, deadline_in(silence));
                errno = connect_error(made.get());
                if (errno == 0) return void(over = lease_link(std::move(made)));
            }
            why = std::strerror(errno);
        }
        fail(errc::unreachable, {"it cannot be reached: ", why, "; see that it runs, and its address"});
    }

    /// Returns the kind of the next message; throws a refusal.
    HERRING_SETUP message next() {
        time_point const deadline = deadline_in(silence);
        lease_link::state got{};
        while ((got = over.receive()) == lease_link::state::nothing) {
            over.flush();
            if (!wait_for(over.socket(), over.wants_write() ? POLLIN | POLLOUT : POLLIN, deadline))
                fail(errc::unreachable, {"it did not answer within 5 s: is it stopped, or its host?"});
        }
        if (got == lease_link::state::closed)
            fail(errc::unreachable, {"it closed the connection: did it end, or is it full?"});
        if (got == lease_link::state::other) fail(errc::mismatch, {other_version});
        if (got == lease_link::state::wrong) fail(errc::protocol, {no_service});
        failure said;
        if (over.kind() == message::refuse &&
            wire::read_failure(over.body(), std::numeric_limits<int>::max(), said))
            fail(said.what, {said.text});
        return over.kind();
    }

    HERRING_SETUP lease ask_for(lent_servers const& wanted, lease_terms const& of, std::string const& tenant,
                                secrets const& key, std::chrono::milliseconds queue_for) {
        dial();
        over.send(message::knock);
        wire::challenge asked;
        if (next() != message::challenge || !asked.read(over.body()) || !asked.has_secret || asked.seals)
            fail(errc::protocol, {no_service});
        byte_buffer challenge, words;
        challenge.append(over.body());
        secret_key const by = key.proves.key(asked.salt);
        wire::dialler_handshake proves;
        (void)proves.reply(names, words, challenge, asked, hello{{}, tenant}, nullptr, &by);
        over.send(message::hello, words);
        wire::proof shown{};
        std::span<std::byte const> before;
        if (next() != message::admit || !wire::split_proof(over.body(), before, shown) ||
            !proves.proves(shown, before))
            fail(errc::refused, {"it did not prove that it has the key of tenant '", tenant, "'"});
        over.protect(proves.keys(), false);
        byte_buffer const wish = write(ask{.type = wanted.type,
                                           .servers = static_cast<std::uint32_t>(wanted.count),
                                           .terms = of,
                                           .queue_for = queue_for,
                                           .tensors = {wanted.tensors.begin(), wanted.tensors.end()}});
        if (wish.size() > most_ask || wanted.tensors.size() > most_tensors)
            fail(errc::bad_argument, {"a layout of ", wanted.tensors.size(), " tensors, in ", wish.size(),
                                      " bytes; at most ", most_tensors, ", in ", most_ask});
        over.send(message::ask, wish);
        message kind{};
        do kind = next();
        while (kind == message::wait);
        if (kind != message::grant) fail(errc::protocol, {"it sent a message that no service sends then"});
        return {over.release(), secret_text(proves.keys().resumption_key().bytes()), name};
    }

    static constexpr std::chrono::seconds silence{5};
    static constexpr char const* no_service = "what listens there is no service";
};

HERRING_SEPARABLE lease ask_services(lent_servers const& wanted, lease_terms const& of) {
    if (wanted.services.empty())
        bad_setting({"join_options::servers names no service; give \"host:port\" of one"});
    auto const from = variables::of_process();
    std::string const tenant(wanted.tenant.empty() ? from.text("HERRING_TENANT") : wanted.tenant),
        file(wanted.key_file.empty() ? from.text("HERRING_TENANT_KEY_FILE") : wanted.key_file);
    if (tenant.empty() || file.empty())
        bad_setting({"servers of a service are lent to tenants; give lent_servers::tenant and key_file, or "
                     "HERRING_TENANT and HERRING_TENANT_KEY_FILE"});
    secrets const key = read_secrets(file, text({"the key file of tenant '", tenant, "'"}));
    if (!key.warning.empty()) std::fprintf(stderr, "herring: %s\n", key.warning.c_str());
    time_point const end = deadline_in(wanted.queue_for);
    std::vector<std::string> busy;
    for (std::string_view rest = wanted.services; !rest.empty();) {
        busy.emplace_back(rest.substr(0, rest.find(',')));
        rest.remove_prefix(std::min(busy.back().size() + 1, rest.size()));
    }
    failure last;
    std::string all;
    // First all of them without waiting, where there are several.
    for (bool waits = busy.size() == 1; !busy.empty(); waits = true) {
        all.clear();
        for (std::string const& service : std::exchange(busy, {})) try {
                auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
                return asked_service{service}.ask_for(wanted, of, tenant, key, waits ? left : left - left);
            } catch (error const& why) {
                last = why.why();
                append(all, {all.empty() ? "" : "; ", last.text});
                if (!waits && last.what == errc::no_resources && wanted.queue_for.count() > 0)
                    busy.push_back(service);
            }
    }
    throw error(last.what, 0, -1, "join", all);
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_SERVICE_REQUEST_IMPL_HPP
