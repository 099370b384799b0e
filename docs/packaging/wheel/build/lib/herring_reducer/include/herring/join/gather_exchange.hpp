// herring: the exchanges of a join through a gather: what each rank gives, and how the bytes of all are read.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_GATHER_EXCHANGE_HPP
#define HERRING_JOIN_GATHER_EXCHANGE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/base/version.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/join/gather_call.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The front of the bytes that a rank gives to a call of gather.
struct gather_front {
    static constexpr std::string_view name = "herring join ";
    static constexpr std::size_t most_version = 32;

    std::uint8_t call = 1;
    std::string_view version = HERRING_VERSION_STRING;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    std::uint32_t bytes = 0; // behind the front

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        wire::append(out, name);
        wire::append<std::uint8_t>(out, version.size());
        wire::append(out, version);
        wire::append<std::uint8_t>(out, call);
        wire::append<std::uint32_t>(out, rank);
        wire::append<std::uint32_t>(out, size);
        wire::append<std::uint32_t>(out, bytes);
        return out;
    }
    /// Reads the front; another version need not have more than the name and the version in common. False: no
    /// rank of this version gives that.
    ///
    /// Lifetime: `version` points into the bytes.
    HERRING_SETUP bool read(wire::reader& in) noexcept {
        bool const named = in.text(name.size()) == name;
        std::size_t const length = in.number<std::uint8_t>();
        version = in.text(length);
        if (!named || !in.ok || length == 0 || length > most_version || !printable(version)) {
            version = {};
            return false;
        }
        call = in.number<std::uint8_t>();
        rank = in.number<std::uint32_t>();
        size = in.number<std::uint32_t>();
        bytes = in.number<std::uint32_t>();
        return in.ok && bytes == in.rest.size();
    }

  private:
    static bool printable(std::string_view text) noexcept {
        return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
    }
};

/// The two calls of gather, the same on every rank. Each checks that the bytes of all ranks are of this
/// version, size and call.
class gather_exchange {
  public:
    gather_exchange(gather_call gather, int rank, int size, std::string_view source)
        : gather_(gather), rank_(rank), size_(size), source_(source) {}

    /// Calls gather: returns the bytes of all ranks, without their fronts.
    ///
    /// Errors: those of gather; `unreachable` where it throws another exception, `bad_argument` where it
    ///         returns the bytes of too many or too few ranks, else `mismatch` naming a rank.
    HERRING_SETUP gather_result operator()(std::span<std::byte const> mine) {
        gather_front front;
        front.call = ++calls_;
        front.rank = static_cast<std::uint32_t>(rank_);
        front.size = static_cast<std::uint32_t>(size_);
        front.bytes = static_cast<std::uint32_t>(mine.size());
        byte_buffer given = front.write();
        given.append(mine);
        gather_result const all = call(given);
        if (all.size() != static_cast<std::size_t>(size_))
            throw error(errc::bad_argument, rank_, -1, "join",
                        {source_, " returned the bytes of ", all.size(), " ranks in a world of ", size_,
                         "; let it return those of every rank, by rank, also of ranks that gave none"});
        if (rank_ >= 0 && rank_ < size_) check_own(all[static_cast<std::size_t>(rank_)], given);
        fixed_array<std::size_t> sizes(all.size());
        std::size_t const skipped = given.size() - mine.size();
        for (std::size_t r = 0; r < all.size(); ++r) {
            check(all[r], r, front);
            sizes[r] = all[r].size() - skipped;
        }
        gather_result words(std::move(sizes));
        sha256 digest;
        for (std::size_t r = 0; r < all.size(); ++r) {
            digest.update(all[r]);
            if (words[r].size() != 0) std::memcpy(words[r].data(), all[r].data() + skipped, words[r].size());
        }
        if (calls_ == 1) identity_ = digest.finish();
        return words;
    }

    /// True after gather has thrown. It is not called again.
    bool broken() const noexcept { return broken_; }
    /// The digest of the bytes of all ranks in the first call: no other job has it, where each rank gives
    /// random bytes.
    sha256_digest const& identity() const noexcept { return identity_; }

    /// Returns what rank `r` gives to the second call behind its identity.
    ///
    /// Errors: `mismatch`, if that is another one: the two ranks have not been given the same in the first
    ///         call.
    HERRING_SETUP std::span<std::byte const> of_same_job(std::span<std::byte const> bytes,
                                                         std::size_t r) const {
        if (bytes.size() >= identity_.size() && std::equal(identity_.begin(), identity_.end(), bytes.begin()))
            return bytes.subspan(identity_.size());
        refuse(r,
               {source_,
                " has given it other bytes than this rank: some are of another job, for example of an "
                "earlier one that has left them in a store; give each call of each job a place of its own, "
                "a fresh folder or prefix"});
    }

  private:
    HERRING_SETUP gather_result call(std::span<std::byte const> given) {
        broken_ = true;
        auto const fails = [&](errc code, std::string_view why) {
            return error(
                code, rank_, -1, "join",
                {source_, " threw in call ", static_cast<int>(calls_), " of 2: ", why,
                 "; see why it does not work on this rank. The other ranks wait for this one as long "
                 "as it lets them"});
        };
        try {
            gather_result all = gather_(given);
            broken_ = false;
            return all;
        } catch (error const&) {
            throw;
        } catch (std::bad_alloc const& why) {
            throw fails(errc::no_resources, why.what());
        } catch (std::exception const& why) {
            throw fails(errc::unreachable, why.what());
        }
    }

    /// Ends the join. `peer`: the rank that differs; −1: the gather of this rank returned what it must not.
    [[noreturn]] HERRING_SETUP void refuse(std::size_t peer, std::initializer_list<text_part> why) const {
        throw error(errc::mismatch, rank_, peer == own_gather ? -1 : static_cast<int>(peer), "join", why);
    }
    static constexpr std::size_t own_gather = ~std::size_t{0};

    /// Throws unless this rank's bytes have come back as they were given.
    HERRING_SETUP void check_own(std::span<std::byte const> bytes, std::span<std::byte const> given) const {
        if (std::equal(bytes.begin(), bytes.end(), given.begin(), given.end())) return;
        refuse(own_gather,
               {source_, " returned in call ", static_cast<int>(calls_),
                " other bytes of this rank than it gave: another process says that it is rank ", rank_,
                ", or they are of another call or job; give each process a rank of its own, and each call of "
                "each job a place of its own"});
    }

    /// Throws unless `bytes` are what rank `r` gives to this call.
    HERRING_SETUP void check(std::span<std::byte const> bytes, std::size_t r, gather_front const& own) const {
        int const call = calls_;
        if (bytes.empty())
            refuse(own_gather, {source_, " returned no bytes of rank ", r, " in call ", call,
                                "; let it wait until every rank has given its bytes"});
        wire::reader in{bytes};
        gather_front front;
        bool const whole = front.read(in);
        if (!front.version.empty() && front.version != own.version)
            refuse(r, {"it runs Herring ", front.version, ", this rank ", own.version,
                       "; run one version on every rank"});
        if (!whole || front.call != own.call)
            refuse(own_gather,
                   {source_, " returned ", bytes.size(), " bytes of rank ", r, " that no rank gives to call ",
                    call,
                    ": they are cut short, or of another call or program; let every rank make the same calls "
                    "in the same order, and give each call a place of its own"});
        if (front.size != own.size)
            refuse(r, {"it joins a world of ", front.size, " ranks, this rank one of ", size_,
                       "; give the same size on every rank"});
        if (front.rank != r)
            refuse(own_gather, {source_, " returned the bytes of rank ", front.rank, " in place of rank ", r,
                                "'s; let it return them by rank, and give each process a rank of its own"});
    }

    gather_call gather_;
    int rank_, size_;
    std::string_view source_;
    std::uint8_t calls_ = 0;
    bool broken_ = false;
    sha256_digest identity_{};
};

/// The bytes of a rank to the first call: its node, whether it has a secret, and what makes them this call's.
struct gathered_rank {
    std::array<std::byte, 32> nonce{};
    std::uint64_t node = 0;
    bool has_secret = false;

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        wire::append<std::uint64_t>(out, node);
        wire::append<std::uint8_t>(out, has_secret ? 1 : 0);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        wire::reader in{from};
        in.bytes(nonce);
        node = in.number<std::uint64_t>();
        auto const flag = in.number<std::uint8_t>();
        has_secret = flag == 1;
        return in.done() && flag <= 1;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_GATHER_EXCHANGE_HPP
