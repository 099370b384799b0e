// herring: begins and ends a checkpoint that is written in gaps, together with all ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SAVED_IN_GAPS_IMPL_HPP
#define HERRING_SESSION_SAVED_IN_GAPS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/control/world.hpp"
#include "herring/session/checkpoint.hpp"
#include "herring/session/saved_in_gaps.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void saved_in_gaps::begin(world& ranks, std::string const& path,
                                            checkpoint_kind const& kind, training_values const& values,
                                            std::span<checkpoints::tensor_memory const> owned,
                                            std::span<std::byte const> user) {
    bool const owns = !owned.empty();
    failure const so_far = failure_of(ranks.rank(), "begin", [&] {
        user_.assign(user.begin(), user.end());
        folder_ = path;
    });
    try {
        begin_save(begun_.emplace(), ranks, "begin", path, kind, values, owned, user_, 0, so_far);
    } catch (...) {
        begun_.reset();
        throw;
    }
    // From here on this rank throws nothing: it would be the only one.
    if (owns) part_.open(owned, kind.shape, *begun_->where, begun_->values.steps, begun_->generation);
}

HERRING_SEPARABLE void saved_in_gaps::finish(world& ranks, checkpoint_kind const& kind) {
    part_.finish();
    struct ended {
        saved_in_gaps& of;
        ~ended() {
            of.part_.close();
            of.begun_.reset();
        }
    } const afterwards{*this};
    bool const wrote = part_.has_file() && part_.how().what == errc::ok;
    end_save(*begun_, ranks, "finish", kind, part_.how(), wrote ? &part_.entry() : nullptr);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_SAVED_IN_GAPS_IMPL_HPP
