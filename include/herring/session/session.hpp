// herring: a session: what the ranks of a world set up together to reduce, and what it runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SESSION_HPP
#define HERRING_SESSION_SESSION_HPP

#include "herring/base/config.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/base/private_memory.hpp"
#include "herring/base/time.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/control/world_state.hpp"
#include "herring/element.hpp"
#include "herring/engine/agreement.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/driver.hpp"
#include "herring/engine/engine.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/operations/reduce_scatter.hpp"
#include "herring/error.hpp"
#include "herring/layout.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/owned.hpp"
#include "herring/plan/plan.hpp"
#include "herring/plan/topology.hpp"
#include "herring/policy.hpp"
#include "herring/policy/reducible.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/cores.hpp"
#include "herring/session/transport_needs.hpp"
#include "herring/step/host_tensors.hpp"
#include "herring/step/piece.hpp"
#include "herring/world.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The plan, the memory, the connections and the engine of one reducer. It knows no steps: it runs executions.
///
/// Constructed in phases, each collective: `connect` plans, maps the memory and connects; `open` lets messages come. What
/// is made in between by its owner is there on every rank when the first message is sent.
///
/// Lifetime: holds a handle of the world's, so that the program's may be moved.
/// Threads:  one at a time; with a background progress policy a thread of its own polls the engine.
template <class Pack> class session {
    using transport_type = typename Pack::transport;
    using intra_node_type = typename Pack::intra_node;

  public:
    using element = typename Pack::element;
    using store = typename tensor_store<element, intra_node_type>::type;
    using trace_type = typename Pack::trace;

    session(world& ranks, layout&& tensors)
        : ranks_(ranks, for_reducer{}), tensors_(std::move(tensors)),
          topology_(intra_node_type::facts.joins_ranks ? ranks_.topology() : ranks_.topology().flat()) {}
    session(session const&) = delete;
    session& operator=(session const&) = delete;

    /// Errors: `mismatch` names a rank and what differs; `bad_argument`, `no_resources`, `unreachable`, `unsupported`.
    template <class... TransportArguments> HERRING_SETUP void connect(TransportArguments&&... arguments) {
        plan_ = build_plan();
        agree(
            ranks_,
            declare(herring::element<element>::name, policy_facts<Pack>::all, on_loopback(), plan_, tensors_),
            ranks_.default_timeout());
        std::vector<int> const peers = peers_of(topology_, ranks_.rank());
        memory_ = make_memory_map(plan_, traits, peers.size(), engine_type::local_bytes);
        if (memory_.executions >= token::low || peers.size() > token::low)
            throw_too_many(memory_.executions, peers.size(), token::low, ranks_.rank());
        std::size_t const shown = make_memory();
        transport_.emplace(ranks_, transport_needs_of(plan_, peers, ranks_.default_timeout()),
                           std::forward<TransportArguments>(arguments)...);
        make_engine(peers, shown);
    }

    /// From here on the ranks exchange messages. `ready`: tensors that are ready in the step under way.
    ///
    /// Lifetime: `ready`, longer than the session.
    HERRING_SETUP void open(std::size_t const& ready) {
        auto const mine = cores_of_rank::here(background ? 2 : 1);
        bool const oversubscribed =
            detail::oversubscribed(mine, ranks_.all_gather(mine.bytes())); // a barrier as well
        registration_.emplace(ranks_.state(), reducer_counts{.submitted = engine_->submissions(),
                                                             .released = engine_->releases(),
                                                             .ready = ready});
        driver_.emplace(*engine_, ranks_, oversubscribed, runs_handlers() ? 0 : registration_->number());
    }

    // ---- what was set up ------------------------------------------------------------------------------------------------

    world& ranks() noexcept { return ranks_; }
    world const& ranks() const noexcept { return ranks_; }
    layout const& tensors() const noexcept { return tensors_; }
    herring::plan const& plan() const noexcept { return plan_; }
    memory_map const& memory() const noexcept { return memory_; }
    std::chrono::milliseconds default_timeout() const noexcept { return ranks_.default_timeout(); }
    int local_rank() const noexcept { return topology_.local_rank(ranks_.rank()); }
    trace_type& trace() noexcept { return trace_; }
    transport_type& transport() noexcept { return *transport_; }
    intra_node_type& node() noexcept { return *node_; }
    herring::counters counters() const noexcept { return engine_->counters(); }

    // ---- executions -----------------------------------------------------------------------------------------------------

    std::uint64_t requested() const noexcept { return engine_->requested(); }
    std::uint64_t released() const noexcept { return engine_->released(); }
    execution const& ended(std::uint64_t number) noexcept { return engine_->ended(number); }
    failure const* failed() const noexcept { return engine_->failed(); }

    /// Divides a buffer, or a piece of one, as a bucket that is no part of the layout.
    void divide(std::size_t elements, bucket& made, std::vector<shard>& shards) {
        bucket_tensor const whole{0, 0, elements};
        shards.clear();
        made = {};
        detail::divide<typename Pack::sharding>(made, {elements, plan_.grain, std::span(&whole, 1)}, plan_,
                                                shards, {ranks_.rank(), "all_reduce"});
    }

    /// The same of a bucket of which each rank owns a range.
    void divide_owned(bucket& made, std::size_t elements, std::span<range const> owned,
                      std::vector<shard>& shards) const {
        detail::divide_owned(made, elements, owned, plan_, topology_, shards);
    }

    /// The number by which executions name one of the engine's operations.
    template <class Operation> static constexpr std::uint8_t number_of() noexcept {
        return engine_type::template number_of<Operation>();
    }
    using reduce_scatter = operations::reduce_scatter<element, typename rule<typename Pack::update>::type>;

    /// Returns how many executions are submitted with this one.
    std::uint64_t submit(execution const& e) noexcept {
        std::uint64_t const number = engine_->submit(e);
        driver_->submitted();
        return number + 1;
    }
    std::uint64_t submit(bucket const& b, shard const* shards, piece_place const& at, std::size_t label,
                         std::uint32_t fingerprint) noexcept {
        std::uint64_t const number =
            engine_->submit({.shards = shards + b.first_shard,
                             .shard_count = b.shards,
                             .path = b.path,
                             .own = at.own,
                             .home = at.home,
                             .elements = b.elements,
                             .fingerprint = fingerprint,
                             .label = static_cast<std::uint32_t>(label),
                             .lent_parts = static_cast<std::uint32_t>(at.lent.size()),
                             .lent = at.lent.data(),
                             .next = at.next});
        driver_->submitted();
        return number + 1;
    }

    void poll() noexcept { driver_->poll(); }
    /// Returns when `count` executions are released, or the session has failed.
    void until(std::uint64_t count, time_point deadline) noexcept { driver_->until(count, deadline); }
    /// The same as a status; the end of a call's wait.
    status finish(std::uint64_t count, time_point deadline) noexcept {
        driver_->until(count, deadline);
        if (failure const* const why = engine_->failed()) return status(*why);
        engine_->finish_wait_stats();
        return {};
    }
    /// Fails if there is a reason.
    status fail_with(failure const* why) noexcept {
        if (why == nullptr) return {};
        engine_->fail(*why);
        return status(*why);
    }
    /// Throws what a handler of the program's threw while it ran inside of a wait.
    void rethrow_of_handlers() {
        if constexpr (transport_type::facts.runs_handlers)
            if (transport_->has_exception()) [[unlikely]]
                std::rethrow_exception(transport_->take_exception());
    }

  private:
    using engine_type =
        engine<transport_type, intra_node_type, trace_type,
               operations::reduce<element, typename rule<typename Pack::update>::type>,
               operations::reduce_scatter<element, typename rule<typename Pack::update>::type>,
               operations::all_gather, operations::broadcast>;
    static constexpr bool background = Pack::progress::facts.background;
    using driver_type = std::conditional_t<background, thread_driver<engine_type, typename Pack::waiting>,
                                           caller_driver<engine_type, typename Pack::waiting>>;
    // Sums of devices go to other nodes without passing the host.
    static constexpr bool parts_on_device =
        intra_node_type::facts.leaves_parts && transport_type::facts.device_memory;
    static constexpr bool sums_on_device = intra_node_type::facts.sums_on_device;
    static constexpr memory_traits traits{.on_device = store::on_device,
                                          .sums_on_device = sums_on_device,
                                          .registers_memory = transport_type::facts.registers_memory,
                                          .background = background};

    bool on_loopback() const noexcept {
        std::string const& address = ranks_.local_address();
        return address.starts_with("127.") || address == "::1";
    }
    bool runs_handlers() noexcept {
        if constexpr (transport_type::facts.runs_handlers) return transport_->runs_handlers();
        return false;
    }

    HERRING_SETUP herring::plan build_plan() const {
        if (!waits_soundly<typename Pack::waiting>())
            throw error(
                errc::bad_argument, ranks_.rank(), -1, "construction",
                {"waiting policy '", policy_name<typename Pack::waiting>(),
                 "': next() returns a number that is no wait_action; return poll, pause, yield or sleep"});
        // 8 TiB: no sum of sizes or number of chunks overflows.
        auto const counts = element_counts(tensors_, (std::size_t{1} << 43) / sizeof(element), ranks_.rank());
        exchange_tuning tuning =
            on_loopback() ? transport_type::facts.same_host_tuning : transport_type::facts.tuning;
        tuning.local_chunk_bytes = intra_node_type::facts.tuning.local_chunk_bytes;
        tuning.mailbox_bytes = intra_node_type::facts.tuning.mailbox_bytes;
        tuning.cut_bytes = splits_buckets(traits, topology_) ? intra_node_type::facts.tuning.cut_bytes : 0;
        return make_plan<typename Pack::fusion, typename Pack::sharding, typename Pack::placement>(
            {counts.data(), counts.size()}, topology_, sizeof(element), sizeof(accumulator<element>), tuning);
    }

    /// Returns the bytes of the region that an adapter has to see.
    HERRING_SETUP std::size_t make_memory() {
        std::size_t const shown =
            store::make_node(node_, ranks_, plan_, memory_, tensors_.size(), parts_on_device);
        // Alike on all ranks, so that all ask or none does.
        if (plan_.tensor_bytes() >= memory_worth_asking_for)
            check_memory(ranks_, memory_.staging_bytes +
                                     (store::on_device || intra_node_type::facts.joins_ranks ? 0 : shown));
        staging_ = private_memory(memory_.staging_bytes, ranks_.rank());
        return shown;
    }

    HERRING_SETUP void make_engine(std::vector<int> const& peers, std::size_t shown) {
        if constexpr (transport_type::facts.registers_memory) {
            transport_->register_memory({node_->memory(), shown});
            transport_->register_memory(staging_.bytes());
        }
        if constexpr (parts_on_device)
            transport_->register_device_memory(node_->parts(), node_->device().number());
        engine_.emplace(sink_of(ranks_), ranks_.rank(), topology_, plan_, *transport_, *node_, trace_, peers,
                        memory_.executions_kept, node_->memory() + memory_.local_offset, staging_.bytes());
        engine_->open();
    }

    world ranks_; // a handle of its own: the program's may be moved
    layout tensors_;
    topology topology_;
    herring::plan plan_;
    memory_map memory_;
    [[no_unique_address]] trace_type trace_{};
    private_memory staging_;
    manual_lifetime<intra_node_type> node_;
    manual_lifetime<transport_type> transport_;
    manual_lifetime<engine_type> engine_;
    manual_lifetime<driver_type> driver_;
    manual_lifetime<reducer_entry> registration_; // the first to go: it refers to the engine
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_SESSION_HPP
