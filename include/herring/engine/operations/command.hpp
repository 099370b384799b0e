// herring: the operation of a command: every worker tells every dedicated server which call it is in.
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

/// A node's part is its command, whatever the elements of the reducer are; a server returns nothing but the credit.
class command_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit command_traffic(engine_state&) noexcept {}

    /// Where this node's command lies, and its bytes. Set once, before the first message.
    void place(std::span<std::byte const> own) noexcept { own_ = own; }

    std::size_t part_bytes(execution const&, chunk const&, int, int) const noexcept { return own_.size(); }
    std::size_t result_bytes(execution const&, chunk const&, int) const noexcept { return 0; }
    std::span<std::byte const> part(execution const&, chunk const&, int, std::byte*) const noexcept {
        return own_;
    }
    std::span<std::byte const> result(execution const&, chunk const&) const noexcept { return {}; }
    std::byte* landing(execution const&, chunk const&) const noexcept { return nullptr; }
    void take_result(execution const&, chunk const&) const noexcept {}
    range given(execution const&) const noexcept { return {}; }

  private:
    std::span<std::byte const> own_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// A server has the commands of all workers at once: it compares them, and keeps what they agree on. It goes on with nothing that
/// some worker is not in.
class command {
  public:
    using traffic = detail::command_traffic;

    command(detail::engine_state& state, traffic&) noexcept : state_(state) {}

    // ---- of a server, between executions --------------------------------------------------------------------------------

    /// Room for the command, and for the hyper values behind it; `operations`: in the engine's list.
    ///
    /// Lifetime: `here`, longer than the engine.
    void keep(std::span<std::byte> here, std::size_t operations) noexcept {
        kept_ = here;
        operations_ = operations;
    }
    /// Whether all workers' commands have come since the last `forget`.
    bool has_come() const noexcept { return has_come_; }
    void forget() noexcept { has_come_ = false; }
    detail::command const& what() const noexcept { return what_; }
    /// What follows the command's own 64 bytes.
    std::span<std::byte const> values() const noexcept { return kept_.subspan(detail::command::bytes); }

    // ---- of the engine --------------------------------------------------------------------------------------------------

    void make_part(execution const&, chunk const&, std::byte*) noexcept {}
    HERRING_SEPARABLE void combine(execution const&, chunk const&, parts_view const& parts) noexcept;
    void combine_mailboxes(execution const&, std::byte* const*) noexcept {} // takes two hops
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
