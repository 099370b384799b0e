// herring: fuzz target of service/messages.hpp: what a job, a service or a stranger sends, from any bytes.
// SPDX-License-Identifier: Apache-2.0
//
// Input: what it is (an ask, orders, a hello, a stream of messages), then its bytes.
#include "fuzz.hpp"

#include "herring/service/messages.hpp"

#include <algorithm>

#include <sys/socket.h>

using namespace herring::detail;
using fuzz::require;

namespace {

template <class Message> void read_again(std::span<std::byte const> body) {
    Message found, again;
    if (!leasing::read(found, body)) return;
    byte_buffer const bytes = leasing::write(found);
    require(leasing::read(again, bytes), "what is read can be written");
    byte_buffer const twice = leasing::write(again);
    require(std::equal(bytes.begin(), bytes.end(), twice.begin(), twice.end()), "it comes back as it was");
}

void stream(std::span<std::byte const> bytes) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets");
    descriptor sender(ends[0]);
    leasing::lease_link at{descriptor(ends[1])};
    bytes = bytes.first(std::min<std::size_t>(bytes.size(), 16'384));
    require(bytes.empty() ||
                ::send(sender.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
            "room for all bytes");
    { descriptor const closed = std::move(sender); }
    leasing::lease_link::state got{};
    while ((got = at.receive()) == leasing::lease_link::state::whole)
        require(at.body().size() <= leasing::most_text, "a stranger's message is short");
    require(got != leasing::lease_link::state::nothing, "it comes to an end");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    fuzz::memory::begin();
    switch (in.number(1) % 4) {
    case 0:
        read_again<leasing::ask>(in.rest);
        break;
    case 1:
        read_again<leasing::orders>(in.rest);
        break;
    case 2:
        if (leasing::hello said; said.read(in.rest))
            require(said.tenant.size() <= leasing::most_name, "the name of a tenant is short");
        break;
    default:
        stream(in.rest);
    }
    fuzz::memory::require_below(16 * size + 65'536, 64 * size + 262'144);
    return 0;
}
