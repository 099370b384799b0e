// herring: fuzz target of join/gather_exchange.hpp: whatever a gather returns, in both calls of a join.
// SPDX-License-Identifier: Apache-2.0
//
// Input: how many ranks, which of them this one is, whether it has a secret; for each call how many replies, and for each reply
// what stands in front of it (1: a front, 2: that the rank has not failed, 4: the digest of the job), its length, and its bytes.
#include "fuzz.hpp"

#include "herring/join/gather.hpp"
#include "herring/join/gather_exchange.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace herring::detail;
using fuzz::require;

namespace {

struct played {
    fuzz::input& in;
    int rank, size;
    gather_exchange const* exchange = nullptr;
    std::uint8_t call = 0;
    std::vector<std::string> replies{};

    std::vector<std::string> const& operator()(std::span<std::byte const> mine) {
        ++call;
        replies.clear();
        std::size_t const given = in.number(1) % 8;
        std::size_t const count = given == 7 ? static_cast<std::size_t>(size) : given;
        for (std::size_t r = 0; r < count; ++r) {
            auto const front = in.number(1);
            std::string_view const bytes = in.text(in.number(1));
            if ((front & 1) != 0 && static_cast<int>(r) == rank) {
                replies.emplace_back(reinterpret_cast<char const*>(mine.data()), mine.size());
                continue;
            }
            byte_buffer body, reply;
            if ((front & 2) != 0) wire::append<std::uint8_t>(body, 0);
            if ((front & 4) != 0) body.append(exchange->identity());
            wire::append(body, bytes);
            gather_front sound;
            sound.call = call;
            sound.rank = static_cast<std::uint32_t>(r);
            sound.size = static_cast<std::uint32_t>(size);
            sound.bytes = static_cast<std::uint32_t>(body.size());
            if ((front & 1) != 0) reply = sound.write();
            reply.append(body);
            replies.emplace_back(reinterpret_cast<char const*>(reply.data()), reply.size());
        }
        return replies;
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    int const ranks = 1 + static_cast<int>(in.number(1) % 4);
    join_target who;
    who.rank = static_cast<int>(in.number(1)) % ranks;
    who.size = ranks;
    if (in.number(1) % 2 != 0) who.secret.emplace(secrets{secret(std::string(64, 'a')), {}, {}});
    fuzz::memory::begin();
    played gather{in, who.rank, ranks};
    auto const call = [&gather](std::span<std::byte const> mine) -> auto const& { return gather(mine); };
    gather_exchange exchange(gather_call::by(call), who.rank, ranks, "gather");
    gather.exchange = &exchange;
    auto const once = [&](std::span<std::byte const> mine, auto&& take) {
        try {
            take(all_or_none(who.rank, "join", {}, mine, exchange));
            return true;
        } catch (herring::error const& why) {
            require(why.peer() >= -1 && why.peer() < ranks, "an error names a rank of the world");
            require(why.why().text[0] != 0, "and says why");
            for (char const c : std::string_view(why.what()))
                require(c != '\x1b' && c != '\r', "in words that can be shown");
            return false;
        }
    };
    gathered_rank mine;
    mine.has_secret = who.secret.has_value();
    bool near = false;
    bool const first = once(mine.write(), [&](given_by_all const& all) {
        near = all_are_near(all, mine, who.rank, {});
        require(static_cast<int>(all.size()) == ranks, "the bytes of every rank");
    });
    byte_buffer words;
    words.append(exchange.identity());
    if (who.rank == 0) wire::append(words, std::string(64, '1') + "127.0.0.1:1");
    bool const second = once(words, [&](given_by_all const& all) {
        require(gather.call == 2, "two calls");
        for (std::size_t r = 0; r < all.size(); ++r) {
            auto const rest = exchange.of_same_job(all[r], r);
            require(rest.size() + 32 == all[r].size(), "all but the digest is a rank's own");
            if (r == 0) take_address(who, rest);
        }
    });
    if (first && second) {
        require(who.secret.has_value(), "a rank that may join has a secret");
        require(who.rank == 0 || (!who.host.empty() && who.port != 0), "and an address");
    }
    fuzz::memory::require_below(64 * size + 65536, 256 * size + (1 << 20));
    return 0;
}
