// herring: the secrets of a rank, as keys of the world that it joins.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_SECRET_KEYS_HPP
#define HERRING_CONTROL_RENDEZVOUS_SECRET_KEYS_HPP

#include "herring/base/config.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"

#include <optional>
#include <utility>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The secrets of this process, which may be none, and the keys that they are with rank 0's salt.
///
/// Cost:    a weak secret takes `secret_rounds` once for each salt, which is a rank 0's: some tenths of a second.
class secret_keys {
  public:
    explicit secret_keys(std::optional<secrets>&& given) noexcept : given_(std::move(given)) {}

    bool any() const noexcept { return given_.has_value(); }

    /// What this rank proves itself by. There is one.
    secret_key const& proves(wire::salt const& with) { return key(given_->proves, proves_, with); }
    /// What it believes too; nullptr without.
    secret_key const* also(wire::salt const& with) {
        return any() && given_->also ? &key(*given_->also, also_, with) : nullptr;
    }

  private:
    struct salted {
        wire::salt with{};
        secret_key key{};
    };
    HERRING_SETUP static secret_key const& key(secret const& of, std::optional<salted>& made,
                                               wire::salt const& with) {
        if (!made || made->with != with) made.emplace(salted{with, of.key(with)});
        return made->key;
    }

    std::optional<secrets> given_;
    std::optional<salted> proves_, also_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_SECRET_KEYS_HPP
