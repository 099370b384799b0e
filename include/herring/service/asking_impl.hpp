// herring: rank 0's end of a service: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_ASKING_IMPL_HPP
#define HERRING_SERVICE_ASKING_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/control.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/life_signs.hpp"
#include "herring/net/sockets.hpp"
#include "herring/service/messages.hpp"
#include "herring/service/service.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

namespace HERRING_NAMESPACE::detail::leasing {

/// One attempt at one service.
class attempt {
  public:
    HERRING_SETUP attempt(lent_servers const& wanted, std::string const& service)
        : wanted_(wanted), service_(service) {}

    /// Errors: `no_resources` where others hold what is asked for.
    HERRING_SETUP lease run(lease_terms const& of, std::chrono::milliseconds queue_for) {
        dial();
        prove();
        ask wish{.type = wanted_.type,
                 .servers = static_cast<std::uint32_t>(wanted_.count),
                 .terms = of,
                 .queue_for = queue_for,
                 .tensors = wanted_.tensors};
        over_.send(message::ask, wish.write());
        message kind{};
        do kind = next();
        while (kind == message::wait);
        if (kind != message::grant) fail(errc::protocol, {"it sent a message that no service sends then"});
        tune(over_.socket(), silence); // a host that vanishes is noticed
        return {over_.release(), secret_text(handshake_.keys().resumption_key().bytes()), service_};
    }

  private:
    static constexpr std::chrono::seconds silence{5};

    [[noreturn]] HERRING_SETUP void fail(errc what, std::initializer_list<text_part> why) const {
        throw error(what, 0, -1, "join", {"the service at ", service_, ": ", text(why)});
    }

    HERRING_SETUP void dial() {
        host_and_port const at = split_address(service_, "lent_servers::services");
        time_point const deadline = deadline_in(silence);
        std::string why;
        for (endpoint const& to : resolve(at.host, at.port, deadline, why)) {
            descriptor made;
            if (!detail::dial(made, to, silence)) {
                why = std::strerror(errno);
                continue;
            }
            int const socket = made.get();
            wait_for(socket, POLLOUT, deadline);
            if (int const failed = connect_error(socket); failed != 0) {
                why = std::strerror(failed);
                continue;
            }
            over_ = lease_link(std::move(made));
            return;
        }
        fail(errc::unreachable, {"it cannot be reached: ", why, "; see that it runs, and its address"});
    }

    HERRING_SETUP void prove() {
        secrets const key = read_secrets(wanted_.key_file, "lent_servers::key_file");
        over_.send(message::knock);
        wire::challenge asked;
        if (next() != message::challenge || !asked.read(over_.body()) || !asked.has_secret || asked.seals)
            fail(errc::protocol, {"what listens there is no service of this version"});
        byte_buffer challenge, words;
        challenge.append(over_.body());
        secret_key const by = key.proves.key(asked.salt);
        (void)handshake_.reply(names, words, challenge, asked, hello{.tenant = wanted_.tenant}, nullptr, &by);
        over_.send(message::hello, words);
        wire::proof shown{};
        std::span<std::byte const> before;
        if (next() != message::admit || !wire::split_proof(over_.body(), before, shown) ||
            !handshake_.proves(shown, before))
            fail(errc::refused, {"it did not prove that it has the key of tenant '", wanted_.tenant, "'"});
        over_.protect(handshake_.keys(), false);
    }

    /// Returns the kind of the next message; throws a refusal.
    HERRING_SETUP message next() {
        time_point const deadline = deadline_in(silence);
        while (true) {
            lease_link::state const got = over_.receive();
            if (got == lease_link::state::whole) break;
            if (got == lease_link::state::wrong)
                fail(errc::protocol, {"what it sends is no message of a service"});
            if (got == lease_link::state::closed)
                fail(errc::unreachable, {"it closed the connection: did it end, or is it full?"});
            over_.flush();
            if (!wait_for(over_.socket(), over_.wants_write() ? POLLIN | POLLOUT : POLLIN, deadline))
                fail(errc::unreachable, {"it did not answer within 5 s: is it stopped, or its host?"});
        }
        if (over_.kind() != message::refuse) return over_.kind();
        failure said;
        if (!wire::read_failure(over_.body(), std::numeric_limits<int>::max(), said))
            fail(errc::protocol, {"a refusal that cannot be read"});
        fail(said.what, {said.text});
    }

    HERRING_SETUP static bool wait_for(int socket, int what, time_point deadline) noexcept {
        pollfd one{socket, static_cast<short>(what), 0};
        while (true) {
            int const got = ::poll(&one, 1, poll_timeout(deadline));
            if (got > 0) return true;
            if (clock::now() >= deadline) return false;
        }
    }

    lent_servers const& wanted_;
    std::string const& service_;
    lease_link over_{};
    wire::dialler_handshake handshake_{};
};

HERRING_SEPARABLE lease ask_services(lent_servers const& wanted, lease_terms const& of) {
    if (wanted.services.empty() || wanted.count < 1 || wanted.tensors.size() > most_tensors)
        bad_setting({"join_options::servers: ", wanted.count, " servers, of ", wanted.services.size(),
                     " services, for ", wanted.tensors.size(),
                     " tensors; ask for at least one, of a service, for at most ", most_tensors});
    time_point const end = deadline_in(wanted.queue_for);
    std::vector<std::string> busy = wanted.services;
    failure last;
    std::string all;
    for (bool waits = wanted.services.size() == 1; !busy.empty(); waits = true) {
        all.clear();
        for (std::string const& service : std::exchange(busy, {})) try {
                auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
                return attempt(wanted, service)
                    .run(of,
                         waits ? std::max(left, std::chrono::milliseconds(0)) : std::chrono::milliseconds(0));
            } catch (error const& why) {
                last = why.why();
                append(all, {all.empty() ? "" : "; ", last.text});
                if (!waits && last.what == errc::no_resources) busy.push_back(service);
            }
        if (wanted.queue_for.count() == 0) break;
    }
    throw error(last.what, 0, -1, "join", all);
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_ASKING_IMPL_HPP
