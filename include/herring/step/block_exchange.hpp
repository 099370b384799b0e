// herring: all_to_all, gather and scatter of the caller's memory: blocks of all ranks, in place or in pieces.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_BLOCK_EXCHANGE_HPP
#define HERRING_STEP_BLOCK_EXCHANGE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/operations/all_to_all.hpp"
#include "herring/kernel/copies.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/range.hpp"
#include "herring/plan/bucket.hpp"
#include "herring/plan/division.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"
#include "herring/plan/route_limits.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/collective.hpp"
#include "herring/step/session_base.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A call that moves a block for each pair of ranks, in memory of the caller: blocks lie in the order of
/// ranks.
struct block_program {
    std::uint8_t operation = 0; ///< number in the engine's list
    std::uint8_t served_by = 0; ///< the same, of small blocks to or from a root, through one server
    char const* name = "all_to_all";
    std::uint32_t moved_bytes = 1; ///< of an element
    block_sizes sizes{};
    std::uint64_t digest = 0; ///< of the kind of call, for fingerprints; its lower half is 0
};

/// Runs calls that move blocks, one at a time, by the memory path of their size.
///
/// Cost:     in place: a block is sent from where it lies, and copied once to where it belongs. Bounced:
///           every block is copied in, and on one node read from there by the rank that it is for; between
///           nodes of several ranks it is copied to the message, to the result and out. A rank's block for
///           itself is copied once.
/// Memory:   O(ranks · bounce slots), at construction.
/// Lifetime: refers to the session's values and its bounce buffers.
template <class Store> class block_exchange {
  public:
    block_exchange(session_base& session, bounce_buffers<Store>& bounce)
        : session_(session), bounce_(bounce), bytes_(in_bytes(session.plan())), rank_(session.ranks().rank()),
          ranks_(session.ranks().size()), one_node_(session.plan().nodes == 1),
          served_(bytes_.served_blocks_limit()), blocks_(static_cast<std::size_t>(ranks_)),
          scratch_(session.memory().piece_elements == 0 ? served_ : 0) {
        auto const count = static_cast<std::size_t>(ranks_);
        for (std::vector<std::size_t>* const one : {&sent_at_, &received_at_, &most_, &boxed_at_})
            one->resize(count);
        for (division& one : divisions_) {
            one.begins.resize(count + 1);
            one.shards.reserve(count);
        }
    }

    /// Returns the bytes of the largest block from a rank to another one.
    std::size_t begin(block_program const& program) noexcept {
        program_ = program;
        block_sizes const& sizes = program_.sizes;
        std::size_t sent = 0, received = 0, largest = 0;
        for (int r = 0; r < ranks_; ++r) {
            auto const at = static_cast<std::size_t>(r);
            sent_at_[at] = sent;
            received_at_[at] = received;
            sent += sizes.of(rank_, r);
            received += sizes.of(r, rank_);
            largest = std::max(largest, most_to(r));
        }
        sent_ = sent;
        largest_ = largest;
        label_ = label_of_call(program.operation, std::max(sizes.from, sizes.to), program.moved_bytes,
                               session_.plan().element_bytes) ^
                 program.digest;
        return largest;
    }
    /// Copies this rank's block for itself.
    void copy_own(std::byte const* in, std::byte* out) const noexcept {
        auto const at = static_cast<std::size_t>(rank_);
        std::size_t const bytes = program_.sizes.of(rank_, rank_);
        if (bytes == 0 || in + sent_at_[at] == out + received_at_[at]) return;
        if (bytes < streamed_own)
            std::memcpy(out + received_at_[at], in + sent_at_[at], bytes);
        else
            kernel::stream_copy(out + received_at_[at], in + sent_at_[at], bytes);
    }

    /// Runs what has begun, where some block has bytes.
    template <class Session>
    status run(Session& session, std::byte const* in, std::byte* out, time_point deadline) {
        in_ = in;
        out_ = out;
        if (is_served()) return run_served(session, deadline);
        std::size_t const of_rank = most_sent();
        memory_path const path = session_.memory().path_of_buffer(of_rank);
        if (path == memory_path::bounced) return run_pieces(session, of_rank, deadline);
        division& all = divisions_[0];
        // Results land where they belong; but blocks for one rank are sent as parts, by all their ranks at
        // once.
        begin_ranges(!one_node_ && bytes_.largest_node == 1 && program_.sizes.to < 0 &&
                     !is_one_hop(largest_));
        divide(all, 0, largest_);
        all.piece.sent_at = sent_at_.data();
        all.piece.received_at = received_at_.data();
        execution e = execution_of(all, 0);
        if (path == memory_path::mailbox) {
            e.path = route::mailbox; // memory that the others do not see
            for (int l = 0; l < session_.local_ranks(); ++l)
                boxed_at_[static_cast<std::size_t>(l)] = before_own(l);
            all.piece.boxed_at = boxed_at_.data();
        }
        e.own = const_cast<std::byte*>(in);
        e.out = out;
        std::uint64_t const submitted = session.submit(e);
        copy_own(in, out);
        return session.finish(submitted, deadline);
    }

  private:
    static constexpr std::size_t streamed_results = 64_MiB, streamed_own = 4_MiB; // larger than caches

    // A piece, or a call in place. An execution points to it until it is released.
    struct division {
        block_piece piece;
        bucket whole;
        std::vector<std::size_t> begins;
        std::vector<shard> shards;
    };

    std::size_t most_to(int receiver) const noexcept {
        block_sizes const& sizes = program_.sizes;
        if (sizes.table == nullptr) {
            bool const gets = sizes.from < 0 ? ranks_ > 1 : sizes.from != receiver;
            return gets && (sizes.to < 0 || sizes.to == receiver) ? sizes.each : 0;
        }
        std::size_t most = 0;
        for (int s = 0; s < ranks_; ++s)
            if (s != receiver) most = std::max(most, sizes.of(s, receiver));
        return most;
    }
    std::size_t most_from(int sender) const noexcept {
        block_sizes const& sizes = program_.sizes;
        if (sizes.table == nullptr) {
            bool const gives = sizes.to < 0 ? ranks_ > 1 : sizes.to != sender;
            return gives && (sizes.from < 0 || sizes.from == sender) ? sizes.each : 0;
        }
        std::size_t most = 0;
        for (int r = 0; r < ranks_; ++r)
            if (r != sender) most = std::max(most, sizes.of(sender, r));
        return most;
    }
    // The ranges of buckets: of the ranks that send blocks, or of those that receive them.
    void begin_ranges(bool of_senders) noexcept {
        of_senders_ = of_senders;
        for (int r = 0; r < ranks_; ++r)
            most_[static_cast<std::size_t>(r)] = of_senders ? most_from(r) : most_to(r);
    }
    bool is_one_hop(std::size_t slice) const noexcept {
        return !one_node_ && bytes_.largest_node == 1 && bytes_.all_have_both_roles() &&
               slice <= bytes_.hop_slot_elements();
    }
    // Bytes that the rank with most sends, with its own block.
    std::size_t most_sent() const noexcept {
        block_sizes const& sizes = program_.sizes;
        if (sizes.table == nullptr)
            return sizes.to < 0 ? sizes.each * static_cast<std::size_t>(ranks_) : sizes.each;
        std::size_t most = 0;
        for (int s = 0; s < ranks_; ++s) {
            std::size_t sent = 0;
            for (int r = 0; r < ranks_; ++r) sent += sizes.of(s, r);
            most = std::max(most, sent);
        }
        return most;
    }
    // Bytes before the block to this rank in the memory of a local rank.
    std::size_t before_own(int local) const noexcept {
        int const sender = session_.map().rank_of(session_.map().node(rank_), local);
        std::size_t before = 0;
        for (int r = 0; r < rank_; ++r) before += program_.sizes.of(sender, r);
        return before;
    }

    void divide(division& to, std::size_t before, std::size_t most) {
        to.piece = {.sizes = &program_.sizes,
                    .before = before,
                    .begins = to.begins.data(),
                    .sent = sent_,
                    .of_senders = of_senders_};
        to.shards.clear();
        to.piece.most = std::min(largest_ - before, most);
        bool const one_hop = is_one_hop(to.piece.most);
        // By two hops every pair of nodes exchanges a message, so that calls that differ are told: a rank
        // that gets nothing has one byte of the first piece, which no block fills.
        std::size_t const least = one_node_ || one_hop || before > 0 ? 0 : 1;
        to.begins[0] = 0;
        for (std::size_t r = 0; r < most_.size(); ++r) {
            std::size_t const slice = most_[r] > before ? std::min(most_[r] - before, most) : 0;
            to.begins[r + 1] = to.begins[r] + std::max(slice, least);
        }
        std::size_t const elements = to.begins.back();
        to.whole = {.elements = elements,
                    .path = one_node_ ? route::local
                            : one_hop ? route::one_hop
                                      : route::two_hop};
        if (one_node_ || one_hop) {
            server_id const server = one_node_ ? server_id{0} : server_id{};
            shard one = cut(0, elements, server, elements, 1, 1);
            to.shards.push_back(one);
            to.whole.chunks = one.chunks;
        } else {
            // A part has the slices of all ranks of a node; what is sent from its place lies in no slot.
            std::size_t const fits = of_senders_ ? bytes_.unslotted_elements()
                                                 : std::max(bytes_.slot_elements() /
                                                                static_cast<std::size_t>(bytes_.largest_node),
                                                            std::size_t{1}),
                              line = std::min(bytes_.line_elements, fits);
            for (int r = 0; r < ranks_; ++r) {
                std::size_t const begin = to.begins[static_cast<std::size_t>(r)],
                                  bytes = to.begins[static_cast<std::size_t>(r) + 1] - begin;
                if (bytes == 0) continue;
                shard one = cut(begin, bytes, bytes_.roles.server(session_.map().node(r)), fits, line, 1);
                one.owner = session_.map().local_rank(r);
                one.first_chunk = to.whole.chunks;
                to.whole.chunks += one.chunks;
                to.shards.push_back(one);
            }
        }
        to.whole.shards = static_cast<std::uint32_t>(to.shards.size());
    }
    execution execution_of(division const& of, std::size_t number) const noexcept {
        block_sizes const& sizes = program_.sizes;
        return {.shards = of.shards.data(),
                .shard_count = of.whole.shards,
                .path = of.whole.path,
                .operation = program_.operation,
                .element_bytes = 1,
                .moved_bytes = program_.moved_bytes,
                .root = std::max(sizes.from, sizes.to),
                .elements = of.whole.elements,
                .fingerprint = fingerprint_of(largest_, label_ | number),
                .label = no_bucket,
                .name = program_.name,
                .part = {.blocks = &of.piece}};
    }

    // ---- small blocks to or from a root, through one server -----------------------------------------------

    // The server is the same for all roots, so that ranks that name different ones are told. The bucket is
    // the root's buffer, one chunk. A gather is an all-gather for the root alone, a scatter a broadcast of
    // which each rank gets its block.

    bool is_served() const noexcept {
        block_sizes const& sizes = program_.sizes;
        return std::max(sizes.from, sizes.to) >= 0 &&
               sizes.each <= served_ / static_cast<std::size_t>(ranks_);
    }
    template <class Session> status run_served(Session& session, time_point deadline) {
        division& one = divisions_[0];
        std::size_t const each = program_.sizes.each, own = each * static_cast<std::size_t>(rank_),
                          whole = each * blocks_.size();
        for (std::size_t r = 0; r < blocks_.size(); ++r) blocks_[r] = {r * each, each};
        one.shards.clear();
        one.shards.push_back(cut(0, whole, server_id{0}, round_up(whole, 64), 64, 1));
        one.whole = {.elements = whole, .shards = 1, .chunks = 1, .path = route::two_hop};
        execution e = execution_of(one, 0);
        e.operation = program_.served_by;
        e.elements = each; // as the call has them, for errors
        e.part.owned = blocks_.data();
        bool const gathers = program_.sizes.to >= 0, at_root = rank_ == e.root;
        if (scratch_.empty())
            return bounce_.pass(
                session, 1, deadline,
                [&](std::size_t) {
                    bounced_piece piece = bounce_.next_piece(whole, 1);
                    for (range const& block : blocks_) {
                        bool const is_own = block.offset == own, gives = gathers ? is_own : at_root,
                                   takes = gathers ? at_root : is_own;
                        piece.add({gives ? in_ + (gathers ? 0 : block.offset) : nullptr,
                                   takes ? out_ + (gathers ? block.offset : 0) : nullptr, block.offset,
                                   each});
                    }
                    bounce_.copy_in(piece, session.requested()).put_into(e);
                    return session.submit(e);
                },
                [] {});
        e.own = const_cast<std::byte*>(in_);
        e.own_begin = gathers ? own : 0;
        e.out = gathers && at_root ? out_ : scratch_.data(); // of the server
        std::uint64_t const submitted = session.submit(e);
        if (!gathers) copy_own(in_, out_); // the result of a gather has the root's own block
        status ended = session.finish(submitted, deadline);
        if (!gathers && !at_root && ended.ok()) std::memcpy(out_, scratch_.data() + own, each);
        return ended;
    }

    // ---- in pieces, which pass the bounce slots -----------------------------------------------------------

    // On one node a slot has the blocks to other ranks, which these read there. Between nodes it has the
    // ranges of the bucket, and behind them the results.

    std::size_t slice() const noexcept {
        block_sizes const& sizes = program_.sizes;
        auto const ranks = static_cast<std::size_t>(ranks_);
        std::size_t const in = sizes.to >= 0 ? 1 : one_node_ ? ranks - 1 : ranks;
        std::size_t const out = one_node_ ? 0 : sizes.from >= 0 ? 1 : ranks;
        // In a gather, results begin at a line behind a byte of each rank that gets none.
        std::size_t const taken = one_node_ || sizes.to < 0 ? 0 : round_up(ranks, 64);
        std::size_t const all = session_.memory().piece_elements * session_.plan().element_bytes;
        std::size_t const bytes = (all > taken ? all - taken : all) / (in + out);
        return bytes < 64 ? std::max(bytes, std::size_t{1}) : bytes / 64 * 64;
    }
    // Where the slot of a sender has the block to a receiver.
    std::size_t place_in_slot(division const& of, int sender, int receiver) const noexcept {
        auto const at = static_cast<std::size_t>(receiver), own = static_cast<std::size_t>(sender);
        std::size_t const skipped = one_node_ && receiver > sender ? of.begins[own + 1] - of.begins[own] : 0;
        return of.begins[at] - skipped;
    }
    void list_segments(division const& of, bounced_piece& piece) const noexcept {
        // Two ranks that swap write into the slot that they have read; all others write what another core has
        // in its cache.
        copy_mode const shared = one_node_ && !swaps() ? copy_mode::streamed : copy_mode::cached;
        for (int r = 0; r < ranks_; ++r)
            if (std::size_t const bytes = of.piece.bytes(rank_, r); bytes > 0)
                piece.add({in_ + sent_at_[static_cast<std::size_t>(r)] + of.piece.before, nullptr,
                           place_in_slot(of, rank_, r), bytes, shared});
        for (int s = 0; s < ranks_; ++s) {
            std::size_t const bytes = of.piece.bytes(s, rank_);
            if (bytes == 0 && !one_node_) continue;
            std::byte* const to = // null where this rank gets nothing
                bytes == 0 ? nullptr : out_ + received_at_[static_cast<std::size_t>(s)] + of.piece.before;
            piece.add({nullptr, to, one_node_ ? place_in_slot(of, s, rank_) : of.piece.row(s), bytes, shared,
                       landing_});
        }
    }
    // Two ranks exchange blocks of one size: each writes its next piece over the one that it has read.
    bool swaps() const noexcept {
        block_sizes const& sizes = program_.sizes;
        return one_node_ && ranks_ == 2 && sizes.table == nullptr && sizes.from < 0 && sizes.to < 0;
    }
    // The bytes that will follow piece n in its slot, where two ranks swap.
    std::span<std::byte const> next_in_slot(std::size_t n, std::size_t slice) const noexcept {
        std::size_t const before = (n + memory_map::bounce_slots) * slice;
        if (!swaps() || before >= largest_) return {};
        return {in_ + sent_at_[static_cast<std::size_t>(1 - rank_)] + before,
                std::min(largest_ - before, slice)};
    }
    template <class Session> std::uint64_t submit_piece(Session& session, std::size_t n, std::size_t slice) {
        division& of = divisions_[n % memory_map::bounce_slots]; // of a slot that is free
        divide(of, n * slice, slice);
        of.piece.results = one_node_ ? 0 : round_up(of.whole.elements, 64);
        bounced_piece piece = bounce_.next_piece(of.whole.elements, 1);
        list_segments(of, piece);
        piece_place at = bounce_.copy_in(piece, session.requested());
        at.next = next_in_slot(n, slice);
        execution e = execution_of(of, n);
        at.put_into(e);
        return session.submit(e);
    }
    template <class Session> status run_pieces(Session& session, std::size_t of_rank, time_point deadline) {
        std::size_t const each = slice(), count = divide_up(largest_, each);
        landing_ = of_rank * static_cast<std::size_t>(ranks_) >= streamed_results ? copy_mode::streamed
                                                                                  : copy_mode::cached;
        begin_ranges(false);
        return bounce_.pass(
            session, count, deadline, [&](std::size_t n) { return submit_piece(session, n, each); },
            [&] { copy_own(in_, out_); });
    }

    session_base& session_;
    bounce_buffers<Store>& bounce_;
    route_limits const bytes_;
    int const rank_, ranks_;
    bool const one_node_;
    std::size_t const served_;       // bytes of the largest call that goes through one server
    fixed_array<range> blocks_;      // of that call: rank → its block in the root's buffer
    fixed_array<std::byte> scratch_; // of the root's buffer; empty: the bounce slots have room

    // of the call under way
    block_program program_;
    std::byte const* in_ = nullptr;
    std::byte* out_ = nullptr;
    std::vector<std::size_t> sent_at_, received_at_; // rank → of its block, in the caller's memory
    std::vector<std::size_t> most_;                  // rank → of the largest block to it, or from it
    std::vector<std::size_t> boxed_at_; // local rank → of the block to this rank, in its mailbox
    division divisions_[memory_map::bounce_slots];
    std::size_t sent_ = 0, largest_ = 0;
    std::uint64_t label_ = 0; // for fingerprints
    bool of_senders_ = false;
    copy_mode landing_ = copy_mode::cached;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_BLOCK_EXCHANGE_HPP
