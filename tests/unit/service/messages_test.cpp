// herring: tests of service/messages.hpp: what is written is read, and nothing else; a connection's bounds and tags.
// SPDX-License-Identifier: Apache-2.0
#include "herring/service/messages.hpp"

#include "doctest/doctest.h"

#include "herring/crypto/random.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

using namespace herring;
using namespace herring::detail;
using namespace herring::detail::leasing;

namespace {

ask wish() {
    ask one;
    one.type = "float, transport tcp";
    one.servers = 2;
    one.terms = {.workers = 3, .address = "10.0.0.1:4711", .seals = true, .timeout = std::chrono::seconds(7)};
    one.queue_for = std::chrono::milliseconds(1500);
    one.tensors = {{"a", 5, 1}, {"", 0}, {"b", std::size_t{1} << 40}};
    return one;
}

/// Both ends of a connection.
std::pair<lease_link, lease_link> connected() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return {lease_link(descriptor(ends[0])), lease_link(descriptor(ends[1]))};
}

} // namespace

TEST_CASE("service messages: an ask and orders are read as they were written") {
    byte_buffer const bytes = write(orders{1, "/srv/a", wish()});
    orders got;
    REQUIRE(read(got, bytes));
    CHECK(got.rank == 1);
    CHECK(got.checkpoints == "/srv/a");
    ask const due = wish();
    CHECK(got.of.type == due.type);
    CHECK(got.of.servers == 2);
    CHECK(got.of.terms.workers == 3);
    CHECK(got.of.terms.address == due.terms.address);
    CHECK(got.of.terms.seals);
    CHECK(got.of.terms.timeout == due.terms.timeout);
    CHECK(got.of.queue_for == due.queue_for);
    REQUIRE(got.of.tensors.size() == 3);
    CHECK(got.of.tensors[0].group == 1);
    CHECK(got.of.tensors[2].name == "b");
    CHECK(got.of.tensors[2].elements == std::size_t{1} << 40);
}

TEST_CASE("service messages: an ask that is cut, longer, or has numbers that no job gives is refused") {
    byte_buffer const bytes = write(wish());
    ask got;
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK_FALSE(read(got, std::span<std::byte const>(bytes).first(size)));
    byte_buffer longer = write(wish());
    wire::append<std::uint8_t>(longer, 0);
    CHECK_FALSE(read(got, longer));
    for (auto const& spoil : std::vector<void (*)(ask&)>{
             [](ask& a) { a.servers = 0; }, [](ask& a) { a.servers = 0x8000; },
             [](ask& a) { a.terms.workers = 0; }, [](ask& a) { a.terms.workers = 0x12345; },
             [](ask& a) { a.terms.workers = -1; }}) {
        ask one = wish();
        spoil(one);
        CHECK_FALSE(read(got, write(one)));
    }
}

TEST_CASE("service messages: texts of others can be shown, and times are a day at most") {
    hello said{.tenant = "a\x1b[2J"}, got;
    REQUIRE(got.read(said.write()));
    CHECK(got.tenant == "a?[2J");
    said.tenant = std::string(65, 'x');
    CHECK_FALSE(got.read(said.write()));
    ask one = wish(), found;
    one.queue_for = never;
    REQUIRE(read(found, write(one)));
    CHECK(found.queue_for == std::chrono::hours(24));
}

TEST_CASE("service link: a message comes whole or not at all, and a stranger's is short") {
    auto [a, b] = connected();
    CHECK(b.receive() == lease_link::state::nothing);
    a.send(leasing::message::knock);
    std::string const words(300, 'w');
    a.send(leasing::message::wait, std::as_bytes(std::span(words)));
    REQUIRE(b.receive() == lease_link::state::whole);
    CHECK(b.kind() == leasing::message::knock);
    REQUIRE(b.receive() == lease_link::state::whole);
    CHECK(b.kind() == leasing::message::wait);
    CHECK(std::ranges::equal(b.body(), std::as_bytes(std::span(words))));
    std::vector<std::byte> const large(most_text + 1);
    a.send(leasing::message::ask, large); // which a tenant may send
    CHECK(b.receive() == lease_link::state::wrong);
}

TEST_CASE("service link: once a tenant has proved itself, a message that was changed is refused") {
    auto [a, b] = connected();
    secret_key const key = random_key();
    wire::handshake const seen(names, key, {}, {});
    a.protect(seen, false);
    b.protect(seen, true);
    std::vector<std::byte> const large(most_ask);
    a.send(leasing::message::ask, large);
    lease_link::state got = lease_link::state::nothing;
    while ((got = b.receive()) == lease_link::state::nothing) a.flush();
    CHECK(got == lease_link::state::whole);
    CHECK(b.body().size() == most_ask);
    lease_link forger(a.release()); // the same connection, without the keys
    forger.send(leasing::message::ask);
    std::array<std::byte, wire::tag_bytes> const tag{};
    CHECK(::send(forger.socket(), tag.data(), tag.size(), 0) == static_cast<ssize_t>(tag.size()));
    CHECK(b.receive() == lease_link::state::wrong);
}

TEST_CASE("service link: an end is an end, also in the middle of a message") {
    auto [a, b] = connected();
    byte_buffer whole;
    wire::append_message(whole, static_cast<wire::message_kind>(leasing::message::knock), 0, 0, {},
                         protocol_version);
    CHECK(::send(a.socket(), whole.data(), whole.size() - 1, 0) == static_cast<ssize_t>(whole.size() - 1));
    CHECK(b.receive() == lease_link::state::nothing);
    { descriptor const closed = a.release(); }
    CHECK(b.receive() == lease_link::state::closed);
}
