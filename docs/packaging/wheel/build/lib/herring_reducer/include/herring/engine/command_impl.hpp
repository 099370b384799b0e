// herring: what workers tell dedicated servers, as bytes: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_COMMAND_IMPL_HPP
#define HERRING_ENGINE_COMMAND_IMPL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/engine/command.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void command::set_name(char const* from) noexcept {
    name = {};
    std::memcpy(name.data(), from, ::strnlen(from, name.size() - 1));
}

HERRING_SEPARABLE void command::write(std::span<std::byte, bytes> to) const noexcept {
    std::memset(to.data(), 0, to.size());
    to[0] = static_cast<std::byte>(what);
    to[1] = std::byte{operation};
    to[2] = std::byte{gives};
    to[3] = std::byte{takes};
    put(&to[4], static_cast<std::uint32_t>(root));
    put(&to[8], elements);
    put(&to[16], number);
    to[24] = std::byte{twofold};
    to[25] = std::byte{rule};
    put(&to[28], moved_bytes);
    std::memcpy(&to[40], name.data(), name.size());
}

HERRING_SEPARABLE bool command::read(std::span<std::byte const> from, std::size_t operations,
                                     int ranks) noexcept {
    wire::reader in{from};
    auto const kind_of = in.number<std::uint8_t>();
    operation = in.number<std::uint8_t>();
    gives = in.number<std::uint8_t>();
    takes = in.number<std::uint8_t>();
    root = static_cast<std::int32_t>(in.number<std::uint32_t>());
    elements = in.number<std::uint64_t>();
    number = in.number<std::uint64_t>();
    auto const flag = in.number<std::uint8_t>();
    rule = in.number<std::uint8_t>();
    bool zero = true;
    for (int i = 0; i < 2; ++i) zero = in.number<std::uint8_t>() == 0 && zero;
    moved_bytes = in.number<std::uint32_t>();
    for (int i = 0; i < 8; ++i) zero = in.number<std::uint8_t>() == 0 && zero;
    in.bytes(std::as_writable_bytes(std::span(name)));
    if (!in.done() || !zero || flag > 1 || name.back() != '\0') return false;
    wire::make_printable({name.data(), std::strlen(name.data())});
    what = static_cast<kind>(kind_of);
    twofold = flag != 0;
    return kind_of >= static_cast<std::uint8_t>(kind::step) &&
           kind_of <= static_cast<std::uint8_t>(kind::leave) && operation < operations && gives <= 3 &&
           takes <= 3 && root >= -1 && root < ranks &&
           elements <= most_elements / (moved_bytes > 0 ? moved_bytes : 1);
}

HERRING_SEPARABLE command::words command::text(std::span<char const* const> rules,
                                               std::size_t stored_bytes) const noexcept {
    words said{};
    auto const put_text = [&](char const* format, auto... values) {
        std::snprintf(said.text, sizeof said.text, format, values...);
    };
    auto const n = static_cast<unsigned long long>(elements);
    char size[24] = "";
    if (moved_bytes > 0 && moved_bytes != stored_bytes)
        std::snprintf(size, sizeof size, " of %u bytes", static_cast<unsigned>(moved_bytes));
    switch (what) {
    case kind::step:
        put_text("%s", "in a step");
        break;
    case kind::collective:
        if (rule > 0 && rule <= rules.size())
            put_text("in %s by %.20s of %llu elements", name.data(), rules[rule - 1u], n);
        else if (root >= 0)
            put_text("in %s of %llu elements%s from rank %d", name.data(), n, size, static_cast<int>(root));
        else
            put_text("in %s of %llu elements%s", name.data(), n, size);
        break;
    case kind::start:
        put_text("in start from rank %d", static_cast<int>(root));
        break;
    case kind::save:
        put_text("%s", "in save");
        break;
    case kind::load:
        put_text("%s", "in load");
        break;
    case kind::leave:
        put_text("%s", "gone: its reducer was destroyed");
        break;
    }
    return said;
}

HERRING_SEPARABLE char const* command::call() const noexcept {
    switch (what) {
    case kind::step:
        return "wait";
    case kind::collective:
        return name.data();
    case kind::start:
        return "start";
    case kind::save:
        return "save";
    case kind::load:
        return "load";
    case kind::leave:
        break;
    }
    return "world";
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_COMMAND_IMPL_HPP
