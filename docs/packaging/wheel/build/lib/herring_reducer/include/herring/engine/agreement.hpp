// herring: the comparison of all ranks' plans before anything moves; it names the rank that differs, and how.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_AGREEMENT_HPP
#define HERRING_ENGINE_AGREEMENT_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/world.hpp"
#include "herring/model/layout.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Facts with names, as text: what one rank is about to run.
class declaration {
  public:
    HERRING_SEPARABLE void add(std::initializer_list<text_part> field,
                               std::initializer_list<text_part> value);
    std::string const& text() const noexcept { return text_; }

    /// The first line in which two declarations differ, from either side.
    HERRING_SEPARABLE static std::pair<std::string, std::string> difference(std::string_view mine,
                                                                            std::string_view theirs);

  private:
    std::string text_;
};

/// Compares every rank's declaration with rank 0's. `attaches`: whether this rank's trace is attached, which
/// ranks need not agree on. Returns whether that of every rank is.
///
/// Errors: `mismatch` on every rank; it names a rank that differs from rank 0, the field, and both values.
HERRING_SEPARABLE bool agree(world& ranks, declaration const& mine, std::chrono::milliseconds timeout,
                             bool attaches = false);

/// The declaration of a reducer: first the facts that the rest follows from, and one line a tensor, so that a
/// difference names its cause.
HERRING_SEPARABLE declaration declare(std::string_view element, std::span<policy_fact const> policies,
                                      bool on_loopback, plan const& from, layout const& tensors);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/agreement_impl.hpp"
#endif

#endif // HERRING_ENGINE_AGREEMENT_HPP
