// herring: tests of engine/messages.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/messages.hpp"

#include "doctest/doctest.h"

#include "herring/engine/ledger.hpp"

#include <cstdint>
#include <set>

using herring::detail::execution_ledger;
using herring::detail::message;
using herring::detail::tag_of;
using herring::detail::token;

TEST_CASE("messages: a token comes back as it was") {
    std::size_t const most = token::low;
    for (message const what : {message::push, message::result, message::part, message::dissemination})
        for (std::size_t const peer : {std::size_t{0}, std::size_t{1}, std::size_t{511}, most})
            for (std::size_t const slot : {std::size_t{0}, std::size_t{7}, most})
                for (std::uint64_t const execution : {std::uint64_t{0}, std::uint64_t{5}, token::low}) {
                    token const back = token::unpacked(token{what, peer, slot, execution}.packed());
                    CHECK(back.what == what);
                    CHECK(back.peer == peer);
                    CHECK(back.slot == slot);
                    CHECK(back.execution == execution);
                }
}

TEST_CASE("messages: a ring of executions has no more places than tokens can name") {
    CHECK(token::can_name(0));
    CHECK(token::can_name(token::low));
    CHECK_FALSE(token::can_name(token::low + 1));
    // The ledger rounds up: its ring is what counts, and not the executions that were asked for.
    for (std::size_t const asked : {std::size_t{524'286}, std::size_t{524'288}, std::size_t{1'048'574},
                                    std::size_t{1'048'576}, std::size_t{1'060'004}})
        CHECK(token::can_name(asked) == (execution_ledger(asked).mask() <= token::low));
}

TEST_CASE("messages: tags of different kinds never meet") {
    std::set<std::uint64_t> tags;
    for (message const what : {message::push, message::result, message::part, message::dissemination})
        for (std::uint64_t const number : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 28) - 1})
            tags.insert(tag_of(what, number, 0xabcde, 77) & ~herring::carried_bits);
    CHECK(tags.size() == 12);
    // The fingerprint and the execution's number are carried along, 20 bits and 12.
    CHECK((tag_of(message::part, 5, 0xfffff, 0xfff) ^ tag_of(message::part, 5, 0, 0)) ==
          herring::carried_bits);
    herring::completion const done{.bytes = 12,
                                   .what = herring::completion::received,
                                   .tag = tag_of(message::push, 3, 0x12345, 4096 * 7 + 99)};
    herring::detail::arrival const got = herring::detail::arrival_of(done);
    CHECK(got.here);
    CHECK(got.bytes == 12);
    CHECK(got.fingerprint == 0x12345);
    CHECK(got.execution == 99);
}
