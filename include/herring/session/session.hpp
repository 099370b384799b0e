// herring: a session: what the ranks of a world set up together to reduce, and what it runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_SESSION_HPP
#define HERRING_SESSION_SESSION_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/driver.hpp"
#include "herring/engine/engine.hpp"
#include "herring/engine/node_memory.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/all_to_all.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/operations/reduce_scatter.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/element.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/handled_chunks.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/cores.hpp"
#include "herring/session/reducible.hpp"
#include "herring/step/host_tensors.hpp"
#include "herring/step/session_base.hpp"
#include "herring/sync/sync.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>
#include <utility>

// With an optimizer; herring/training.hpp defines them.
namespace HERRING_NAMESPACE::detail {
template <class Element, class Optimizer> class optimizer_memory;
/// The calls of a reducer with an optimizer; without one there are none.
template <class Pack, bool Trains = optimizes<typename Pack::optimizer>> class training_calls {};
template <class Pack> class training_calls<Pack, true>;
template <class Reducer> struct checkpointing; // herring/checkpoint.hpp
} // namespace HERRING_NAMESPACE::detail
namespace HERRING_NAMESPACE::operations {
template <class Element, class Update, class Optimizer> class hold_gradients;
template <class Element, class Optimizer> class return_weights;
class norms; // with dedicated servers: session/commands.hpp includes it
class vote;  // defined where its reducer is: herring/lazy_reducer.hpp
} // namespace HERRING_NAMESPACE::operations

namespace HERRING_NAMESPACE::detail {

/// Node and transport of a session: the part that depends on these policies, and on no type of elements.
template <class Transport, class IntraNode> class session_links : public session_base {
  public:
    Transport& transport() noexcept { return *transport_; }
    IntraNode& node() noexcept { return *node_; }
    core_sharing const& cores() const noexcept { return cores_; }

    /// Rethrows an exception that a handler of the program threw inside of a wait.
    void rethrow_of_handlers() {
        if constexpr (Transport::facts.runs_handlers)
            if (transport_->has_exception()) [[unlikely]]
                std::rethrow_exception(transport_->take_exception());
    }

  protected:
    using memory_type = node_memory<IntraNode, Transport>;

    session_links(world& ranks, layout&& tensors)
        : session_base(ranks, std::move(tensors), IntraNode::facts.joins_ranks) {}
    ~session_links() = default;

    bool runs_handlers() noexcept {
        if constexpr (Transport::facts.runs_handlers) return transport_->runs_handlers();
        return false;
    }
    exchange_tuning tuning(memory_traits const& traits) const noexcept {
        exchange_tuning chosen = on_loopback() ? Transport::facts.same_host_tuning : Transport::facts.tuning;
        chosen.max_message_bytes = Transport::facts.max_message;
        if (cores_.any) chosen.latency_ns = 0; // another rank works meanwhile
        chosen.shared_cores = cores_.all;
        chosen.links = ranks_.links();
        chosen.local_chunk_bytes = IntraNode::facts.tuning.local_chunk_bytes;
        chosen.mailbox_bytes = IntraNode::facts.tuning.mailbox_bytes;
        chosen.split_bytes = splits_buckets(traits, topology_) ? IntraNode::facts.tuning.split_bytes : 0;
        chosen.piece_bytes = IntraNode::facts.tuning.piece_bytes;
        if (traits.on_device) chosen.two_level_bytes = exchange_tuning::no_two_levels;
        if (traits.keeps_weights) chosen.one_hop_bytes_two_nodes = 0; // both nodes would do all of the update
        return chosen;
    }
    /// Maps the memory that the map asks for, and connects.
    template <class Store, class... TransportArguments>
    HERRING_SETUP void connect_links(TransportArguments&&... arguments) {
        std::size_t const shown =
            Store::make_node(node_, ranks_, plan_, memory_, tensors_.size(), memory_type::parts_on_device);
        std::size_t const filled = serves() ? shown / plan_.roles.servers.size() : shown; // its part
        make_staging(Store::on_device || IntraNode::facts.joins_ranks ? 0 : filled);
        transport_.emplace(ranks_, transport_needs_of(plan_, peers_, ranks_.default_timeout()),
                           std::forward<TransportArguments>(arguments)...);
        if constexpr (Transport::facts.registers_memory) {
            transport_->register_memory({node_->memory(), shown});
            transport_->register_memory(staging_.bytes());
        }
        memory_type::register_parts(*node_, *transport_);
    }

    core_sharing cores_; // before the plan
    manual_lifetime<IntraNode> node_;
    manual_lifetime<Transport> transport_;
};

/// The engine of a session, with the operations that the calls of its rule need.
template <class Transport, class IntraNode, class Trace, class Element, class Update, class... More>
using engine_with = engine<Transport, IntraNode, Trace, operations::reduce<Element, Update>,
                           operations::reduce_scatter<Element, Update>, operations::all_gather,
                           operations::broadcast, operations::all_to_all, More...>;
template <class Transport, class IntraNode, class Trace, class Element, class Update, class Optimizer>
struct engine_of {
    using type = engine_with<Transport, IntraNode, Trace, Element, Update>;
};
template <class Transport, class IntraNode, class Trace, class Element, class Update, class Optimizer>
requires gives_deviations<Update>
struct engine_of<Transport, IntraNode, Trace, Element, Update, Optimizer> {
    using type =
        engine_with<Transport, IntraNode, Trace, Element, Update, operations::moments<Element, Update>>;
};
template <class Transport, class IntraNode, class Trace, class Element, class Update, class Optimizer>
requires(optimizes<Optimizer> && !in_two_phases<Optimizer>) //
    struct engine_of<Transport, IntraNode, Trace, Element, Update, Optimizer> {
    using type = engine_with<Transport, IntraNode, Trace, Element, Update,
                             operations::optimise<Element, Update, Optimizer>>;
};
template <class Transport, class IntraNode, class Trace, class Element, class Update, class Optimizer>
requires(in_two_phases<Optimizer>) //
    struct engine_of<Transport, IntraNode, Trace, Element, Update, Optimizer> {
    using type = engine_with<Transport, IntraNode, Trace, Element, Update,
                             operations::hold_gradients<Element, Update, Optimizer>,
                             operations::return_weights<Element, Optimizer>>;
};

/// The commands of a session with dedicated servers: its workers' calls. Defined in session/commands.hpp,
/// which comes with herring/serve.hpp; other sessions have none.
template <class Session, bool Commands> class command_desk {};
template <class Session> class command_desk<Session, true>;

/// The same with commands, where the placement has dedicated servers, and with norms, where they have to be
/// exchanged with these.
template <class Engine, bool Commands, bool Norms> struct with_commands { using type = Engine; };
template <class Transport, class IntraNode, class Trace, class... Operations>
struct with_commands<engine<Transport, IntraNode, Trace, Operations...>, true, false> {
    using type = engine<Transport, IntraNode, Trace, Operations..., operations::command>;
};
template <class Transport, class IntraNode, class Trace, class... Operations>
struct with_commands<engine<Transport, IntraNode, Trace, Operations...>, true, true> {
    using type = engine<Transport, IntraNode, Trace, Operations..., operations::norms, operations::command>;
};
/// The same with the operation of votes, where the sync policy has them.
template <class Engine, bool Votes> struct with_votes { using type = Engine; };
template <class Transport, class IntraNode, class Trace, class... Operations>
struct with_votes<engine<Transport, IntraNode, Trace, Operations...>, true> {
    using type = engine<Transport, IntraNode, Trace, Operations..., operations::vote>;
};

/// The plan, the memory, the connections and the engine of one reducer. It knows no steps: it runs
/// executions.
///
/// Constructed in phases, each collective: `connect` plans, maps the memory and connects; `open` lets
/// messages come. Objects that its owner constructs in between are there on every rank when the first message
/// is sent.
///
/// Threads:  one at a time; with a background progress policy a thread of its own polls the engine.
template <class Pack>
class basic_session : public session_links<typename Pack::transport, typename Pack::intra_node> {
    using transport_type = typename Pack::transport;
    using intra_node_type = typename Pack::intra_node;

  public:
    using element = typename Pack::element;
    using store = typename tensor_store<element, intra_node_type>::type;
    using trace_type = typename Pack::trace;

    basic_session(world& ranks, layout&& tensors)
        : session_links<transport_type, intra_node_type>(ranks, std::move(tensors)) {}
    ~basic_session() {
        if (this->ranks_.forked_off()) abandon();
    }

    /// Errors: `mismatch` names a rank and what differs; `bad_argument`, `no_resources`, `unreachable`,
    ///         `unsupported`.
    template <class... TransportArguments> HERRING_SETUP void connect(TransportArguments&&... arguments) {
        connect_as(role::worker, std::forward<TransportArguments>(arguments)...);
    }
    template <class... TransportArguments>
    HERRING_SETUP void connect_as(role as, TransportArguments&&... arguments) {
        using placement = typename Pack::placement;
        check_roles(this->ranks_, as, policy_name<placement>(), placement::facts.dedicated_servers,
                    placement::assign(this->topology_), this->topology_);
        this->cores_ = share_cores(this->ranks_, background ? 2 : 1);
        this->plan_ = build_plan();
        memory_traits needs = traits;
        needs.command_bytes = command_bytes();
        needs.norms_bytes = norms_bytes();
        this->settle(herring::element<element>::name, policy_facts<Pack>::all, needs,
                     engine_type::local_bytes, trace_attaches<trace_type>);
        this->template connect_links<store>(std::forward<TransportArguments>(arguments)...);
        if constexpr (intra_node_type::facts.sums_in_threads)
            this->node().template start_sums<combines, element>();
        if constexpr (updates && intra_node_type::facts.joins_ranks)
            if (this->local_rank() != 0) release_unused_weights();
        if constexpr (updates && transport_type::facts.registers_memory && intra_node_type::facts.joins_ranks)
            if (this->local_rank() != 0)
                this->transport().register_memory({weights_of_node(), this->plan_.tensor_bytes()});
        running_.emplace(sink_of(this->ranks_), this->ranks_.rank(), this->topology_, this->plan_,
                         this->transport(), this->node(), trace_, this->peers_, this->memory_.executions_kept,
                         this->node().memory() + this->memory_.local_offset, this->staging_.bytes());
        this->engine_ = &running_->core();
        if constexpr (lists_rules<combines>) this->engine_->rules = combines::names();
        if constexpr (updates) {
            updated_.emplace(running_->core(), this->plan_, this->tensors_, weights_of_node(), own_weights());
            if constexpr (two_phases) running_->template get<hold_gradients>().use(*updated_);
            running_->template get<returning>().use(*updated_);
        }
        if constexpr (commands) desk_.open(*this, needs.command_bytes);
        if constexpr (commands && two_phases)
            desk_.norms().open({this->node().memory() + this->memory_.norms_offset, needs.norms_bytes},
                               this->plan_, this->topology_, this->ranks_.rank(), norm_numbers());
        running_->open();
    }

    /// From here on the ranks exchange messages. `ready`: tensors that are ready in the step under way.
    ///
    /// Lifetime: `ready`, longer than the session.
    HERRING_SETUP void open(std::size_t const& ready) {
        this->ranks_.barrier();
        registration_.emplace(this->ranks_.state(), reducer_counts{.submitted = running_->submissions(),
                                                                   .released = running_->releases(),
                                                                   .ready = ready});
        if constexpr (trace_attaches<trace_type>) attach_trace(registration_->number());
        driver_.emplace(*running_, this->ranks_, this->cores_.mine,
                        this->runs_handlers() ? 0 : registration_->number());
    }

    trace_type& trace() noexcept { return trace_; }

    /// The number by which executions name one of the engine's operations.
    template <class Operation> static constexpr std::uint8_t number_of() noexcept {
        return engine_type::template number_of<Operation>();
    }
    using combines = typename rule<typename Pack::update>::type;
    using reduce_scatter = operations::reduce_scatter<element, combines>;
    using moments = operations::moments<element, combines>;

    // ---- with an optimizer --------------------------------------------------------------------------------

    using optimizer = typename optimizer_of<Pack, typename Pack::sync>::type;
    static constexpr bool updates = optimizes<optimizer>;
    static constexpr bool two_phases = in_two_phases<optimizer>;
    using optimizer_memory_type = optimizer_memory<element, optimizer>;
    /// The weights and the state that this rank updates.
    optimizer_memory_type& updated() noexcept requires(updates) { return *updated_; }
    /// Where the weights of a bucket lie.
    std::byte* weights_of_bucket(std::size_t b) noexcept requires(updates) {
        return updated_->weights().bucket(b);
    }

    /// Sets the digest that the buckets of the next steps have in common on all ranks: their fingerprints
    /// carry it.
    void set_values_digest(std::uint64_t digest) noexcept requires(updates) { values_digest_ = digest; }
    /// Where they lie, for the text of a rank that has others.
    void name_values(hyper_values const& of) noexcept requires(updates) { running_->core().values = of; }
    /// Turns the execution of a bucket that is ready into its update or, in two phases, the first phase.
    /// `digest`: of the step, beside the bucket.
    void make_update(execution& e, std::uint64_t digest) const noexcept requires(updates) {
        e.operation = number_of<std::conditional_t<two_phases, hold_gradients, returning>>();
        e.fingerprint = fingerprint_of(e.elements, e.label ^ digest ^ values_digest_);
    }
    /// Numbers of each rank that a step exchanges between its phases, at most.
    std::size_t norm_numbers() const noexcept requires(two_phases) {
        return optimizer_memory_type::norm_numbers(this->plan_.tensors.size());
    }
    /// Submits the second phase of all buckets; returns how many executions are submitted with it.
    std::uint64_t submit_returns() noexcept requires(two_phases) {
        std::uint64_t end = this->requested();
        for (std::size_t b = 0; b < this->plan_.buckets.size(); ++b) {
            bucket const& of = this->plan_.buckets[b];
            if (of.elements == 0) continue;
            std::byte* const at = this->node().memory() + of.offset * sizeof(element);
            execution e =
                execution_of(of, this->plan_.shards.data(), {.own = at}, b,
                             fingerprint_of(of.elements, (b | std::uint64_t{1} << 31) ^ values_digest_));
            e.operation = number_of<returning>();
            end = submit(e);
        }
        return end;
    }

    // ---- with dedicated servers ---------------------------------------------------------------------------

    static constexpr bool commands = Pack::placement::facts.dedicated_servers;
    command_desk<basic_session, commands>& desk() noexcept requires(commands) { return desk_; }

    // ---- executions ---------------------------------------------------------------------------------------

    /// Returns how many executions are submitted with this one.
    std::uint64_t submit(execution const& e) noexcept {
        if constexpr (traces_details<trace_type>) {
            bool const of_one_node = this->plan_.nodes > 1 && !is_networked(e.path);
            trace_.record(trace_event::bucket_submitted,
                          {.index = e.label,
                           .execution = this->requested(),
                           .bytes = of_one_node           ? 0
                                    : e.element_bytes > 0 ? e.bytes(e.elements)
                                                          : e.elements * sizeof(element)});
        }
        std::uint64_t const number = running_->submit(e);
        driver_->submitted();
        return number + 1;
    }
    void poll() noexcept { driver_->poll(); }
    /// Returns when `count` executions are released, or the session has failed.
    void until(std::uint64_t count, time_point deadline) noexcept { driver_->until(count, deadline); }
    /// The same when `holds` does.
    template <class Holds> void until_true(Holds const& holds, time_point deadline) noexcept {
        driver_->until_true(holds, deadline);
    }
    /// The same as a status; the end of a call's wait.
    status finish(std::uint64_t count, time_point deadline) noexcept {
        driver_->until(count, deadline);
        if (failure const* const why = this->failed()) return status(*why);
        this->engine_->finish_wait_stats();
        return {};
    }
    /// Fails if there is a reason.
    status fail_with(failure const* why) noexcept {
        if (why == nullptr) return {};
        running_->fail(*why);
        return status(*why);
    }

    /// The engine, between executions.
    auto& running() noexcept { return *running_; }
    /// Ends the driver: the engine is not polled from now on.
    void stop_driver() noexcept { driver_.reset(); }

  private:
    // In a forked child all of it is the parent's: its threads, connections and shared memory.
    HERRING_SETUP void abandon() noexcept {
        registration_.abandon();
        driver_.abandon();
        running_.abandon();
        this->transport_.abandon();
        this->node_.abandon();
    }

    using engine_commands = with_commands<
        typename with_votes<typename engine_of<transport_type, intra_node_type, trace_type, element,
                                               typename rule<typename Pack::update>::type, optimizer>::type,
                            ranks_vote<typename Pack::sync>()>::type,
        Pack::placement::facts.dedicated_servers, two_phases>;
    using engine_type = typename engine_commands::type;
    using hold_gradients = operations::hold_gradients<element, combines, optimizer>;
    // The operation that returns weights.
    using returning = std::conditional_t<two_phases, operations::return_weights<element, optimizer>,
                                         operations::optimise<element, combines, optimizer>>;
    static constexpr bool background = Pack::progress::facts.background;
    using driver_type = std::conditional_t<background, thread_driver<engine_type, typename Pack::waiting>,
                                           caller_driver<engine_type, typename Pack::waiting>>;
    static constexpr memory_traits traits{.on_device = store::on_device,
                                          .sums_on_device = intra_node_type::facts.sums_on_device,
                                          .reads_peers = intra_node_type::facts.reads_peers,
                                          .registers_memory = transport_type::facts.registers_memory,
                                          .works_between_calls = transport_type::facts.abandons,
                                          .background = background,
                                          .keeps_weights = updates,
                                          .votes = ranks_vote<typename Pack::sync>()};
    // Bytes of a command, with the hyper values of all groups.
    std::size_t command_bytes() const {
        std::size_t values = 0;
        if constexpr (commands && updates) {
            values = optimizer_memory_type::values_bytes(this->tensors_, this->ranks_.rank());
            if (values > most_values_bytes)
                throw error(errc::bad_argument, this->ranks_.rank(), -1, "construction",
                            {"the hyper values of all groups are ", values,
                             " bytes, and a command to servers has at most ", most_values_bytes,
                             ": take fewer groups of tensors"});
        }
        if constexpr (commands) return command_desk<basic_session, true>::bytes + values;
        return 0;
    }
    static constexpr std::size_t most_values_bytes = 2048; // a command fits the smallest slot
    // Bytes of the norms that go by way of the workers. The plan is there.
    std::size_t norms_bytes() const {
        if constexpr (commands && two_phases)
            return std::remove_cvref_t<decltype(desk_.norms())>::bytes(this->plan_.roles, this->topology_,
                                                                       norm_numbers());
        return 0;
    }

    // This rank's copy of the weights, of which what goes by mailbox is in use; and the node's. As the plan
    // places tensors.
    std::byte* own_weights() noexcept requires(updates) {
        return this->node().memory() + this->memory_.weights_offset;
    }
    std::byte* weights_of_node() noexcept requires(updates) { return this->node().peer(0, own_weights()); }

    // All ranks of a node have memory of one size, and one copy of the weights is in use, but for what goes
    // by mailbox.
    void release_unused_weights() noexcept requires(updates) {
        std::size_t begin = 0; // element behind the last bucket that is in use
        auto const release = [&](std::size_t end) {
            detail::release_pages(own_weights() + begin * sizeof(element), (end - begin) * sizeof(element));
        };
        for (bucket const& b : this->plan_.buckets)
            if (b.path == route::mailbox) {
                release(b.offset);
                begin = b.offset + b.elements;
            }
        release(this->plan_.elements);
    }

    // Before anything is traced.
    HERRING_SETUP void attach_trace(std::uint64_t number) {
        fixed_array<std::uint64_t> bytes(this->plan_.buckets.size());
        for (std::size_t b = 0; b < bytes.size(); ++b)
            bytes[b] = this->plan_.buckets[b].elements * sizeof(element);
        trace_.attach(trace_context{.ranks = this->ranks_,
                                    .tensors = this->tensors_,
                                    .bucket_bytes = {bytes.data(), bytes.size()},
                                    .digest = this->plan_.digest,
                                    .reducer = number,
                                    .all_attach = this->all_attach_});
    }

    HERRING_SETUP herring::plan build_plan() const {
        if (!waits_soundly<typename Pack::waiting>())
            throw error(
                errc::bad_argument, this->ranks_.rank(), -1, "construction",
                {"waiting policy '", policy_name<typename Pack::waiting>(),
                 "': next() returns a number that is no wait_action; return poll, pause, yield or sleep"});
        // 8 TiB: no sum of sizes or number of chunks overflows.
        auto const counts =
            element_counts(this->tensors_, (std::size_t{1} << 43) / sizeof(element), this->ranks_.rank());
        herring::plan result =
            make_plan<typename Pack::fusion, typename Pack::sharding, typename Pack::placement>(
                {counts.data(), counts.size()}, this->topology_, sizeof(element),
                sizeof(accumulator<element>), this->tuning(traits));
        result.rank_order = Pack::intra_node::facts.rank_order || result.largest_node == 1;
        // The weights of a tensor lie in one copy: no part of a split bucket goes by mailbox, which has
        // copies of its own.
        if constexpr (updates)
            for (std::size_t b = 0; b < result.buckets.size(); ++b)
                if (result.buckets[b].path == route::mailbox &&
                    (result.buckets[b].tensors == 0 ||
                     (b + 1 < result.buckets.size() && result.buckets[b + 1].tensors == 0)))
                    result.buckets[b].path = route::local;
        if constexpr (updates)
            set_optimizer_bytes(result, this->topology_,
                                optimizer_memory_type::arrays() *
                                    sizeof(typename optimizer_memory_type::number));
        return result;
    }

    [[no_unique_address]] trace_type trace_{};
    struct nothing {};
    [[no_unique_address]] std::conditional_t<updates, std::uint64_t, nothing> values_digest_{};
    [[no_unique_address]] std::conditional_t<updates, manual_lifetime<optimizer_memory_type>, nothing>
        updated_{};
    [[no_unique_address]] command_desk<basic_session, commands> desk_{};
    manual_lifetime<engine_type> running_;
    manual_lifetime<driver_type> driver_;
    manual_lifetime<reducer_entry> registration_; // the first to go: it refers to the engine
};

/// Packs whose elements have the same bits share one session (`same_bits_as`).
template <class Pack> using session = basic_session<stored_pack<Pack>>;

/// The same memory, as elements of the other type: every call of a reducer begins and ends with an atomic
/// operation, which the compiler moves no access of the program's past.
template <class To, class From> std::span<To> same_memory(std::span<From> elements) noexcept {
    return {reinterpret_cast<To*>(elements.data()), elements.size()};
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_SESSION_HPP
