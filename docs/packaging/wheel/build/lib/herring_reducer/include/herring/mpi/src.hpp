// herring: definitions of herring/mpi/reduce.hpp and herring/mpi/reduce.h; included in one .cpp of a program.
// SPDX-License-Identifier: Apache-2.0
//
// Compile this .cpp as C++20 and without -ffast-math; it takes some seconds. To replace the policies of the
// reducers, define HERRING_MPI_POLICIES and include the headers that it needs before this header.
#ifndef HERRING_MPI_SRC_HPP
#define HERRING_MPI_SRC_HPP

#include "herring/base/config.hpp"
#include "herring/mpi/reduce.h"
#include "herring/mpi/reduce.hpp"

#include "herring/base/manual_lifetime.hpp"
#include "herring/indexed.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join/mpi.hpp"
#include "herring/mpi/calls.hpp"
#include "herring/reducer.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/update/rules.hpp"
#include "herring/waiting/mpi.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

#ifndef HERRING_MPI_POLICIES
#define HERRING_MPI_POLICIES                                                                                 \
    herring::transport::tcp, herring::intra_node::shared_memory, herring::waiting::mpi
#endif

namespace HERRING_NAMESPACE::detail {

template <class Element, class Update> using mpi_reducer = reducer<Element, HERRING_MPI_POLICIES, Update>;

/// Ends the job because the world of a communicator has failed; called in a thread of Herring. Does nothing
/// if the user has set a handler, which the next reduction calls.
inline void mpi_end_job(MPI_Comm comm, std::string const& sentence) noexcept;

/// Returns " (ranks as in the communicator NAME)", or nothing for MPI_COMM_WORLD, whose name is empty.
HERRING_SETUP inline std::string mpi_told_ranks(std::string const& name) {
    return name.empty() ? std::string() : " (ranks as in the communicator " + name + ")";
}

/// The world and the reducers of a communicator, created by its first reduction; reducers are created when
/// needed.
class mpi_group {
  public:
    mpi_group(MPI_Comm of, std::string name, bool returns_errors)
        : name_(std::move(name)), ranks_(join(of, options_for(of, name_, returns_errors))) {}

    template <class Element>
    void sum(MPI_Comm of, Element const* in, Element* out, std::size_t n, std::chrono::milliseconds timeout) {
        if constexpr (sizeof(Element) < sizeof(std::int64_t) && std::is_integral_v<Element>) {
            auto const wide = [](Element x) { return std::int64_t{x}; };
            auto const narrow = [](std::int64_t x) {
                return static_cast<Element>(static_cast<std::uint64_t>(x));
            };
            by_words(reducer_in(of, integer_sums_, timeout), words_, in, out, n, timeout, wide, narrow,
                     nullptr);
        } else {
            if constexpr (std::is_same_v<Element, float>)
                reduce(reducer_in(of, float_sums_, timeout), in, out, n, timeout);
            else if constexpr (std::is_same_v<Element, double>)
                reduce(reducer_in(of, double_sums_, timeout), in, out, n, timeout);
            else
                integers(of, in, out, n, timeout);
        }
    }

    template <class Element>
    void least_or_greatest(MPI_Comm of, Element const* in, Element* out, std::size_t n,
                           std::chrono::milliseconds timeout, bool least, int number) {
        using order = mpi_ordered<Element>;
        auto const wide = [least](Element x) { return order::word(x, least); };
        auto const narrow = [least](std::int64_t x) { return order::value(x, least); };
        by_words(reducer_in(of, greatest_, timeout), words_, in, out, n, timeout, wide, narrow, &number);
    }

    template <class Value>
    void least_or_greatest(MPI_Comm of, mpi::indexed<Value> const* in, mpi::indexed<Value>* out,
                           std::size_t n, std::chrono::milliseconds timeout, bool least, int number) {
        using order = mpi_ordered_pair<Value>;
        auto const wide = [least](mpi::indexed<Value> x) { return order::word(x.value, x.index, least); };
        auto const narrow = [least](pair const& x) {
            return mpi::indexed<Value>{order::value(x, least), order::index(x)};
        };
        by_words(reducer_in(of, greatest_pairs_, timeout), pairs_, in, out, n, timeout, wide, narrow,
                 &number);
    }

    /// Reports the call to the world. Calls on a communicator are made one after the other, so ranks in
    /// different calls are detected without a deadline.
    void begin_call(char const* name) noexcept {
        call_ = name;
        ranks_.state().begin_call(name);
    }
    std::string const& name() const noexcept { return name_; }
    std::chrono::milliseconds default_timeout() const noexcept { return ranks_.default_timeout(); }

  private:
    static constexpr std::size_t most_words = 128 * 1024; // 1 MiB; 2 MiB of pairs
    using pair = indexed<std::int64_t>;

    // A timeout of a day: MPI programs may compute for long between two reductions. `on_failure`: a rank may
    // be waiting in MPI for a rank that has died; not if errors are returned. The role of a worker, whatever
    // HERRING_ROLE says: a rank that serves another world reduces here.
    HERRING_SETUP static join_options options_for(MPI_Comm of, std::string const& name, bool returns_errors) {
        join_options options;
        options.role = role::worker;
        if (!returns_errors)
            options.on_failure = [of, name](failure const& why) {
                mpi_end_job(of, why.message() + mpi_told_ranks(name));
            };
        if (std::getenv("HERRING_DEFAULT_TIMEOUT") == nullptr)
            options.default_timeout = std::chrono::hours(24);
        return options;
    }

    template <class Reducer>
    Reducer& reducer_in(MPI_Comm of, manual_lifetime<Reducer>& slot, std::chrono::milliseconds timeout) {
        if (slot) return *slot;
        wait_for_all(of, timeout);
        compare_calls(std::is_same_v<Reducer, mpi_reducer<float, update::sum>>          ? 'f'
                      : std::is_same_v<Reducer, mpi_reducer<double, update::sum>>       ? 'd'
                      : std::is_same_v<Reducer, mpi_reducer<std::int64_t, update::sum>> ? 'i'
                      : std::is_same_v<Reducer, mpi_reducer<pair, update::max>>         ? 'p'
                                                                                        : 'm');
        return slot.emplace(ranks_);
    }

    // Waits until all ranks have called, for the deadlines of set-up must begin then, and ranks may call
    // minutes apart. Waits by MPI, whose messages progress meanwhile, and checks for failures of ranks.
    HERRING_SETUP void wait_for_all(MPI_Comm of, std::chrono::milliseconds timeout) {
        time_point const deadline = deadline_in(timeout);
        collective_wait const listed(ranks_.state());
        MPI_Request all = MPI_REQUEST_NULL;
        mpi_check(MPI_Ibarrier(of, &all), ranks_.rank(), "MPI_Ibarrier");
        for (int here = 0;;) {
            mpi_check(MPI_Test(&all, &here, MPI_STATUS_IGNORE), ranks_.rank(), "MPI_Test");
            if (here != 0) return;
            ranks_.check();
            if (clock::now() >= deadline) {
                error const late(
                    errc::timeout, ranks_.rank(), -1, "construction",
                    "not all ranks of the communicator made this call within the deadline; let all "
                    "ranks make the same calls, or set a longer time by set_timeout");
                ranks_.fail(late.why());
                throw late;
            }
            ::sched_yield();
        }
    }

    // Throws if ranks are in calls that make reducers of different kinds.
    HERRING_SETUP void compare_calls(char kind) {
        std::string const mine = kind + std::string(call_);
        gather_result const all = ranks_.all_gather(std::as_bytes(std::span(mine)));
        auto const from = [&](std::size_t r) {
            return std::string_view(reinterpret_cast<char const*>(all[r].data()), all[r].size());
        };
        auto const call = [&](std::size_t r) { return from(r).empty() ? from(r) : from(r).substr(1); };
        for (std::size_t r = 1; r < all.size(); ++r) {
            if (from(r).substr(0, 1) == from(0).substr(0, 1)) continue;
            error const differs(errc::mismatch, ranks_.rank(), static_cast<int>(r), "construction",
                                {"rank 0 is in ", call(0), ", and rank ", r, " is in ", call(r),
                                 "; let all ranks make the same calls on a communicator, in the same order"});
            ranks_.fail(differs.why());
            throw differs;
        }
    }

    template <class Reducer, class Element>
    static void reduce(Reducer& by, Element const* in, Element* out, std::size_t n,
                       std::chrono::milliseconds timeout) {
        by.all_reduce(std::span<Element const>(in, n), std::span<Element>(out, n), timeout).value();
    }

    // Sums as std::int64_t, which is long or long long: different types with one representation.
    template <class Element>
    void integers(MPI_Comm of, Element const* in, Element* out, std::size_t n,
                  std::chrono::milliseconds timeout) {
        static_assert(sizeof(Element) == sizeof(std::int64_t));
        asm volatile("" : : : "memory"); // keeps accesses of the two types in order
        reduce(reducer_in(of, integer_sums_, timeout), reinterpret_cast<std::int64_t const*>(in),
               reinterpret_cast<std::int64_t*>(out), n, timeout);
        asm volatile("" : : : "memory");
    }

    // Reduces through words, or pairs of words, piece by piece. `number` identifies rule and type, which must
    // be the same on every rank.
    template <class Reducer, class Word, class Element, class Wide, class Narrow>
    void by_words(Reducer& by, std::vector<Word>& words, Element const* in, Element* out, std::size_t n,
                  std::chrono::milliseconds timeout, Wide const& wide, Narrow const& narrow,
                  int const* number) {
        for (std::size_t done = 0; done < n;) {
            std::size_t const count = std::min(n - done, most_words);
            std::size_t const all = count + (number != nullptr ? 2 : 0);
            if (words.size() < all) words.resize(all);
            for (std::size_t i = 0; i < count; ++i) words[i] = wide(in[done + i]);
            if (number != nullptr) {
                word_in(words[count]) = *number;
                word_in(words[count + 1]) = ~std::int64_t{*number};
            }
            reduce(by, words.data(), words.data(), all, timeout);
            if (number != nullptr && word_in(words[count]) != ~word_in(words[count + 1]))
                differ(static_cast<int>(~word_in(words[count + 1])), static_cast<int>(word_in(words[count])));
            for (std::size_t i = 0; i < count; ++i) out[done + i] = narrow(words[i]);
            done += count;
        }
    }
    static std::int64_t& word_in(std::int64_t& word) noexcept { return word; }
    static std::int64_t& word_in(pair& word) noexcept { return word.value; }

    [[noreturn]] HERRING_SETUP void differ(int own, int other) const {
        throw error(errc::mismatch, ranks_.rank(), -1, "all_reduce",
                    {"ranks differ: some called ", mpi_call_name(own), ", others ", mpi_call_name(other),
                     "; let all ranks make the same calls on a communicator, in the same order"});
    }

    std::string name_; // empty: MPI_COMM_WORLD
    char const* call_ = "";
    world ranks_;
    std::vector<std::int64_t> words_;
    std::vector<pair> pairs_;
    manual_lifetime<mpi_reducer<float, update::sum>> float_sums_;
    manual_lifetime<mpi_reducer<double, update::sum>> double_sums_;
    manual_lifetime<mpi_reducer<std::int64_t, update::sum>> integer_sums_;
    manual_lifetime<mpi_reducer<std::int64_t, update::max>> greatest_;
    manual_lifetime<mpi_reducer<pair, update::max>> greatest_pairs_;
};

/// The groups of a process; each is an attribute of its communicator.
class mpi_groups {
  public:
    /// Returns the groups. They are never destroyed: MPI_Finalize may follow destructors of static objects.
    static mpi_groups& all() {
        static mpi_groups* const groups = new mpi_groups;
        return *groups;
    }

    /// Returns the communicator's group; the first call is collective. `in_c`: MPI's error handler decides.
    ///
    /// Errors: thrown.
    mpi_group& of(MPI_Comm comm, bool in_c) {
        int const key = key_.load(std::memory_order_acquire);
        if (comm == MPI_COMM_NULL || key == MPI_KEYVAL_INVALID) return open(comm, in_c);
        if (main_only_) check_thread();
        void* found = nullptr;
        int is_there = 0;
        mpi_check(MPI_Comm_get_attr(comm, key, static_cast<void*>(&found), &is_there), -1,
                  "MPI_Comm_get_attr");
        return is_there != 0 ? *static_cast<mpi_group*>(found) : open(comm, in_c);
    }

    std::chrono::milliseconds timeout(mpi_group const& of) const noexcept {
        return timeout_ > std::chrono::milliseconds(0) ? timeout_ : of.default_timeout();
    }
    void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }

    mpi::error_handler handle_errors(mpi::error_handler handler) noexcept {
        return handler_.exchange(handler);
    }
    bool errors_are_handled() const noexcept { return handler_.load() != nullptr; }

    /// True if this communicator's error handler is not the default, which ends the job.
    HERRING_SETUP static bool returns_errors(MPI_Comm comm) {
        MPI_Errhandler set = MPI_ERRHANDLER_NULL;
        if (!usable() || comm == MPI_COMM_NULL || MPI_Comm_get_errhandler(comm, &set) != MPI_SUCCESS)
            return false;
        bool returns = set != MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
        returns = returns && set != MPI_ERRORS_ABORT;
#endif
        MPI_Errhandler_free(&set);
        return returns;
    }

    /// Calls the handler, then ends the job. Leaves only by an exception of the handler.
    [[noreturn]] HERRING_SETUP void report(MPI_Comm comm, std::string const& sentence) {
        if (auto const handler = handler_.load())
            handler(comm, sentence.c_str());
        else if (ending_.exchange(true))
            for (int seconds = 0; seconds < 10; ++seconds) ::sleep(1); // another thread ends the job
        else
            std::fprintf(stderr, "%s\n", sentence.c_str());
        if (usable()) MPI_Abort(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, 1);
        std::abort();
    }

  private:
    static bool usable() noexcept {
        int begun = 0, over = 0;
        MPI_Initialized(&begun);
        MPI_Finalized(&over);
        return begun != 0 && over == 0;
    }

    [[noreturn]] HERRING_SETUP static void refuse(errc what, char const* text) {
        throw error(what, -1, -1, mpi_operation, text);
    }

    static void check_thread() {
        int is_main = 1;
        MPI_Is_thread_main(&is_main);
        if (is_main == 0)
            refuse(errc::bad_state,
                   "called by another thread than the one that MPI_Init_thread allows MPI to; reduce in the "
                   "main thread (OpenMP: in a master section), or ask for MPI_THREAD_SERIALIZED or more");
    }

    HERRING_SETUP mpi_group& open(MPI_Comm comm, bool in_c) {
        int begun = 0, over = 0, inter = 0, rank = 0;
        MPI_Initialized(&begun);
        if (begun == 0) refuse(errc::bad_state, "called before MPI_Init; call MPI_Init first");
        MPI_Finalized(&over);
        if (over != 0 || over_)
            refuse(errc::bad_state, "called after MPI_Finalize, or in it; reduce before MPI_Finalize");
        if (comm == MPI_COMM_NULL)
            refuse(errc::bad_argument,
                   "the communicator is MPI_COMM_NULL; ranks that MPI_Comm_split gave none must not call");
        mpi_check(MPI_Comm_test_inter(comm, &inter), -1, "MPI_Comm_test_inter");
        if (inter != 0)
            refuse(errc::bad_argument,
                   "an intercommunicator joins two groups, and there is no sum over both; make it one by "
                   "MPI_Intercomm_merge");
        int const key = prepare();
        if (main_only_) check_thread();
        mpi_check(MPI_Comm_rank(comm, &rank), -1, "MPI_Comm_rank");
        mpi_check(MPI_Barrier(comm), rank, "MPI_Barrier"); // see wait_for_all
        auto group = std::make_unique<mpi_group>(comm, name_of(comm), in_c && returns_errors(comm));
        std::lock_guard const lock(mutex_);
        live_.push_back(group.get());
        mpi_check(MPI_Comm_set_attr(comm, key, group.get()), rank, "MPI_Comm_set_attr");
        return *group.release();
    }

    // Once per process: creates the keys, and the callback at the start of MPI_Finalize.
    HERRING_SETUP int prepare() {
        std::lock_guard const lock(mutex_);
        int key = key_.load(std::memory_order_relaxed);
        if (key != MPI_KEYVAL_INVALID) return key;
        int provided = MPI_THREAD_SINGLE, at_end = MPI_KEYVAL_INVALID;
        mpi_check(MPI_Query_thread(&provided), -1, "MPI_Query_thread");
        main_only_ = provided == MPI_THREAD_SINGLE || provided == MPI_THREAD_FUNNELED;
        mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &key, nullptr), -1,
                  "MPI_Comm_create_keyval");
        mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalized, &at_end, nullptr), -1,
                  "MPI_Comm_create_keyval");
        mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, at_end, nullptr), -1, "MPI_Comm_set_attr");
        MPI_Comm_free_keyval(&at_end); // MPI keeps it as long as the attribute
        key_.store(key, std::memory_order_release);
        return key;
    }

    HERRING_SETUP static std::string name_of(MPI_Comm comm) {
        if (comm == MPI_COMM_WORLD) return {};
        char name[MPI_MAX_OBJECT_NAME] = {};
        int length = 0;
        MPI_Comm_get_name(comm, name, &length);
        if (name[0] != 0) return name;
        int like = MPI_UNEQUAL; // a duplicate has no name, and the same ranks
        MPI_Comm_compare(comm, MPI_COMM_WORLD, &like);
        return like == MPI_CONGRUENT ? "MPI_COMM_WORLD" : "without a name";
    }

    void end(void* group) noexcept {
        std::unique_ptr<mpi_group> ended;
        std::lock_guard const lock(mutex_);
        auto const at = std::find(live_.begin(), live_.end(), group);
        if (at == live_.end()) return; // MPI_Finalize has ended it
        ended.reset(*at);
        live_.erase(at);
    }

    static int freed(MPI_Comm, int, void* group, void*) noexcept {
        all().end(group);
        return MPI_SUCCESS;
    }
    static int finalized(MPI_Comm, int, void*, void*) noexcept {
        mpi_groups& groups = all();
        // In the same order on all ranks: a rank that leaves a world waits for the other ranks to leave it.
        while (!groups.live_.empty()) groups.end(groups.live_.back());
        groups.over_ = true;
        groups.key_.store(MPI_KEYVAL_INVALID);
        return MPI_SUCCESS;
    }

    std::mutex mutex_; // of live_ and the creation of the keys
    std::vector<mpi_group*> live_;
    std::atomic<int> key_{MPI_KEYVAL_INVALID};
    bool main_only_ = false; // only the main thread may call MPI
    bool over_ = false;
    std::atomic<bool> ending_{false}; // a thread has written its sentence and calls MPI_Abort
    std::atomic<mpi::error_handler> handler_{nullptr};
    std::chrono::milliseconds timeout_{0}; // 0: not set
};

inline void mpi_end_job(MPI_Comm comm, std::string const& sentence) noexcept {
    if (!mpi_groups::all().errors_are_handled()) mpi_groups::all().report(comm, sentence);
}

/// Returns this rank in the communicator, or −1 if MPI cannot be called.
HERRING_SETUP inline int mpi_rank_in(MPI_Comm comm) noexcept {
    int begun = 0, over = 0, rank = -1;
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    if (begun != 0 && over == 0 && comm != MPI_COMM_NULL) MPI_Comm_rank(comm, &rank);
    return rank;
}

/// Returns the sentence of a misuse, with the name of its call.
HERRING_SETUP inline std::string mpi_misuse(char const* call, MPI_Comm comm, failure const& why) {
    return failure::make(why.what, mpi_rank_in(comm), why.peer, text({"mpi::", call}), why.text).message();
}

template <class Element> void mpi_check_memory(Element const* in, Element const* out, std::ptrdiff_t n) {
    if (n < 0)
        throw error(
            errc::bad_argument, -1, -1, mpi_operation,
            {"n is ", n, ", which is negative; it is the number of values, as MPI_Allreduce's count"});
    if (in == nullptr || out == nullptr)
        throw error(errc::bad_argument, -1, -1, mpi_operation,
                    {"the address of the ", in == nullptr ? "input" : "result",
                     " is null; pass two addresses, or one twice to reduce in place"});
    auto const from = reinterpret_cast<std::uintptr_t>(in), to = reinterpret_cast<std::uintptr_t>(out);
    std::uintptr_t const bytes = static_cast<std::uintptr_t>(n) * sizeof(Element);
    if (from != to && from < to + bytes && to < from + bytes)
        throw error(errc::bad_argument, -1, -1, mpi_operation,
                    {"the ", n,
                     " values of the input and of the result overlap; pass memory apart, or the same address "
                     "twice to "
                     "reduce in place"});
}

/// Reduces; returns the sentence of the error, empty if there is none. `number`: of rule and type.
template <class Element>
std::string mpi_try(int number, Element const* in, Element* out, std::ptrdiff_t n, MPI_Comm comm, bool in_c) {
    mpi_groups& groups = mpi_groups::all();
    mpi_group const* group = nullptr;
    std::string sentence;
    char const* const call = mpi_call_name(number);
    mpi_rule const rule = mpi_rule_of(number);
    try {
        if (static_cast<void const*>(in) == static_cast<void const*>(MPI_IN_PLACE)) in = out;
        if (n == 0) return sentence;
        mpi_check_memory(in, out, n);
        mpi_group& by = groups.of(comm, in_c);
        group = &by;
        by.begin_call(call);
        auto const count = static_cast<std::size_t>(n);
        if constexpr (std::is_arithmetic_v<Element>)
            if (rule == mpi_rule::sum) {
                by.sum(comm, in, out, count, groups.timeout(by));
                return sentence;
            }
        by.least_or_greatest(comm, in, out, count, groups.timeout(by),
                             rule == mpi_rule::min || rule == mpi_rule::minloc, number);
        return sentence;
    } catch (error const& why) {
        bool const misuse = std::strcmp(why.operation(), mpi_operation) == 0;
        sentence = misuse ? mpi_misuse(call, comm, why.why()) : why.what();
    } catch (std::exception const& why) {
        sentence = text({"herring: mpi::", call, ": ", why.what()});
    }
    if (group != nullptr) sentence += mpi_told_ranks(group->name());
    return sentence;
}

template <class Element>
void mpi_reduce(int number, Element const* in, Element* out, std::ptrdiff_t n, MPI_Comm comm) {
    std::string const sentence = mpi_try(number, in, out, n, comm, false);
    if (!sentence.empty()) mpi_groups::all().report(comm, sentence);
}

/// The arguments of MPI_Allreduce.
struct mpi_allreduce_call {
    void const* in;
    void* out;
    int count;
    MPI_Comm comm;

    template <class Element> std::string as(int number) const {
        return mpi_try(number, static_cast<Element const*>(in), static_cast<Element*>(out), count, comm,
                       true);
    }
    template <class Number> std::string of(mpi_rule rule) const {
        return as<Number>(mpi_call_number<Number>(rule));
    }
    template <class Value> std::string of_pairs(mpi_rule rule) const {
        return as<mpi::indexed<Value>>(mpi_call_number<Value>(rule));
    }
};

/// Reduces; returns the sentence of the error, empty if there is none, and its code.
inline std::pair<std::string, int> mpi_allreduce(mpi_allreduce_call const& call, MPI_Datatype type,
                                                 MPI_Op op) {
    bool known = true, locates = false;
    mpi_rule rule = mpi_rule::sum;
    if (op == MPI_MIN)
        rule = mpi_rule::min;
    else if (op == MPI_MAX)
        rule = mpi_rule::max;
    else if ((locates = op == MPI_MINLOC || op == MPI_MAXLOC))
        rule = op == MPI_MINLOC ? mpi_rule::minloc : mpi_rule::maxloc;
    else
        known = op == MPI_SUM;
    if (locates) {
        if (type == MPI_2INT) return {call.of_pairs<int>(rule), MPI_ERR_OTHER};
        if (type == MPI_LONG_INT) return {call.of_pairs<long>(rule), MPI_ERR_OTHER};
        if (type == MPI_FLOAT_INT) return {call.of_pairs<float>(rule), MPI_ERR_OTHER};
        if (type == MPI_DOUBLE_INT) return {call.of_pairs<double>(rule), MPI_ERR_OTHER};
    } else if (known) {
        if (type == MPI_DOUBLE) return {call.of<double>(rule), MPI_ERR_OTHER};
        if (type == MPI_FLOAT) return {call.of<float>(rule), MPI_ERR_OTHER};
        if (type == MPI_INT || type == MPI_INT32_T) return {call.of<int>(rule), MPI_ERR_OTHER};
        if (type == MPI_LONG) return {call.of<long>(rule), MPI_ERR_OTHER};
        if (type == MPI_LONG_LONG || type == MPI_INT64_T) return {call.of<long long>(rule), MPI_ERR_OTHER};
    }
    failure const why = failure::make(
        errc::unsupported, mpi_rank_in(call.comm), -1, "herring_mpi_allreduce",
        {known ? "the type is none of this operation's" : "the operation is none of those",
         " that it has: MPI_SUM, MPI_MIN and MPI_MAX of MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT32_T, "
         "MPI_INT64_T, MPI_FLOAT and MPI_DOUBLE; MPI_MINLOC and MPI_MAXLOC of MPI_2INT, MPI_LONG_INT, "
         "MPI_FLOAT_INT and MPI_DOUBLE_INT; leave others to MPI_Allreduce"});
    return {why.message(), known ? MPI_ERR_TYPE : MPI_ERR_OP};
}

inline std::string& mpi_last_error() noexcept {
    thread_local std::string sentence;
    return sentence;
}

} // namespace HERRING_NAMESPACE::detail

namespace herring::mpi {

// clang-format off
#define HERRING_MPI_REDUCTION(rule, type)                                                                    \
    void rule(type const* in, type* out, std::ptrdiff_t n, MPI_Comm comm) {                                  \
        detail::mpi_reduce(detail::mpi_call_number<type>(detail::mpi_rule::rule), in, out, n, comm);         \
    }                                                                                                        \
    type rule(type const& x, MPI_Comm comm) {                                                                \
        type out;                                                                                            \
        rule(&x, &out, 1, comm);                                                                             \
        return out;                                                                                          \
    }
#define HERRING_MPI_LOCATION(rule, type)                                                                     \
    void rule(indexed<type> const* in, indexed<type>* out, std::ptrdiff_t n, MPI_Comm comm) {                \
        detail::mpi_reduce(detail::mpi_call_number<type>(detail::mpi_rule::rule), in, out, n, comm);         \
    }                                                                                                        \
    indexed<type> rule(type const& x, int index, MPI_Comm comm) {                                            \
        indexed<type> out = {x, index};                                                                      \
        rule(&out, &out, 1, comm);                                                                           \
        return out;                                                                                          \
    }
#define HERRING_MPI_REDUCTIONS(type)                                                                         \
    HERRING_MPI_REDUCTION(sum, type)                                                                         \
    HERRING_MPI_REDUCTION(min, type)                                                                         \
    HERRING_MPI_REDUCTION(max, type)                                                                         \
    HERRING_MPI_LOCATION(minloc, type)                                                                       \
    HERRING_MPI_LOCATION(maxloc, type)

HERRING_MPI_REDUCTIONS(int)
HERRING_MPI_REDUCTIONS(long)
HERRING_MPI_REDUCTIONS(long long)
HERRING_MPI_REDUCTIONS(float)
HERRING_MPI_REDUCTIONS(double)

#undef HERRING_MPI_REDUCTIONS
#undef HERRING_MPI_LOCATION
#undef HERRING_MPI_REDUCTION
// clang-format on

void const* only_in_place(void const* in, MPI_Comm comm) {
    if (in != static_cast<void const*>(MPI_IN_PLACE))
        detail::mpi_groups::all().report(
            comm,
            failure::make(errc::bad_argument, detail::mpi_rank_in(comm), -1, detail::mpi_operation,
                          "the input is a pointer to void, and not MPI_IN_PLACE; cast it to a pointer to "
                          "the type of the result")
                .message());
    return in;
}

error_handler handle_errors(error_handler handler) {
    return detail::mpi_groups::all().handle_errors(handler);
}

void set_timeout(double seconds) {
    auto& groups = detail::mpi_groups::all();
    // Limits the time to a year; a NaN fails the comparison.
    if (seconds > 0)
        return groups.set_timeout(std::chrono::milliseconds(
            std::max(std::int64_t{1}, static_cast<std::int64_t>(std::min(seconds, 31'536'000.0) * 1e3))));
    groups.report(MPI_COMM_NULL, "herring: mpi::set_timeout: bad argument: the time must be more than "
                                 "0 seconds; give a large one to wait long");
}

} // namespace herring::mpi

extern "C" {

int herring_mpi_allreduce(void const* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    using namespace herring::detail;
    auto [sentence, code] = mpi_allreduce({in, out, count, comm}, type, op);
    if (sentence.empty()) return MPI_SUCCESS;
    mpi_last_error() = std::move(sentence);
    if (mpi_groups::returns_errors(comm)) {
        MPI_Comm_call_errhandler(comm, code);
        return code;
    }
    try {
        mpi_groups::all().report(comm, mpi_last_error());
    } catch (...) {
        return code; // a handler of mpi::handle_errors has thrown
    }
}

char const* herring_mpi_error(void) { return herring::detail::mpi_last_error().c_str(); }

} // extern "C"

#endif // HERRING_MPI_SRC_HPP
