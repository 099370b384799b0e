// herring: the secret that the ranks of a job share: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SECRET_IMPL_HPP
#define HERRING_CRYPTO_SECRET_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/machine/descriptor.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// The value of a hexadecimal digit; -1: not one.
constexpr int hexadecimal_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

HERRING_SEPARABLE std::string secret_fault(std::string_view text) {
    constexpr std::string_view make = "; make one by: openssl rand -hex 32";
    if (text.empty()) return detail::text({"is empty, and a secret has 64 hexadecimal digits", make});
    if (text.size() != 2 * secret_key::size)
        return detail::text(
            {"has ", text.size(), " characters, and a secret has 64 hexadecimal digits", make});
    if (!std::all_of(text.begin(), text.end(), [](char c) { return hexadecimal_digit(c) >= 0; }))
        return detail::text(
            {"has a character that is no hexadecimal digit, and a secret has 64 of these", make});
    return {};
}

HERRING_SEPARABLE std::string secret_text(std::span<std::byte const, secret_key::size> bytes) {
    std::string digits;
    for (std::byte const b : bytes)
        for (int const shift : {4, 0})
            digits += "0123456789abcdef"[std::to_integer<unsigned>(b) >> shift & 15u];
    return digits;
}

HERRING_SEPARABLE secret::secret(std::string_view text) noexcept {
    assert(text.size() == 2 * secret_key::size);
    for (std::size_t i = 0; i < secret_key::size; ++i)
        key_.bytes()[i] =
            static_cast<std::byte>(hexadecimal_digit(text[2 * i]) * 16 + hexadecimal_digit(text[2 * i + 1]));
}

HERRING_SEPARABLE secret_key secret::key(std::span<std::byte const> salt) const noexcept {
    return hkdf_extract(salt, key_.bytes());
}

HERRING_SEPARABLE void secret::bind(std::span<std::byte const> job) noexcept {
    key_ = hkdf_key(key_, "herring job", job);
}

HERRING_SEPARABLE secrets read_secrets(std::string const& path, std::string_view name) {
    auto const refuse = [&](std::initializer_list<text_part> why) {
        throw error(errc::bad_argument, -1, -1, "join", {name, " is '", path, "', which ", text(why)});
    };
    // Without O_NONBLOCK, opening a pipe without a writer would block for ever.
    descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file.get() < 0) refuse({"cannot be read: ", std::strerror(errno)});
    struct ::stat about {};
    if (::fstat(file.get(), &about) != 0) refuse({"cannot be read: ", std::strerror(errno)});
    if (S_ISDIR(about.st_mode)) refuse({"is a directory; name the file in it"});
    if (!S_ISREG(about.st_mode)) refuse({"is not an ordinary file"});
    auto const mode_of = [](mode_t mode) {
        char words[] = " (mode 0000)";
        for (std::size_t i = 0; i < 3; ++i) words[8 + i] = static_cast<char>('0' + (mode >> (6 - 3 * i) & 7));
        return std::string(words);
    };
    if ((about.st_mode & 0007) != 0)
        refuse({"every user of the machine has rights to", mode_of(about.st_mode),
                "; take them away by: chmod 600 ", path,
                " (a Secret of Kubernetes: defaultMode: 0400), and make a new secret if somebody may have "
                "read it"});

    struct contents {
        char bytes[most_secret_file_bytes + 1];
        ~contents() { erase(bytes, sizeof bytes); }
    } read;
    std::size_t size = 0;
    while (size < sizeof read.bytes) {
        ssize_t const got = ::read(file.get(), read.bytes + size, sizeof read.bytes - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse({"cannot be read: ", std::strerror(errno)});
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    if (size > most_secret_file_bytes)
        refuse({"has more than ", most_secret_file_bytes, " bytes; it is one secret a line, at most two"});

    std::optional<secret> found[2];
    std::size_t number = 0, count = 0;
    for (std::string_view left(read.bytes, size); !left.empty();) {
        std::size_t const end = std::min(left.find('\n'), left.size());
        std::string_view line = left.substr(0, end);
        left.remove_prefix(std::min(end + 1, left.size()));
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.front() == '#') continue;
        if (std::string const fault = secret_fault(line); !fault.empty())
            refuse({"has a secret in line ", number, " that ", fault});
        if (count == 2)
            refuse(
                {"has a third secret in line ", number, "; two are the most, while one replaces the other"});
        found[count++].emplace(line);
    }
    if (count == 0) refuse({"has no secret in it; make one by: openssl rand -hex 32"});

    secrets result{std::move(*found[0]), std::move(found[1]), {}};
    bool const own = about.st_uid == ::geteuid();
    // As PostgreSQL does for keys: a group may read what root owns (a Secret of Kubernetes with fsGroup).
    if ((about.st_mode & 0070) != 0 && (own || (about.st_mode & 0020) != 0))
        result.warning = text({name, " is '", path, "', which its group has rights to",
                               mode_of(about.st_mode), "; take them away by: chmod 600 ", path});
    else if (!own && about.st_uid != 0)
        result.warning = text({name, " is '", path, "', which belongs to user ", about.st_uid,
                               ", who may read and change it; let it belong to the user of this process"});
    return result;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_SECRET_IMPL_HPP
