// herring: a soak: worlds that are joined, disturbed and ended for as long as wanted, with an oracle for every result and every error.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_SOAK_HPP
#define HERRING_TESTS_FAULT_SOAK_HPP

#include "free_port.hpp"
#include "hosts.hpp"

#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/checked.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/// Ranks are processes on hosts (network namespaces, where root may make them) that join, reduce, and join again. A stage
/// process draws, from a seed, how each life of a world ends, and what disturbs it meanwhile.
///
/// Oracle of results: integers in which each rank has digits of its own, so that a contribution that is lost, taken twice or of
///                    another call changes the result. Every element of every result is compared.
/// Oracle of errors:  a world ends only by what the stage did, all survivors name the rank that it was done to, and every call
///                    ends by its deadline and a little more.
namespace fault::soak {

using herring::clock;
using herring::errc;
using herring::world;
using std::chrono::milliseconds;

struct options {
    double seconds = 60;
    std::uint64_t seed = 1;
    double cores = 0.7;          ///< of the machine, on average: ranks pause between calls
    double longest_life = 20;    ///< seconds from joined to the end
    double longest_outage = 3;   ///< seconds
    bool network = true;         ///< hosts of their own, if that can be
    int hosts = 3;               ///< 3 or 4
    double deadline = 20;        ///< of a call, in seconds
    double loss = 0;             ///< percent of all packets between hosts that are dropped at the switch
    unsigned disturbances = ~0u; ///< a bit for each nuisance
    bool steady = true;          ///< beside worlds that end, one that lives all the time
    bool memory = true;          ///< growth of memory is a failure, in runs of 5 minutes and more
};

/// How a life ends.
enum class ending { clean, kill, silence, reset, late, leave, quit, misuse, flip };
inline constexpr char const* names_of_endings[] = {"all leave",
                                                   "a rank is killed",
                                                   "a rank is stopped for good",
                                                   "connections of a pair are reset",
                                                   "a deadline passes",
                                                   "a rank leaves in a step",
                                                   "a process exits",
                                                   "a rank calls with another size",
                                                   "a bit turns below checked"};
inline constexpr int endings = 9;

/// What disturbs, and has to be survived.
enum class nuisance { stop, junk, hogs, loss, outage, slow };
inline constexpr char const* names_of_nuisances[] = {"a rank is stopped for 0.1 to 3 s",
                                                     "junk on every port that listens",
                                                     "processes that use every core, 0.5 to 2 s",
                                                     "0.5 to 5 % of a host's packets lost, 2 to 8 s",
                                                     "a host cut off for 1 to 3 s",
                                                     "a host's link at 5 to 50 Mbit/s, 2 to 8 s"};
inline constexpr int nuisances = 6;
inline constexpr char const* words_of_nuisances[] = {"stop", "junk", "hogs", "loss", "outage", "slow"};

enum class call : int {
    join,
    construct,
    command,
    step,
    all_reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    bytes,
    leave
};
inline constexpr char const* names_of_calls[] = {
    "join",           "constructor", "command (broadcast)", "step",           "all_reduce",
    "reduce_scatter", "all_gather",  "broadcast",           "barrier, bytes", "leave"};
inline constexpr int calls = 10;

inline constexpr int most_slots = 8;
inline std::size_t large =
    1; ///< sizes are divided by it: where every fifth packet is lost a link carries some 10 kB/s
inline milliseconds limit{20'000}; ///< of a call; more where links lose much
inline constexpr milliseconds join_limit{30'000};
/// Of the call whose deadline is to pass; more where packets are lost, or a link is slow: TCP alone may take longer than that.
inline constexpr milliseconds short_limit{400}, short_limit_over_bad_links{8'000};
inline constexpr milliseconds slack{
    6'000}; // by which a call may end after its deadline before it counts as hung

enum class outcome : int { none, done, error, wrong, other };

/// What all ranks of a life know before it.
struct plan {
    int number = 0;
    int size = 0;
    int flavour = 0;
    int victim = -1; // a slot
    std::uint64_t seed = 0;
    int rank[most_slots] = {}; // of a slot; -1: it takes no part
    char node[most_slots][16] = {};
    char address[64] = {};
};

/// One process after another: a rank of most lives.
struct slot {
    std::atomic<int> pid{0};
    std::atomic<int> ended{0}; // the last life that has
    std::atomic<int> joined{0};
    std::atomic<std::int64_t> until_ns{0}; // of the call that is under way
    std::atomic<int> in{0};                // which that is
    outcome how = outcome::none;
    herring::failure why{};
    std::int64_t at_ns = 0;
    char note[400] = {};
    std::atomic<std::uint64_t> made[calls] = {};
    std::atomic<std::uint64_t> elements{0};
    std::atomic<std::int64_t> latest_ns{0}; // by which a call has ended after its deadline
    std::atomic<long> heap_bytes{0};        // that were allocated, and not freed, between its last two worlds
};

struct board {
    std::atomic<int> life{0};
    std::atomic<bool> over{false};
    std::atomic<int> pause_us{0};
    std::atomic<int> ask{0}; // 0: go on; else 1 + ending, for rank 0 to tell all
    std::atomic<int> short_ms{0};
    std::atomic<std::int64_t> struck_ns{0};
    plan now{};
    slot slots[most_slots];

    void strike() {
        std::int64_t none = 0;
        struck_ns.compare_exchange_strong(none, monotonic_ns());
    }
};

struct wrong_result : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- a rank -----------------------------------------------------------------------------------------------------

/// A call with a deadline, which the stage sees.
class under_way {
  public:
    under_way(slot& mine, call which, milliseconds timeout) : mine_(mine) {
        mine_.in.store(static_cast<int>(which));
        until_ = monotonic_ns() + std::chrono::nanoseconds(timeout).count();
        mine_.until_ns.store(until_);
    }
    under_way(under_way const&) = delete;
    ~under_way() {
        mine_.made[static_cast<std::size_t>(mine_.in.load())].fetch_add(1);
        mine_.until_ns.store(0);
        if (std::int64_t const by = monotonic_ns() - until_; by > mine_.latest_ns.load())
            mine_.latest_ns.store(by);
    }

  private:
    slot& mine_;
    std::int64_t until_ = 0;
};

struct sums {
    template <class T> static T value(std::uint64_t salt, int rank, std::size_t i) {
        constexpr std::uint64_t base = sizeof(T) == 4 ? 8 : 64; // five ranks: exact, 15 bits of a float
        std::uint64_t const h = (i + 1) * 2'654'435'761u + salt * 40'503u;
        std::uint64_t const digit = 1 + ((h >> 7) + static_cast<std::uint64_t>(rank) * (h & 15)) % (base - 1);
        std::uint64_t place = 1;
        for (int r = 0; r < rank; ++r) place *= base;
        return static_cast<T>(digit * place);
    }
    template <class T> static T result(std::uint64_t salt, int size, std::size_t i) {
        T sum = 0;
        for (int r = 0; r < size; ++r) sum += value<T>(salt, r, i);
        return sum;
    }
};
struct greatest {
    template <class T> static T value(std::uint64_t salt, int rank, std::size_t i) {
        std::uint64_t const h = ((i + 1) * 0x9e3779b97f4a7c15u) ^
                                ((salt + static_cast<std::uint64_t>(rank)) * 0xbf58476d1ce4e5b9u);
        return static_cast<T>(h >> 41); // 23 bits: exact in a float
    }
    template <class T> static T result(std::uint64_t salt, int size, std::size_t i) {
        T most = value<T>(salt, 0, i);
        for (int r = 1; r < size; ++r) most = std::max(most, value<T>(salt, r, i));
        return most;
    }
};

/// One life of a rank with one kind of reducer.
template <class T, class Oracle, class Reducer> class worker {
  public:
    worker(world& w, board& b, slot& mine, int number) : w_(w), b_(b), mine_(mine), number_(number) {}

    void run() {
        std::optional<under_way> constructing(std::in_place, mine_, call::construct, limit);
        auto const reduce = std::make_unique<Reducer>(w_, herring::layout{{"tiny", 3},
                                                                          {"empty", 0},
                                                                          {"small", 3'000 / large},
                                                                          {"large", 120'001 / large},
                                                                          {"lent", 700},
                                                                          {"last", 33'333 / large}});
        constructing.reset();
        mine_random_.seed(b_.now.seed * 31 + static_cast<std::uint64_t>(number_));
        for (;;) {
            std::array<T, 3> command{};
            if (w_.rank() == 0) {
                command[0] = static_cast<T>(b_.ask.load());
                command[1] = static_cast<T>(random_of_rank_0() % 1'000'003);
                command[2] = static_cast<T>(random_of_rank_0() % 1'000'003);
            }
            {
                under_way const now(mine_, call::command, limit);
                herring::broadcast(*reduce, std::span<T>(command), 0);
            }
            if (int const asked = static_cast<int>(command[0]); asked != 0) {
                if (finish(*reduce, static_cast<ending>(asked - 1))) return;
            }
            round(*reduce, static_cast<std::uint64_t>(command[1]), static_cast<std::uint64_t>(command[2]));
            sleep_for(static_cast<std::int64_t>(b_.pause_us.load()) * 1'000);
        }
    }

  private:
    std::uint64_t random_of_rank_0() {
        if (!drawn_) drawn_.emplace(b_.now.seed);
        return (*drawn_)();
    }
    T mine(std::uint64_t salt, std::size_t i) const { return Oracle::template value<T>(salt, w_.rank(), i); }
    T expected(std::uint64_t salt, std::size_t i) const {
        return Oracle::template result<T>(salt, w_.size(), i);
    }
    void fill(std::span<T> x, std::uint64_t salt, std::size_t from = 0) const {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = mine(salt, from + i);
    }
    template <class Expected> void check(std::span<T const> x, char const* what, Expected&& value) {
        for (std::size_t i = 0; i < x.size(); ++i)
            if (T const want = value(i); x[i] != want)
                throw wrong_result(std::string(what) + " of " + std::to_string(x.size()) + ": element " +
                                   std::to_string(i) + " is " + std::to_string(x[i]) + ", not " +
                                   std::to_string(want));
        mine_.elements.fetch_add(x.size());
    }

    void round(Reducer& reduce, std::uint64_t kind, std::uint64_t salt) {
        static constexpr std::size_t sizes[] = {0, 1, 3, 100, 1'000, 1'025, 5'000, 20'011, 60'000, 250'007};
        std::size_t const n = sizes[kind / 16 % std::size(sizes)] / large;
        if (kind % 97 == 0 && static_cast<int>(salt % static_cast<std::uint64_t>(w_.size())) == w_.rank())
            sleep_for(ns(0.1)); // a straggler
        auto const result = [&](std::size_t i) { return expected(salt, i); };
        int const root = static_cast<int>(salt % static_cast<std::uint64_t>(w_.size()));
        switch (kind % 16) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
            return step(reduce, salt);
        case 5:
        case 6:
        case 7: {
            under_way const now(mine_, call::all_reduce, limit);
            all_.resize(n);
            fill(all_, salt);
            reduce.all_reduce(std::span<T>(all_));
            return check(all_, "all_reduce", result);
        }
        case 8: {
            under_way const now(mine_, call::all_reduce, limit);
            all_.resize(n), out_.assign(n, T(7));
            fill(all_, salt);
            reduce.all_reduce(std::span<T const>(all_), std::span<T>(out_));
            return check(out_, "all_reduce to another buffer", result);
        }
        case 9: {
            under_way const now(mine_, call::all_reduce, limit);
            T const one = reduce.all_reduce(mine(salt, 0));
            return check(std::span<T const>(&one, 1), "all_reduce of a value", result);
        }
        case 10:
        case 11: {
            under_way const now(mine_, call::reduce_scatter, limit);
            herring::range const own = reduce.owned(n, w_.rank());
            all_.resize(n), out_.assign(own.elements, T(7));
            fill(all_, salt);
            herring::reduce_scatter(reduce, std::span<T const>(all_), std::span<T>(out_));
            return check(out_, "reduce_scatter",
                         [&](std::size_t i) { return expected(salt, own.offset + i); });
        }
        case 12:
        case 13: {
            under_way const now(mine_, call::all_gather, limit);
            herring::range const own = reduce.owned(n, w_.rank());
            all_.resize(own.elements), out_.assign(n, T(7));
            fill(all_, salt, own.offset);
            herring::all_gather(reduce, std::span<T const>(all_), std::span<T>(out_));
            for (int r = 0; r < w_.size(); ++r) {
                herring::range const theirs = reduce.owned(n, r);
                check(std::span<T const>(out_).subspan(theirs.offset, theirs.elements), "all_gather",
                      [&](std::size_t i) { return Oracle::template value<T>(salt, r, theirs.offset + i); });
            }
            return;
        }
        case 14: {
            under_way const now(mine_, call::broadcast, limit);
            all_.resize(n);
            fill(all_, salt);
            herring::broadcast(reduce, std::span<T>(all_), root);
            return check(all_, "broadcast",
                         [&](std::size_t i) { return Oracle::template value<T>(salt, root, i); });
        }
        default: {
            under_way const now(mine_, call::bytes, limit);
            if (salt % 2 == 0) return w_.barrier();
            std::string const text = "rank " + std::to_string(w_.rank()) + " says " + std::to_string(salt);
            herring::gather_result const said = w_.all_gather(std::as_bytes(std::span(text)));
            for (int r = 0; r < w_.size(); ++r) {
                std::string const want = "rank " + std::to_string(r) + " says " + std::to_string(salt);
                auto const got = said[static_cast<std::size_t>(r)];
                if (got.size() != want.size() || std::memcmp(got.data(), want.data(), want.size()) != 0)
                    throw wrong_result("bytes of rank " + std::to_string(r));
            }
        }
        }
    }

    /// Tensors in an order of this rank's own; one is memory of the caller's.
    void step(Reducer& reduce, std::uint64_t salt, bool half = false) {
        under_way const now(mine_, call::step, limit);
        std::vector<std::size_t>& order = order_;
        order.resize(reduce.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), mine_random_);
        if (half) order.resize(order.size() / 2);
        lent_.resize(700);
        for (std::size_t const i : order) {
            std::span<T> const x = i == 4 ? std::span<T>(lent_) : reduce.tensor(i);
            fill(x, salt + i);
            if (i == 4)
                reduce.ready(i, x);
            else
                reduce.ready(i);
        }
        if (half) return;
        reduce.wait();
        for (std::size_t i = 0; i < reduce.size(); ++i)
            check(i == 4 ? std::span<T>(lent_) : reduce.tensor(i), "a step's tensor",
                  [&](std::size_t k) { return expected(salt + i, k); });
    }

    /// How this life ends, as rank 0 told all ranks in the same round. True: this rank leaves.
    bool finish(Reducer& reduce, ending how) {
        bool const me = b_.now.victim == number_;
        std::vector<T> x(1'000);
        milliseconds const short_of_time(b_.short_ms.load());
        switch (how) {
        case ending::clean:
            return true;
        case ending::late:
            if (me) {
                b_.strike();
                sleep_for(ns(2.1) + std::chrono::nanoseconds(short_of_time).count());
            }
            {
                under_way const now(mine_, call::all_reduce, short_of_time);
                reduce.all_reduce(std::span<T>(x), short_of_time).value();
            }
            if (me) return false; // all others' parts were there: it finds out where it next has to wait
            throw std::runtime_error("a call succeeds without one of the ranks");
        case ending::leave:
            if (me) b_.strike();
            step(reduce, 1, me);
            if (me) return true; // its reducer is destroyed in the middle
            throw std::runtime_error("a step succeeds although a rank left in its middle");
        case ending::quit:
            if (!me) return false;
            b_.strike();
            ::_exit(3);
        case ending::misuse:
            if (me) {
                b_.strike();
                x.resize(1'001);
            }
            {
                under_way const now(mine_, call::all_reduce, limit);
                reduce.all_reduce(std::span<T>(x));
            }
            throw std::runtime_error("a call succeeds although a rank gave another size");
        default:
            return false; // the stage does it
        }
    }

    world& w_;
    board& b_;
    slot& mine_;
    int number_;
    std::vector<T> all_{}, out_{}, lent_{};
    std::vector<std::size_t> order_{};
    std::mt19937_64 mine_random_{};
    std::optional<std::mt19937_64> drawn_{};
};

using herring::transport::tcp;
using disturbed_tcp = herring::transport::chaos<tcp>;
namespace update = herring::update;
template <herring::transport::chaos_tuning Tuning>
using checked_tcp = herring::transport::checked<herring::transport::chaos<tcp, Tuning>>;
inline constexpr herring::transport::chaos_tuning repeated{.duplicate_per_1000 = 50},
    flipped{.flip_per_1000 = 2};

inline constexpr char const* names_of_flavours[] = {
    "chaos<tcp>, int64, sum",
    "chaos<tcp> + shared_memory, float, sum",
    "chaos<tcp> + shared_memory + progress::thread, int64, sum",
    "tcp, per_tensor, float, max",
    "checked<chaos<tcp>> with repeated messages, float, sum",
    "checked<chaos<tcp>> with turned bits, int64, sum",
};
inline constexpr int flavour_of_flips = 5;
inline constexpr int flavours = static_cast<int>(std::size(names_of_flavours));
constexpr bool shares_memory(int flavour) { return flavour == 1 || flavour == 2; }

inline void work(world& w, board& b, slot& mine, int number) {
    switch (b.now.flavour) {
    case 0:
        return worker<std::int64_t, sums, herring::reducer<std::int64_t, disturbed_tcp, update::sum>>(
                   w, b, mine, number)
            .run();
    case 1:
        return worker<
                   float, sums,
                   herring::reducer<float, disturbed_tcp, update::sum, herring::intra_node::shared_memory>>(
                   w, b, mine, number)
            .run();
    case 2:
        return worker<std::int64_t, sums,
                      herring::reducer<std::int64_t, disturbed_tcp, update::sum,
                                       herring::intra_node::shared_memory, herring::progress::thread>>(
                   w, b, mine, number)
            .run();
    case 3:
        return worker<float, greatest,
                      herring::reducer<float, tcp, update::max, herring::fusion::per_tensor>>(w, b, mine,
                                                                                              number)
            .run();
    case 4:
        return worker<float, sums, herring::reducer<float, checked_tcp<repeated>, update::sum>>(w, b, mine,
                                                                                                number)
            .run();
    case flavour_of_flips:
        return worker<std::int64_t, sums, herring::reducer<std::int64_t, checked_tcp<flipped>, update::sum>>(
                   w, b, mine, number)
            .run();
    default:
        throw std::logic_error("a flavour");
    }
}

/// One life after another, until the stage says that all is over, or this process is killed.
inline void play(board& b, int number, std::string const& secret, int first) {
    slot& mine = b.slots[number];
    for (int life = first;; ++life) {
        while (b.life.load() < life) {
            if (b.over.load()) return;
            sleep_for(ns(0.002));
        }
        int const rank = b.now.rank[number];
        mine.how = outcome::none;
        mine.note[0] = 0;
        if (rank >= 0) {
            try {
                std::optional<under_way> joining(std::in_place, mine, call::join, join_limit);
                herring::join_options how;
                how.rank = rank;
                how.size = b.now.size;
                how.address = b.now.address;
                how.node = b.now.node[number];
                how.secret = secret;
                how.timeout = join_limit;
                how.default_timeout = limit;
                how.failure_detector.peer_timeout = milliseconds(5'000);
                std::optional<world> w(herring::join(how));
                joining.reset();
                mine.joined.store(life);
                try {
                    work(*w, b, mine, number);
                    mine.how = outcome::done;
                } catch (herring::error const& why) {
                    mine.why = why.why();
                    mine.how = outcome::error;
                }
                mine.at_ns = monotonic_ns();
                under_way const leaving(mine, call::leave, milliseconds(10'000));
                w.reset();
            } catch (herring::error const& why) {
                std::snprintf(mine.note, sizeof mine.note, "join: %s", why.what());
                mine.how = outcome::other;
            } catch (wrong_result const& why) {
                std::snprintf(mine.note, sizeof mine.note, "WRONG: %s", why.what());
                mine.how = outcome::wrong;
            } catch (std::exception const& why) {
                std::snprintf(mine.note, sizeof mine.note, "%s", why.what());
                mine.how = outcome::other;
            }
        }
        struct mallinfo2 const heap = ::mallinfo2();
        mine.heap_bytes.store(static_cast<long>(heap.uordblks + heap.hblkhd));
        mine.ended.store(life);
    }
}

// ---- the stage --------------------------------------------------------------------------------------------------

struct memory_use {
    long anonymous_kib = 0, all_kib = 0, descriptors = 0, mappings = 0;
    long heap_kib = 0; ///< allocated, and not freed, between two worlds; 0: it lived in one
};
inline memory_use memory_of(int pid) {
    memory_use m;
    std::string const directory = "/proc/" + std::to_string(pid);
    std::ifstream in(directory + "/status");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("RssAnon:", 0) == 0) m.anonymous_kib = std::atol(line.c_str() + 8);
        if (line.rfind("VmRSS:", 0) == 0) m.all_kib = std::atol(line.c_str() + 6);
    }
    std::ifstream maps(directory + "/maps");
    for (std::string line; std::getline(maps, line);) ++m.mappings;
    if (DIR* const d = ::opendir((directory + "/fd").c_str())) {
        while (dirent const* e = ::readdir(d)) m.descriptors += e->d_name[0] != '.' ? 1 : 0;
        ::closedir(d);
    }
    return m;
}
inline double cpu_seconds(int pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    std::size_t const at = text.rfind(')');
    if (at == std::string::npos) return 0;
    std::istringstream fields(text.substr(at + 1));
    std::string skipped;
    double user = 0, system = 0;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// What was seen.
struct tally {
    std::uint64_t lives[endings] = {}, disturbed[nuisances] = {}, made[calls] = {}, elements = 0, junk = 0;
    std::uint64_t wrong_sums = 0, hangs = 0, wrong_blame = 0, false_deaths = 0, late_errors = 0, untold = 0,
                  failed_joins = 0, crashes = 0, other = 0;
    std::uint64_t two_at_once = 0; // errors that name a rank which was stopped when another one was struck
    std::uint64_t of_flavour[flavours] = {};
    std::uint64_t before_death[nuisances] = {}; // of false deaths: what was on in the 8 s before
    std::vector<double> after_ms[endings];      // from the fault to the last survivor's error
    std::int64_t latest_ns = 0;
    struct sample {
        int quarter;
        char const* when;
        std::vector<std::pair<std::string, memory_use>> of;
    };
    std::vector<sample> samples;
    bool grows = false;

    std::uint64_t bad() const {
        return wrong_sums + hangs + wrong_blame + false_deaths + late_errors + untold + failed_joins +
               crashes + other + (grows ? 1u : 0u);
    }
};

/// One world after another on the same processes, and on the same port.
class troupe {
  public:
    troupe(char const* name, board& b, std::vector<int> host_of_slot, int port, hosts const* net,
           std::string secret)
        : name_(name), b_(b), host_(std::move(host_of_slot)), port_(port), net_(net),
          secret_(std::move(secret)), stopped_(host_.size(), 0) {}

    int size() const { return static_cast<int>(host_.size()); }
    int pid(int s) const { return b_.slots[s].pid.load(); }
    int host(int s) const { return host_[static_cast<std::size_t>(s)]; }
    board& at() { return b_; }
    bool alive() const { return alive_; }
    int number() const { return b_.life.load(); }
    plan const& now() const { return b_.now; }
    std::string address(int s) const { return net_ != nullptr ? hosts::address(host(s)) : "127.0.0.1"; }
    int takes_part(std::mt19937_64& random) const {
        for (;;)
            if (int const s = static_cast<int>(random() % host_.size()); b_.now.rank[s] >= 0) return s;
    }

    void begin(plan next, ending end) {
        next.number = b_.life.load() + 1;
        int of_rank_0 = 0;
        for (int s = 0; s < size(); ++s)
            if (next.rank[s] == 0) of_rank_0 = s;
        std::snprintf(next.address, sizeof next.address, "%s:%d", address(of_rank_0).c_str(), port_);
        for (int s = 0; s < size(); ++s)
            std::snprintf(next.node[s], sizeof next.node[s],
                          shares_memory(next.flavour) ? "host%d" : "alone%d",
                          shares_memory(next.flavour) ? host(s) : s);
        b_.now = next;
        b_.ask.store(0);
        b_.struck_ns.store(end == ending::flip ? monotonic_ns() : 0); // from the first message on
        end_ = end;
        done_by_stage_ = false;
        std::fill(hung_, hung_ + most_slots, false);
        for (int s = 0; s < size(); ++s)
            if (pid(s) == 0) start(s, next.number);
        begun_ns_ = monotonic_ns();
        all_joined_ns_ = 0;
        alive_ = true;
        b_.life.store(next.number);
    }
    std::int64_t joined_since() const { return all_joined_ns_; }
    bool struck() const { return b_.struck_ns.load() != 0 || done_by_stage_; }
    ending end() const { return end_; }
    void strikes_itself() { done_by_stage_ = true; }

    /// What has changed since the last time. True: the life is over.
    bool look(tally& t) {
        for (int s = 0; s < size(); ++s) reap(s, t);
        if (!alive_) return false;
        int joined = 0, ended = 0;
        for (int s = 0; s < size(); ++s) {
            slot& one = b_.slots[s];
            bool const gone = pid(s) == 0, through = gone || one.ended.load() >= number();
            joined += b_.now.rank[s] < 0 || one.joined.load() >= number() ? 1 : 0;
            ended += through ? 1 : 0;
            std::int64_t const until = one.until_ns.load();
            if (!through && until != 0 &&
                monotonic_ns() > until + std::chrono::nanoseconds(slack).count() + stopped_[at(s)] &&
                !hung_[s]) {
                hung_[s] = true;
                ++t.hangs;
                say("HANG: slot " + std::to_string(s) + " in " + names_of_calls[one.in.load()]);
                ::kill(pid(s), SIGKILL); // the others find out
            }
        }
        if (all_joined_ns_ == 0 && joined == size()) all_joined_ns_ = monotonic_ns();
        if (ended < size()) return false;
        alive_ = false;
        judge(t);
        return true;
    }

    /// Where each rank of the life that is not over is: for whoever reads why.
    void say_where() const {
        say("to end by «" + std::string(names_of_endings[static_cast<int>(end_)]) + "», begun " +
            std::to_string((monotonic_ns() - begun_ns_) / 1'000'000'000) + " s ago, " +
            (struck() ? "struck" : "not struck") + ", asked for " + std::to_string(b_.ask.load()));
        for (int s = 0; s < size(); ++s) {
            slot const& one = b_.slots[s];
            std::int64_t const until = one.until_ns.load();
            say("  slot " + std::to_string(s) + ", rank " + std::to_string(b_.now.rank[s]) + ": " +
                (pid(s) == 0 ? std::string("no process")
                 : until == 0
                     ? "in no call"
                     : std::string("in ") + names_of_calls[one.in.load()] + ", whose deadline is in " +
                           std::to_string((until - monotonic_ns()) / 1'000'000) + " ms") +
                ", joined life " + std::to_string(one.joined.load()) + ", ended " +
                std::to_string(one.ended.load()));
        }
    }

    void stop(int s) {
        ::kill(pid(s), SIGSTOP);
        stop_ = {s, monotonic_ns(), std::numeric_limits<std::int64_t>::max()};
    }
    void go_on(int s, std::int64_t after_ns) {
        if (pid(s) != 0) ::kill(pid(s), SIGCONT);
        if (stop_.slot == s) stop_.until = monotonic_ns();
        stopped_[at(s)] = after_ns + ns(1); // its calls may end later by that
    }
    void end_all(tally& t) {
        b_.over.store(true);
        for (int s = 0; s < size(); ++s)
            if (pid(s) != 0) ::kill(pid(s), SIGCONT);
        for (int i = 0; i < 1'000; ++i) {
            int left = 0;
            for (int s = 0; s < size(); ++s) {
                reap(s, t);
                left += pid(s) != 0 ? 1 : 0;
            }
            if (left == 0) break;
            sleep_for(ns(0.01));
        }
        for (int s = 0; s < size(); ++s) {
            if (pid(s) != 0) ::kill(pid(s), SIGKILL);
            for (int i = 0; i < calls; ++i) t.made[i] += b_.slots[s].made[i].load();
            t.elements += b_.slots[s].elements.load();
            t.latest_ns = std::max(t.latest_ns, b_.slots[s].latest_ns.load());
        }
    }
    double cpu() const {
        double sum = 0;
        for (int s = 0; s < size(); ++s)
            if (pid(s) != 0) sum += cpu_seconds(pid(s));
        return sum;
    }
    void sample(tally::sample& into) const {
        for (int s = 0; s < size(); ++s)
            if (pid(s) != 0) {
                memory_use now = memory_of(pid(s));
                if (!alive_) now.heap_kib = b_.slots[s].heap_bytes.load() / 1024;
                into.of.emplace_back(
                    std::string(name_) + " " + std::to_string(s) + " (" + std::to_string(pid(s)) + ")", now);
            }
    }
    void say(std::string const& what) const {
        plan const& p = b_.now;
        std::printf("[soak] %s, life %d (%d ranks, %s): %s\n", name_, number(), p.size,
                    names_of_flavours[p.flavour], what.c_str());
        std::fflush(stdout);
    }

  private:
    static std::size_t at(int s) { return static_cast<std::size_t>(s); }

    void start(int s, int life) {
        std::fflush(nullptr);
        pid_t const made = ::fork();
        if (made == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int const number : {SIGTERM, SIGINT, SIGABRT, SIGSEGV}) ::signal(number, SIG_DFL);
            if (net_ != nullptr && !net_->enter(host(s))) ::_exit(9);
            play(b_, s, secret_, life);
            std::fflush(nullptr);
            ::_exit(0);
        }
        stopped_[at(s)] = 0;
        b_.slots[s].until_ns.store(0);
        b_.slots[s].pid.store(made);
    }

    void reap(int s, tally& t) {
        int raw = 0;
        int const was = pid(s);
        if (was == 0 || ::waitpid(was, &raw, WNOHANG) != was) return;
        b_.slots[s].pid.store(0);
        b_.slots[s].until_ns.store(0);
        // Who is gone is not stopped.
        if (stop_.slot == s) stop_.until = std::min(stop_.until, monotonic_ns());
        bool const asked =
            alive_ && s == b_.now.victim && struck() && (end_ == ending::kill || end_ == ending::quit);
        if (asked || hung_[s] || b_.over.load()) return;
        ++t.crashes;
        say("slot " + std::to_string(s) + " ended by itself, with status " + std::to_string(raw));
    }

    /// Whether the rank that is named was stopped meanwhile, for so long that nobody waits for its reply: two faults at once, and
    /// either may be named.
    bool stopped_meanwhile(slot const& of) const {
        if (stop_.slot < 0 || b_.now.rank[stop_.slot] != of.why.peer) return false;
        return std::min(stop_.until, of.at_ns) - std::max(stop_.from, b_.struck_ns.load()) >= ns(0.9);
    }
    /// What was on, as words behind a line.
    std::string lately() const {
        std::string text;
        for (int i = 0; i < nuisances; ++i)
            if (monotonic_ns() < last_on_[i] + ns(8))
                text += std::string(text.empty() ? "; in the 8 s before: " : ", ") + words_of_nuisances[i];
        return text;
    }

    bool right(herring::failure const& why) const {
        int const victim = b_.now.rank[b_.now.victim];
        switch (end_) {
        case ending::kill:
        case ending::silence:
            return why.what == errc::peer_lost && why.peer == victim;
        case ending::quit:
            return (why.what == errc::peer_lost || why.what == errc::peer_failed) && why.peer == victim;
        case ending::late:
            return why.what == errc::timeout && why.peer == victim;
        case ending::leave:
            return why.what == errc::peer_failed && why.peer == victim;
        case ending::misuse:
            return why.what == errc::mismatch;
        case ending::reset: // either end of a connection may be named
            return why.what == errc::peer_lost && (why.peer == victim || why.peer == other_);
        case ending::flip: // whoever sent, or got, the message
            return why.what == errc::corrupted && why.peer >= 0 && why.peer < b_.now.size;
        case ending::clean:
            break;
        }
        return false;
    }

    void judge(tally& t) {
        ++t.lives[static_cast<std::size_t>(end_)];
        ++t.of_flavour[b_.now.flavour];
        std::int64_t const struck = b_.struck_ns.load();
        double last = -1;
        bool false_death = false;
        std::string all;
        for (int s = 0; s < size(); ++s) {
            if (b_.now.rank[s] < 0) continue;
            slot const& one = b_.slots[s];
            bool const victim = s == b_.now.victim && end_ != ending::clean && end_ != ending::reset &&
                                end_ != ending::misuse && end_ != ending::flip;
            bool const through = one.ended.load() >= number();
            if (!through) continue; // killed
            all += "\n    rank " + std::to_string(b_.now.rank[s]) + ": " +
                   (one.how == outcome::error  ? one.why.message()
                    : one.how == outcome::done ? "done"
                                               : one.note);
            switch (one.how) {
            case outcome::wrong:
                ++t.wrong_sums;
                say("slot " + std::to_string(s) + ": " + one.note);
                break;
            case outcome::other:
            case outcome::none:
                if (one.joined.load() < number())
                    ++t.failed_joins;
                else
                    ++t.other;
                say("slot " + std::to_string(s) + ": " + one.note);
                break;
            case outcome::error:
                if (struck == 0 || one.at_ns < struck) {
                    false_death = true;
                    break;
                }
                if (victim) break; // it may blame whom it likes
                if (!right(one.why) && stopped_meanwhile(one)) {
                    ++t.two_at_once;
                } else if (!right(one.why)) {
                    ++t.wrong_blame;
                    say("slot " + std::to_string(s) + " blames wrongly after «" +
                        names_of_endings[static_cast<int>(end_)] + "», rank " +
                        std::to_string(b_.now.rank[b_.now.victim]) + ": " + one.why.message() + lately());
                }
                last = std::max(last, static_cast<double>(one.at_ns - struck) * 1e-6);
                break;
            case outcome::done:
                if (end_ == ending::clean || victim) break;
                if (end_ == ending::reset || end_ == ending::flip)
                    break; // nobody used the connection; nothing turned
                ++t.untold;
                say("slot " + std::to_string(s) + " was not told of «" +
                    names_of_endings[static_cast<int>(end_)] + "»");
                break;
            }
        }
        if (false_death) {
            ++t.false_deaths;
            for (int i = 0; i < nuisances; ++i)
                if (monotonic_ns() < last_on_[i] + ns(8)) ++t.before_death[i];
            say("ended although nothing was done that ends it" + lately() + all);
        }
        if (last >= 0 && end_ != ending::flip) { // whose moment nobody knows
            t.after_ms[static_cast<std::size_t>(end_)].push_back(last);
            double const deadline = end_ == ending::late ? b_.short_ms.load() : 0;
            if (last > deadline + (end_ == ending::silence ? 11'000 : 8'000)) {
                ++t.late_errors;
                say("the last error came after " + std::to_string(last) + " ms:" + all);
            }
        }
    }

  public:
    void other_end(int rank) { other_ = rank; }
    void disturbed(nuisance what, std::int64_t at_ns) { last_on_[static_cast<int>(what)] = at_ns; }

  private:
    char const* name_;
    board& b_;
    std::vector<int> host_;
    int port_;
    hosts const* net_;
    std::string secret_;
    std::vector<std::int64_t> stopped_;
    bool hung_[most_slots] = {};
    bool alive_ = false, done_by_stage_ = false;
    ending end_ = ending::clean;
    int other_ = -1;
    std::int64_t begun_ns_ = 0, all_joined_ns_ = 0;
    std::int64_t last_on_[nuisances] = {};
    struct {
        int slot = -1;
        std::int64_t from = 0, until = 0;
    } stop_; // the last one
};

/// A child that does something, and goes.
template <class Function> pid_t aside(Function what) {
    std::fflush(nullptr);
    pid_t const made = ::fork();
    if (made == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        what();
        ::_exit(0);
    }
    return made;
}

/// Connections of strangers, of several kinds.
inline void throw_junk(std::vector<std::pair<std::string, int>> const& ends, std::uint64_t seed, int each,
                       std::atomic<std::uint64_t>& count) {
    std::mt19937_64 random(seed);
    std::vector<int> held;
    for (int i = 0; i < each; ++i)
        for (auto const& [address, port] : ends) {
            int const s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            timeval const quarter{0, 250'000};
            ::setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &quarter, sizeof quarter);
            sockaddr_in to{};
            to.sin_family = AF_INET;
            to.sin_port = htons(static_cast<std::uint16_t>(port));
            ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
            if (::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
                ::close(s);
                continue;
            }
            count.fetch_add(1);
            std::vector<char> bytes(1 + random() % 3'000);
            for (char& c : bytes) c = static_cast<char>(random());
            char const* const words[] = {"GET / HTTP/1.0\r\n\r\n", "HERR",
                                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"};
            linger const at_once{1, 0};
            switch (random() % 7) {
            case 0: // nothing
                break;
            case 1:
                (void)::send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
                break;
            case 2:
                (void)::send(s, words[0], std::strlen(words[0]), MSG_NOSIGNAL);
                break;
            case 3:
                (void)::send(s, words[1], 4, MSG_NOSIGNAL);
                held.push_back(s);
                continue;
            case 4:
                (void)::send(s, words[2], 32, MSG_NOSIGNAL);
                break;
            case 5:
                ::setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
                break;
            default:
                (void)::send(s, bytes.data(), 1, MSG_NOSIGNAL);
                held.push_back(s);
                continue;
            }
            ::close(s);
        }
    sleep_for(ns(1));
}

inline std::string text_of(std::vector<double> const& values, double p) {
    char text[32] = "-";
    if (!values.empty()) std::snprintf(text, sizeof text, "%.0f", percentile(values, p));
    return text;
}

inline void print(tally const& t, options const& o, double seconds, double cores, bool network) {
    std::printf("\n[soak] %.0f s, seed %llu, %s; %.2f cores on average\n", seconds,
                static_cast<unsigned long long>(o.seed),
                network ? (std::to_string(o.hosts) + " hosts (network namespaces), " +
                           std::to_string(o.loss).substr(0, 4) + " % of packets lost")
                              .c_str()
                        : "one host, without faults of the network",
                cores);
    std::printf("\n  calls that ended, of all ranks\n");
    std::uint64_t all = 0;
    for (int i = 0; i < calls; ++i) {
        std::printf("    %-22s %10llu\n", names_of_calls[i], static_cast<unsigned long long>(t.made[i]));
        all += t.made[i];
    }
    std::printf("    %-22s %10llu\n    %-22s %10llu\n", "together", static_cast<unsigned long long>(all),
                "elements compared", static_cast<unsigned long long>(t.elements));
    std::printf(
        "\n  how worlds ended                      worlds   ms to the last error: p50     p99  most\n");
    std::uint64_t worlds = 0;
    for (int i = 0; i < endings; ++i) {
        std::printf("    %-34s %8llu   %26s %7s %5s\n", names_of_endings[i],
                    static_cast<unsigned long long>(t.lives[i]), text_of(t.after_ms[i], 0.5).c_str(),
                    text_of(t.after_ms[i], 0.99).c_str(), text_of(t.after_ms[i], 1).c_str());
        worlds += t.lives[i];
    }
    std::printf("    %-34s %8llu\n", "together", static_cast<unsigned long long>(worlds));
    for (int i = 0; i < flavours; ++i)
        std::printf("      %s: %llu\n", names_of_flavours[i],
                    static_cast<unsigned long long>(t.of_flavour[i]));
    std::printf("\n  what disturbed them\n");
    for (int i = 0; i < nuisances; ++i)
        std::printf("    %-48s %8llu\n", names_of_nuisances[i],
                    static_cast<unsigned long long>(t.disturbed[i]));
    std::printf("    %-48s %8llu\n", "connections of strangers", static_cast<unsigned long long>(t.junk));
    std::printf("    %-48s %8llu\n", "errors that name a rank which was stopped then",
                static_cast<unsigned long long>(t.two_at_once));
    std::printf("\n  memory (KiB anonymous / resident / allocated between worlds), mappings, descriptors\n");
    for (tally::sample const& s : t.samples) {
        std::printf("    quarter %d, %s\n", s.quarter, s.when);
        for (auto const& [who, m] : s.of)
            std::printf("      %-22s %8ld %8ld %6ld %5ld %5ld\n", who.c_str(), m.anonymous_kib, m.all_kib,
                        m.heap_kib, m.mappings, m.descriptors);
    }
    std::printf("\n  wanted: 0 of each\n");
    auto const line = [](char const* what, std::uint64_t n) {
        std::printf("    %-48s %8llu\n", what, static_cast<unsigned long long>(n));
    };
    line("wrong results", t.wrong_sums);
    line("calls that did not end (deadline + 6 s)", t.hangs);
    line("errors that blame the wrong rank", t.wrong_blame);
    line("worlds that ended without a reason", t.false_deaths);
    for (int i = 0; i < nuisances; ++i)
        if (t.before_death[i] != 0)
            line((std::string("  of them, in the 8 s before: ") + words_of_nuisances[i]).c_str(),
                 t.before_death[i]);
    line("errors that came late", t.late_errors);
    line("survivors that were not told", t.untold);
    line("joins that failed", t.failed_joins);
    line("processes that crashed", t.crashes);
    line("other", t.other);
    line("growth of memory or descriptors", t.grows ? 1 : 0);
    std::printf("    the call that ended latest after its deadline: %.0f ms\n",
                t.latest_ns > 0 ? static_cast<double>(t.latest_ns) * 1e-6 : 0.0);
    std::printf("[soak] %s\n", t.bad() == 0 ? "passed" : "FAILED");
    std::fflush(stdout);
}

/// Processes that live from the first sample to the last have the same descriptors, and no more memory than noise.
///
/// Between two worlds nothing of the last one is left, so what counts is what is allocated and not freed: what malloc keeps for the
/// next world (the buffers of 2 MB that ranks here compare) is megabytes, and follows the kind of the worlds that have been.
// Noise: of blocks that are freed, some wait in the thread's cache, which counts them as allocated; a thread's arena has two mappings.
inline bool has_grown(tally const& t) {
    if (t.samples.size() < 2) return false;
    bool grown = false;
    auto const find = [](tally::sample const& s, std::string const& who) -> memory_use const* {
        for (auto const& [name, m] : s.of)
            if (name == who) return &m;
        return nullptr;
    };
    // From the end of the first quarter on: by then every kind of world has been there.
    tally::sample const& first = t.samples[std::min<std::size_t>(t.samples.size() - 2, 1)];
    for (auto const& [who, was] : first.of)
        if (memory_use const* const is = find(t.samples.back(), who)) {
            bool const between = was.heap_kib != 0 && is->heap_kib != 0;
            bool const more =
                (between ? is->heap_kib > was.heap_kib + 64
                         : is->anonymous_kib > was.anonymous_kib + std::max(2'048L, was.anonymous_kib / 5)) ||
                is->mappings > was.mappings + 32 || is->descriptors != was.descriptors;
            if (more)
                std::printf(
                    "[soak] grown: %s: %ld to %ld KiB anonymous, %ld to %ld allocated between worlds, "
                    "%ld to %ld mappings, %ld to %ld descriptors\n",
                    who.c_str(), was.anonymous_kib, is->anonymous_kib, was.heap_kib, is->heap_kib,
                    was.mappings, is->mappings, was.descriptors, is->descriptors);
            grown = grown || more;
        }
    return grown;
}

/// All of it. Returns 0 if nothing was found. Call it in a process that has no threads, and no other use for its network.
inline int run(options const& o) {
    std::optional<hosts> net;
    if (o.network) {
        net.emplace(o.hosts);
        if (!net->made() || (o.loss > 0 && !net->lose_between(static_cast<int>(o.loss * 10)))) {
            std::printf("SKIPPED: fault: soak: faults of the network: %s\n", hosts::needs);
            net.reset();
        }
    }
    hosts const* const at = net ? &*net : nullptr;
    std::mt19937_64 random(o.seed);
    auto const draw = [&](double least, double most) {
        return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
    };
    std::string secret;
    for (int i = 0; i < 64; ++i) secret += "0123456789abcdef"[random() % 16];

    // The last ranks of the eventful troupe are those that are killed; the others live all the time.
    int const port = free_port(), steady_port = free_port();
    auto* const strangers = in_shared_memory<std::atomic<std::uint64_t>>();
    bool const on_four = o.hosts == 4;
    large = o.loss >= 5 ? 50 : 1;
    limit = milliseconds(static_cast<std::int64_t>(o.deadline * 1000));
    troupe eventful("eventful", *in_shared_memory<board>(),
                    on_four ? std::vector<int>{0, 1, 2, 3, 3} : std::vector<int>{0, 0, 1, 1, 2}, port, at,
                    secret);
    troupe steady("steady", *in_shared_memory<board>(),
                  on_four ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 2}, steady_port, at,
                  secret);
    tally t;

    std::int64_t const from = monotonic_ns(), until = from + ns(o.seconds);
    auto const begin_steady = [&] {
        plan next;
        next.size = steady.size();
        next.flavour = 2;
        next.seed = random();
        std::fill(next.rank, next.rank + most_slots, -1);
        for (int s = 0; s < next.size; ++s) next.rank[s] = s;
        next.victim = 0;
        steady.begin(next, ending::clean);
    };
    std::int64_t ends_at = 0;
    auto const begin_eventful = [&] {
        plan next;
        next.flavour = static_cast<int>(random() % flavour_of_flips);
        next.seed = random();
        std::fill(next.rank, next.rank + most_slots, -1);
        std::vector<int> part = {0, 1, 2, 3, 4};
        std::shuffle(part.begin(), part.end(), random);
        part.resize(2 + random() % 4);
        next.size = static_cast<int>(part.size());
        for (int r = 0; r < next.size; ++r) next.rank[part[static_cast<std::size_t>(r)]] = r;
        // Of a hundred lives: who may die is 1, 3 or 4; a life without one of them ends in another way.
        std::vector<int> mortal;
        for (int const s : part)
            if (s == 1 || s == 3 || s == 4) mortal.push_back(s);
        std::uint64_t const lot = random() % 100;
        ending end = lot < 20   ? ending::clean
                     : lot < 55 ? ending::kill
                     : lot < 60 ? ending::silence
                     : lot < 68 ? ending::reset
                     : lot < 76 ? ending::late
                     : lot < 84 ? ending::leave
                     : lot < 90 ? ending::quit
                     : lot < 96 ? ending::misuse
                                : ending::flip;
        bool const dies = end == ending::kill || end == ending::quit;
        if (dies && mortal.empty()) end = ending::clean;
        if (end == ending::flip) next.flavour = flavour_of_flips;
        if (end == ending::reset && at == nullptr) end = ending::clean;
        next.victim =
            dies && !mortal.empty() ? mortal[random() % mortal.size()] : part[random() % part.size()];
        ends_at = ns(draw(0.2, o.longest_life));
        eventful.begin(next, end);
    };

    struct disturbance {
        nuisance what;
        troupe* whom = nullptr;
        int slot = -1, host = -1, pid = 0;
        std::int64_t begun = 0, until = 0;
    };
    std::vector<disturbance> going_on;
    std::vector<pid_t> helpers;
    auto const is_on = [&](auto... what) {
        for (disturbance const& d : going_on)
            if (((d.what == what) || ...)) return true;
        return false;
    };
    auto const short_of_time = [&] { // a deadline of 400 ms passes
        return eventful.alive() && eventful.at().ask.load() == 1 + static_cast<int>(ending::late);
    };
    auto const sockets = [&] {
        std::vector<std::pair<std::string, int>> ends;
        for (troupe* const p : {&eventful, &steady})
            for (int s = 0; s < p->size(); ++s) {
                if (p->pid(s) == 0) continue;
                if (p->number() > 0 && p->now().rank[s] == 0)
                    ends.emplace_back(p->address(s), p == &steady ? steady_port : port);
                for (tcp_socket const& one : tcp_sockets(p->pid(s)))
                    if (one.listens) ends.emplace_back(p->address(s), one.local_port);
            }
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        return ends;
    };
    auto const disturb = [&] {
        disturbance d{static_cast<nuisance>(random() % (at != nullptr ? nuisances : 3))};
        if ((o.disturbances >> static_cast<unsigned>(d.what) & 1) == 0) return;
        d.begun = monotonic_ns();
        d.host = static_cast<int>(random() % static_cast<unsigned>(o.hosts));
        auto const lasts = [&](double least, double most) { d.until = d.begun + ns(draw(least, most)); };
        switch (d.what) {
        case nuisance::stop:
            if (is_on(nuisance::stop, nuisance::outage)) return;
            d.whom = o.steady && random() % 3 == 0 ? &steady : &eventful;
            if (!d.whom->alive() || d.whom->joined_since() == 0 || (d.whom == &eventful && eventful.struck()))
                return;
            d.slot = d.whom->takes_part(random);
            d.pid = d.whom->pid(d.slot);
            if (d.pid == 0) return;
            lasts(0.1, 3);
            d.whom->stop(d.slot);
            break;
        case nuisance::junk:
            lasts(0, 0.1);
            helpers.push_back(aside([&, seed = random()] { throw_junk(sockets(), seed, 12, *strangers); }));
            break;
        case nuisance::hogs:
            if (is_on(nuisance::hogs)) return;
            lasts(0.5, 2);
            for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
                helpers.push_back(aside([end = d.until] {
                    while (monotonic_ns() < end) {
                    }
                }));
            break;
        case nuisance::loss:
            if (is_on(nuisance::loss, nuisance::outage, nuisance::slow) || short_of_time()) return;
            lasts(2, 8);
            if (!at->lose_at_switch(d.host, 5 + static_cast<int>(random() % 46))) return;
            break;
        case nuisance::
            outage: // beside nothing else that keeps signs of life away, nor what is told of an ending
            if (is_on(nuisance::loss, nuisance::outage, nuisance::slow, nuisance::stop) || eventful.struck())
                return;
            lasts(1, o.longest_outage);
            if (!at->cut_at_switch(d.host)) return;
            break;
        case nuisance::slow:
            if (is_on(nuisance::loss, nuisance::outage, nuisance::slow) || short_of_time()) return;
            lasts(2, 8);
            if (!at->slow_down_at_switch(d.host, 5'000 + static_cast<int>(random() % 45'000), 200'000))
                return;
            break;
        }
        ++t.disturbed[static_cast<std::size_t>(d.what)];
        going_on.push_back(d);
    };

    if (o.steady) begin_steady();
    begin_eventful();
    std::int64_t next_disturbance = from + ns(1), next_life = 0, next_look = from + ns(2), zombie_until = 0,
                 quiet_since = 0;
    double last_cpu = 0;
    int marks = 0; // samples taken
    bool finishing = false;
    auto const spent = [&] {
        rusage children{};
        ::getrusage(RUSAGE_CHILDREN, &children);
        auto const seconds = [](timeval const& v) {
            return static_cast<double>(v.tv_sec) + static_cast<double>(v.tv_usec) * 1e-6;
        };
        return seconds(children.ru_utime) + seconds(children.ru_stime) + eventful.cpu() + steady.cpu();
    };
    double const cpu_from = spent();
    std::int64_t last_look = monotonic_ns();
    std::int64_t give_up = until + ns(90);

    for (;;) {
        sleep_for(ns(0.005));
        std::int64_t const now = monotonic_ns();
        // What disturbs ends.
        for (std::size_t i = 0; i < going_on.size();) {
            disturbance const d = going_on[i];
            if (now < d.until) {
                ++i;
                continue;
            }
            if (d.what == nuisance::stop && d.whom->pid(d.slot) == d.pid)
                d.whom->go_on(d.slot, now - d.begun);
            if (d.what == nuisance::loss || d.what == nuisance::outage || d.what == nuisance::slow)
                at->heal(d.host);
            if (d.what == nuisance::outage) quiet_since = now;
            going_on.erase(going_on.begin() + static_cast<std::ptrdiff_t>(i));
        }
        for (std::size_t i = 0; i < helpers.size();)
            if (::waitpid(helpers[i], nullptr, WNOHANG) == helpers[i])
                helpers.erase(helpers.begin() + static_cast<std::ptrdiff_t>(i));
            else
                ++i;

        for (disturbance const& d : going_on)
            for (troupe* const one : {&eventful, &steady}) one->disturbed(d.what, now);

        // The steady world goes on until the end; one that ends before is begun again, and counted.
        if (o.steady && steady.look(t) && !finishing) begin_steady();

        // The eventful one ends as drawn.
        bool const ended = eventful.look(t);
        if (eventful.alive() && eventful.end() == ending::flip && zombie_until == 0 &&
            eventful.joined_since() != 0)
            zombie_until = now + ns(20); // where none turns
        if (ended) {
            zombie_until = 0;
            next_life = now + ns(draw(0, 0.3));
        }
        if (eventful.alive() && eventful.joined_since() != 0 && !eventful.struck() &&
            eventful.at().ask.load() == 0 && (now > eventful.joined_since() + ends_at || finishing)) {
            int const victim = eventful.now().victim;
            bool const still = is_on(nuisance::outage) || now < quiet_since + ns(2);
            bool const stopped = is_on(nuisance::stop);
            switch (eventful.end()) {
            case ending::kill:
                if (still) break;
                eventful.at().strike();
                ::kill(eventful.pid(victim), SIGKILL);
                break;
            case ending::silence:
                if (still || stopped) break;
                eventful.at().strike();
                eventful.stop(victim);
                zombie_until = now + ns(9);
                break;
            case ending::reset: {
                if (still || stopped) break;
                int other = victim;
                while (other == victim) other = eventful.takes_part(random);
                eventful.other_end(eventful.now().rank[other]);
                eventful.at().strike();
                at->reset(eventful.host(victim), eventful.pid(victim), eventful.pid(other));
                zombie_until = now + ns(2); // where they had none
                break;
            }
            default:
                if (still || (stopped && eventful.end() != ending::clean)) break;
                eventful.at().short_ms.store(static_cast<int>(
                    (o.loss > 0 || is_on(nuisance::loss, nuisance::slow) ? short_limit_over_bad_links
                                                                         : short_limit)
                        .count()));
                eventful.at().ask.store(1 + static_cast<int>(eventful.end()));
            }
        }
        if (zombie_until != 0 && now > zombie_until) {
            zombie_until = 0;
            if (eventful.end() == ending::silence)
                eventful.go_on(eventful.now().victim, ns(9));
            else
                eventful.at().ask.store(1 + static_cast<int>(ending::clean));
        }

        // A quarter begins and ends where the eventful ranks are between two worlds, and no stranger holds a connection.
        bool const due = !eventful.alive() && marks <= 4 && (now - from) * 4 >= (until - from) * marks &&
                         (marks > 0 || eventful.number() >= (o.seconds > 120 ? 12 : 1));
        if (due && helpers.empty()) {
            tally::sample one{marks == 0 ? 1 : marks, marks == 0 ? "begins" : "ends", {}};
            eventful.sample(one);
            steady.sample(one);
            t.samples.push_back(std::move(one));
            ++marks;
        }
        if (!finishing && now > until && !eventful.alive() && marks > 4) {
            finishing = true;
            while (!going_on.empty()) { // ends what disturbs
                disturbance const d = going_on.back();
                if (d.what == nuisance::stop && d.whom->pid(d.slot) == d.pid)
                    d.whom->go_on(d.slot, now - d.begun);
                if (d.what == nuisance::loss || d.what == nuisance::outage || d.what == nuisance::slow)
                    at->heal(d.host);
                going_on.pop_back();
            }
            steady.at().ask.store(1 + static_cast<int>(ending::clean));
        }
        if (finishing && !eventful.alive() && !steady.alive()) break;
        if (now > give_up) {
            ++t.hangs;
            std::printf(
                "[soak] HANG: it does not come to its end: %d of 5 samples, %zu helpers, paused by %d us\n",
                marks, helpers.size(), eventful.at().pause_us.load());
            if (eventful.alive()) eventful.say_where();
            if (steady.alive()) steady.say_where();
            break;
        }
        if (!finishing && !due && !eventful.alive() && now > next_life) begin_eventful();
        if (!finishing && !due && now > next_disturbance) {
            next_disturbance = now + ns(draw(0.2, 5));
            disturb();
        }

        // Not more of the machine than was asked for.
        if (now > next_look) {
            next_look = now + ns(1);
            double const cpu = spent();
            double const used = (cpu - last_cpu) / (static_cast<double>(now - last_look) * 1e-9);
            double const average = (cpu - cpu_from) / (static_cast<double>(now - from) * 1e-9);
            if (last_cpu > 0) {
                double const was = std::max(200, eventful.at().pause_us.load());
                bool const more = used > o.cores || average > o.cores;
                int const pause = static_cast<int>(std::clamp(was * (more ? 1.25 : 0.85), 200.0, 150'000.0));
                eventful.at().pause_us.store(pause);
                steady.at().pause_us.store(pause);
            }
            last_cpu = cpu;
            last_look = now;
        }
    }
    double const seconds = static_cast<double>(monotonic_ns() - from) * 1e-9,
                 cores = (spent() - cpu_from) / seconds;
    eventful.end_all(t);
    steady.end_all(t);
    t.junk = strangers->load();
    t.grows = o.memory && o.seconds >= 300 && has_grown(t);
    print(t, o, seconds, cores, at != nullptr);
    return t.bad() == 0 ? 0 : 1;
}

} // namespace fault::soak

#endif // HERRING_TESTS_FAULT_SOAK_HPP
