// herring: a step: every tensor is made ready once, full buckets leave in order, results come back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_STEP_HPP
#define HERRING_STEP_STEP_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/execution.hpp"
#include "herring/machine/time.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/due_buckets.hpp"
#include "herring/step/ledger.hpp"
#include "herring/step/session_base.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace HERRING_NAMESPACE::detail {

/// The rest of a step that is over when its buckets are.
struct nothing_left {
    status operator()() const noexcept { return {}; }
};

/// How the thread that ends a step waits for `count` executions.
struct plain_wait {
    template <class Session>
    status operator()(Session& session, std::uint64_t count, time_point deadline) const noexcept {
        return session.finish(count, deadline);
    }
};

/// The steps of a reducer, one after the other: the ledger says what may leave, the tensor store where it
/// lies, the bounce buffers when it is submitted.
///
/// A session runs what leaves. It is an argument of the calls that move something, so that the rest is the
/// same for all types of elements. `Buckets`: which of the plan's buckets leave; each is a piece.
///
/// Lifetime: refers to the session's values, and its registration looks at the ledger: a step is constructed
///           before the session is open, and destroyed after it.
template <class Store, class Trace, class Buckets = every_bucket> class step {
  public:
    using pointer = typename Store::pointer; // of the caller's elements
    using stream = typename Store::stream;
    using bounce_type = bounce_buffers<Store>;

    template <class Node>
    step(session_base& session, Node& node, Trace& trace, calls& checks)
        : session_(session), plan_(session.plan()), trace_(trace), checks_(checks),
          bounced_(session.memory().tensors == memory_path::bounced), ledger_(plan_), leaving_(plan_),
          store_(node, plan_, session.memory(), session.local_rank()),
          bounce_(store_, std::max(session.memory().bucket_segments,
                                   2 * static_cast<std::size_t>(session.ranks().size()))) {}

    step_ledger const& ledger() const noexcept { return ledger_; }
    bounce_type& bounce() noexcept { return bounce_; }
    /// To be chosen between steps.
    Buckets& leaving() noexcept { return leaving_; }

    pointer tensor(std::size_t i) {
        check_index(i, "tensor");
        return store_.tensor(i);
    }

    /// Tensor i may be made ready, in the reducer's memory.
    void check_ready(std::size_t i, stream written_in) {
        check_tensor(i);
        check_stream(written_in, "ready");
    }
    /// The same in the caller's memory.
    void check_ready(std::size_t i, pointer inout, std::size_t elements, stream written_in) {
        check_tensor(i);
        if (elements != plan_.tensors[i].elements) [[unlikely]]
            checks_.throw_other_size(i, name(i), plan_.tensors[i].elements, elements);
        check_stream(written_in, "ready");
        if (elements > 0)
            if (char const* const wrong = store_.check_memory(inout)) [[unlikely]]
                checks_.throw_misuse(errc::bad_argument, "ready",
                                     {"tensor ", i, " ('", name(i), "'): ", wrong});
    }
    /// Tensor i is complete, in the reducer's memory or, if it has elements, at `external`.
    template <class Session>
    void ready(Session& session, std::size_t i, pointer external, stream written_in) noexcept {
        if constexpr (has_commands<Session>)
            if (!ledger_.under_way()) command(session);
        if (mark_ready(i, external, written_in)) submit(session);
        if (bounced_ && bounce_.full()) advance(session);
    }

    /// Does what can be done now.
    template <class Session> void advance(Session& session) noexcept {
        session.poll();
        if (bounced_ && session.failed() == nullptr) move_bounced(session);
    }

    /// True if `end` would return at once.
    bool done() const noexcept {
        return ledger_.all_ready() && submitted_ >= leaving_.pieces() && session_.released() >= end_ &&
               bounce_.empty();
    }

    /// Returns when every tensor holds its result, for work in `read_in`; a new step begins. `rest()`, a
    /// status: does what is left when all buckets are back. `wait(session, count, deadline)`, a status: waits
    /// as `plain_wait`.
    template <class Session, class Rest = nothing_left, class Wait = plain_wait>
    status end(Session& session, stream read_in, time_point deadline, Rest const& rest = {},
               Wait const& wait = {}) {
        if (failure const* const why = session.failed()) return status(*why);
        check_stream(read_in, "wait");
        if (!ledger_.all_ready()) [[unlikely]]
            checks_.throw_not_ready(ledger_.first_unready(), name(ledger_.first_unready()));
        if constexpr (has_commands<Session>)
            if (ledger_.size() == 0) command(session); // a step all the same
        if constexpr (traces_details<Trace>)
            trace_.record(trace_event::wait_begin, {.index = 0, .execution = end_});
        else
            trace_(trace_event::wait_begin, 0);
        if (bounced_ && store_.any_lent())
            for (move_bounced(session); !bounce_.empty() && session.failed() == nullptr;
                 move_bounced(session))
                session.until(bounce_.awaited(), deadline);
        if (status ended = wait(session, end_, deadline); !ended.ok()) return ended;
        if (status ended = rest(); !ended.ok()) return ended;
        store_.scatter(read_in, end_);
        ledger_.begin_step();
        if constexpr (traces_details<Trace>)
            trace_.record(trace_event::wait_end,
                          {.index = 0, .peer = session_.counters().slowest_rank, .execution = end_});
        else
            trace_(trace_event::wait_end, 0);
        return session.fail_with(store_.failed());
    }

    /// Nothing is outstanding, and no tensor is ready: a buffer may be reduced.
    void check_between_steps(char const* operation) {
        if (ledger_.under_way()) [[unlikely]]
            checks_.throw_step_under_way(operation, ledger_.ready(), ledger_.size(), Store::wait_call);
    }
    /// Has all that is bounced from now on lie in the caller's memory of a device, and be ordered by this
    /// stream.
    void order_after(pointer inout, stream in, char const* operation) {
        check_stream(in, operation);
        if (char const* const wrong = store_.check_memory(inout)) [[unlikely]]
            checks_.throw_misuse(errc::bad_argument, operation, {wrong});
        store_.order_after(in);
    }
    void forget(pointer memory) {
        if (char const* const wrong = store_.check_memory(memory)) [[unlikely]]
            checks_.throw_misuse(errc::bad_argument, "forget", {wrong});
        store_.forget(memory);
    }
    void check_stream(stream given, char const* operation) {
        if (char const* const wrong = store_.check_stream(given)) [[unlikely]]
            checks_.throw_misuse(errc::bad_argument, operation, {wrong});
    }

  private:
    std::string const& name(std::size_t i) const noexcept { return session_.tensors()[i].name; }

    void check_index(std::size_t i, char const* operation) {
        if (i >= ledger_.size()) [[unlikely]]
            checks_.throw_no_such_tensor(operation, i, ledger_.size());
    }
    void check_tensor(std::size_t i) {
        check_index(i, "ready");
        if (ledger_.is_ready(i)) [[unlikely]]
            checks_.throw_ready_already(i, name(i));
        if (failure const* const why = session_.failed()) throw error(*why);
    }
    // Tells the servers that a step begins. Without a bucket, nothing else leaves.
    template <class Session> void command(Session& session) noexcept {
        end_ = std::max(end_, session.desk().begin_step(session));
    }
    // Returns whether more buckets may leave.
    bool mark_ready(std::size_t i, pointer external, stream written_in) noexcept {
        if (!ledger_.under_way()) {
            bounce_.begin();
            submitted_ = 0;
        }
        store_.order_after(written_in);
        if (external != nullptr && plan_.tensors[i].elements > 0) store_.lend(i, external);
        auto const index = static_cast<std::uint32_t>(i);
        if constexpr (traces_details<Trace>)
            trace_.record(trace_event::tensor_ready,
                          {.index = index, .bytes = plan_.tensors[i].elements * plan_.element_bytes});
        else
            trace_(trace_event::tensor_ready, index);
        return ledger_.mark_ready(i);
    }

    // ---- the buckets that leave, each a piece -------------------------------------------------------------

    // Submits the full buckets, in order; one that is bounced waits for a free slot, and those behind it wait
    // with it.
    template <class Session> void submit(Session& session) noexcept {
        for (std::size_t const full = leaving_.pieces_of(ledger_.full_buckets()); submitted_ < full;
             ++submitted_) {
            bucket const& of = of_piece(submitted_);
            if (of.elements == 0) continue;
            if (!bounced_ || !any_lent(of))
                submit(session, {.own = store_.gather(of, leaving_.bucket(submitted_), session.requested())});
            else if (!bounce_.full())
                submit(session, copy_in(of, session.requested()));
            else
                return;
        }
    }
    // Copies out what is released; each free slot takes the next piece at once.
    template <class Session> void move_bounced(Session& session) noexcept {
        while (bounce_.copy_out_next(session_)) submit(session);
        submit(session);
    }
    // Piece `submitted_`, at its place.
    template <class Session> void submit(Session& session, piece_place const& at) noexcept {
        std::size_t const b = leaving_.bucket(submitted_);
        bucket const& full = plan_.buckets[b];
        if constexpr (!traces_details<Trace>) // else the session tells, which submits
            trace_(trace_event::bucket_submitted, static_cast<std::uint32_t>(b));
        execution e = execution_of(full, plan_.shards.data(), at, b,
                                   fingerprint_of(full.elements, b ^ leaving_.digest()));
        e.name = Buckets::name;
        leaving_.adapt(e, b);
        if constexpr (requires { session.make_update(e, 0); }) session.make_update(e, leaving_.digest());
        end_ = session.submit(e);
    }

    piece_place copy_in(bucket const& of, std::uint64_t number) noexcept {
        bounced_piece piece = bounce_.next_piece(of.elements, plan_.element_bytes);
        for_each_tensor_in(plan_, of, [&](std::size_t i, std::size_t from, std::size_t count) {
            auto* const at = reinterpret_cast<std::byte*>(store_.origin(i, from));
            piece.add({at, at, plan_.tensors[i].offset + from - of.offset, count});
        });
        piece_place at = bounce_.copy_in(piece, number);
        if (!at.lent.empty()) at.next = next_in_slot(submitted_, at.lent[0].elements);
        return at;
    }
    // The elements of the piece that will follow piece n in its slot, if it is one segment of at most `most`
    // elements, and every piece between is bounced; else nothing.
    std::span<std::byte const> next_in_slot(std::size_t n, std::size_t most) const noexcept {
        if (leaving_.pieces() - n <= bounce_type::slot_count) return {};
        for (std::size_t after = n + 1; after <= n + bounce_type::slot_count; ++after)
            if (!any_lent(of_piece(after))) return {}; // it takes no slot
        bucket const& next = of_piece(n + bounce_type::slot_count);
        std::span<std::byte const> found;
        for_each_tensor_in(plan_, next, [&](std::size_t i, std::size_t from, std::size_t count) {
            if (count == next.elements && count <= most && store_.is_lent(i))
                found = {reinterpret_cast<std::byte const*>(store_.origin(i, from)),
                         count * plan_.element_bytes};
        });
        return found;
    }

    bucket const& of_piece(std::size_t n) const noexcept { return plan_.buckets[leaving_.bucket(n)]; }
    bool any_lent(bucket const& of) const noexcept {
        bool any = false;
        for_each_tensor_in(plan_, of,
                           [&](std::size_t i, std::size_t, std::size_t) { any = any || store_.is_lent(i); });
        return any;
    }

    session_base& session_;
    plan const& plan_;
    Trace& trace_;
    calls& checks_;
    bool const bounced_; // the caller's tensors pass bounce slots
    step_ledger ledger_;
    [[no_unique_address]] Buckets leaving_;
    Store store_;
    bounce_type bounce_;
    std::size_t submitted_ = 0; // pieces of the step
    std::uint64_t end_ = 0;     // executions up to the last bucket of the step
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_STEP_HPP
