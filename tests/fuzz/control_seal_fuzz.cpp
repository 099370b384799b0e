// herring: fuzz target of sealed control connections: messages that are changed, cut, repeated, left out or reordered on their way.
// SPDX-License-Identifier: Apache-2.0
//
// Input: records: what a rank says, and what becomes of that before it comes in. Whatever it is, what is taken is the beginning of what
// was said, and nothing behind the first difference.
#include "fuzz.hpp"

#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/net/handshake.hpp"
#include "toy_seals.hpp"

#include <algorithm>
#include <utility>
#include <vector>

using namespace herring::detail;
using fuzz::require;
using rendezvous::message_kind;

namespace {

constexpr std::size_t ranks = 4;

struct said_message {
    message_kind kind{};
    std::uint64_t sequence = 0;
    std::vector<std::byte> body{};
};

/// Kinds that a rank may send, each with as long a body as it may have.
said_message next_said(fuzz::input& in) {
    constexpr message_kind kinds[] = {message_kind::barrier,   message_kind::contribute,
                                      message_kind::fail,      message_kind::leave,
                                      message_kind::heartbeat, message_kind::deadline_passed,
                                      message_kind::suspicion, message_kind::probe_reply};
    said_message made;
    made.kind = kinds[in.number(1) % std::size(kinds)];
    made.sequence = in.number(1);
    std::size_t const most = rendezvous::most_body(made.kind, {ranks, false, true});
    auto const body = in.bytes(std::min<std::size_t>(in.number(1), most));
    made.body.assign(body.begin(), body.end());
    return made;
}

rendezvous::frame_seal end_of(bool at_rank_0) {
    static secret_key const secret(random_nonce()), shared(random_nonce());
    byte_buffer const nothing;
    return rendezvous::handshake(rendezvous::rank_names, secret, nothing, nothing, &shared)
        .seal(at_rank_0, toy_seals::table());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    std::vector<said_message> said;
    std::vector<std::byte> honest, comes; // as they were sealed, and as they come in
    rendezvous::frame_seal rank = end_of(false);
    std::vector<std::byte> last;
    while (!in.empty() && said.size() < 64) {
        auto const what = in.number(1);
        if (what % 8 == 7) { // somebody else's bytes
            auto const raw = in.bytes(in.number(1));
            comes.insert(comes.end(), raw.begin(), raw.end());
            continue;
        }
        said.push_back(next_said(in));
        byte_buffer sealed;
        require(rank.append(sealed, said.back().kind, 1, said.back().sequence, said.back().body,
                            rendezvous::protocol_version),
                "it is sealed");
        std::vector<std::byte> message(sealed.begin(), sealed.end());
        honest.insert(honest.end(), message.begin(), message.end());
        std::vector<std::byte> const whole = message;
        if (what % 8 == 1) message[in.number(2) % message.size()] ^= static_cast<std::byte>(in.number(1));
        if (what % 8 == 2) message.resize(message.size() - in.number(2) % message.size());
        if (what % 8 == 3) message.insert(message.end(), whole.begin(), whole.end());
        if (what % 8 == 4) message.clear();
        if (what % 8 == 5) message.insert(message.begin(), last.begin(), last.end());
        comes.insert(comes.end(), message.begin(), message.end());
        last = whole;
    }
    std::size_t const same = static_cast<std::size_t>(
        std::mismatch(honest.begin(), honest.end(), comes.begin(), comes.end()).first - honest.begin());

    // The endpoint's loop: bytes in pieces, each whole message once.
    fuzz::memory::begin();
    rendezvous::connection at;
    at.rank = 1;
    at.seal.emplace(end_of(true));
    std::size_t taken = 0, bytes = 0;
    bool wrong = false;
    std::size_t const piece = 1 + (size == 0 ? 0 : data[0]);
    for (std::size_t from = 0; from < comes.size() && !wrong; from += piece) {
        at.in.append({comes.data() + from, std::min(piece, comes.size() - from)});
        std::size_t begin = 0;
        while (true) {
            auto const next = at.parse(begin, rendezvous::sender{ranks, false, true});
            using state = parsed_message::state;
            wrong = next.is != state::whole && next.is != state::incomplete;
            if (next.is != state::whole) break;
            require(taken < said.size(), "no more is taken than was said");
            said_message const& expected = said[taken++];
            require(next.front.type == expected.kind && next.front.sequence == expected.sequence &&
                        next.front.rank == 1 && std::ranges::equal(next.body, expected.body),
                    "what is taken is what was said, in order");
            begin += next.bytes;
            bytes += next.bytes;
        }
        if (begin > 0) at.in.drop(begin);
    }
    require(bytes <= same, "nothing is taken behind the first difference");
    if (comes == honest) require(taken == said.size() && !wrong, "what nobody touched is taken whole");
    fuzz::memory::require_below(2 * comes.size() + 4096, 8 * comes.size() + 16384);
    return 0;
}
