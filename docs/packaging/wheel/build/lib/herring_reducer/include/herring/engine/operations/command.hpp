// herring: the operation of a command: every worker sends every dedicated server the call that it begins.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_COMMAND_HPP
#define HERRING_ENGINE_OPERATIONS_COMMAND_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/command.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of a command. A node's part is the bytes of its command, whatever the element type; results are
/// empty, for the credit.
class command_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit command_traffic(engine_state&) noexcept {}

    /// Sets the memory of this node's command; once, before the first message.
    void place(std::span<std::byte const> own) noexcept { own_ = own; }

    part_format format(execution const&, int) const noexcept { return {1}; }
    range sends(execution const&, chunk const&, int, int) const noexcept { return {0, own_.size()}; }
    bool returns(execution const&, chunk const&, int) const noexcept { return false; }
    std::byte const* part(execution const&, chunk const&, range const&, std::byte*) const noexcept {
        return own_.data();
    }
    std::byte const* result(execution const&, chunk const&) const noexcept { return nullptr; }
    std::byte* landing(execution const&, chunk const&) const noexcept { return nullptr; }
    void take_result(execution const&, chunk const&) const noexcept {}
    range given(execution const&) const noexcept { return {}; }

  private:
    std::span<std::byte const> own_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// A server gets the commands of all workers together, compares them, and keeps the common command. It begins
/// no call before all workers have begun it.
class command {
  public:
    using traffic = detail::command_traffic;

    command(detail::engine_state& state, traffic&) noexcept : state_(state) {}

    // ---- for a server, between executions

    /// Sets the memory for the command and the hyper values behind it; `operations`: length of the engine's
    /// list.
    ///
    /// Lifetime: `here`, longer than the engine.
    void keep(std::span<std::byte> here, std::size_t operations) noexcept {
        kept_ = here;
        operations_ = operations;
    }
    /// True if all workers' commands have arrived since the last `forget`.
    bool has_come() const noexcept { return has_come_; }
    void forget() noexcept { has_come_ = false; }
    detail::command const& what() const noexcept { return what_; }
    /// The hyper values, behind the 64 bytes of the command.
    std::span<std::byte const> values() const noexcept { return kept_.subspan(detail::command::bytes); }

    // ---- for the engine

    void make_part(execution const&, chunk const&, std::byte*) noexcept {}
    HERRING_SEPARABLE void combine(execution const&, chunk const&, parts_view const& parts) noexcept;
    void combine_mailboxes(execution const&, std::byte* const*) noexcept {} // a command takes two hops
    void combine_lent(execution const&) noexcept {}

  private:
    HERRING_SEPARABLE void refuse(node_part const& first, node_part const& other) noexcept;

    detail::engine_state& state_;
    std::span<std::byte> kept_;
    std::size_t operations_ = 0;
    detail::command what_{};
    bool has_come_ = false;
};

} // namespace HERRING_NAMESPACE::operations

#ifndef HERRING_SEPARATE
#include "herring/engine/operations/command_impl.hpp"
#endif

#endif // HERRING_ENGINE_OPERATIONS_COMMAND_HPP
