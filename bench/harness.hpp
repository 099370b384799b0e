// herring: what every program of the bench shares: options, exact data, the timing loop, the JSON line of a
// point. SPDX-License-Identifier: Apache-2.0
//
// Knows neither Herring nor its peers: a program hands over its barrier, its all-gather and its operation, so
// that all of them are timed by the same lines. All ranks are on one machine and read one clock.
#ifndef HERRING_BENCH_HARNESS_HPP
#define HERRING_BENCH_HARNESS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/resource.h>

namespace bench {

/// `--key value` pairs of a command line.
struct options {
    std::map<std::string, std::string> given;

    options(int argc, char** argv) {
        for (int i = 1; i + 1 < argc; i += 2) given[std::string(argv[i]).substr(2)] = argv[i + 1];
    }
    std::string text(std::string const& key, std::string const& otherwise = "") const {
        auto const found = given.find(key);
        return found == given.end() ? otherwise : found->second;
    }
    double number(std::string const& key, double otherwise) const {
        auto const found = given.find(key);
        return found == given.end() ? otherwise : std::atof(found->second.c_str());
    }
    /// Message sizes in bytes, `--sizes 8,1024,…`.
    std::vector<std::size_t> sizes() const {
        std::vector<std::size_t> all;
        std::istringstream in(text("sizes"));
        for (std::string one; std::getline(in, one, ',');) all.push_back(std::stoull(one));
        return all;
    }
};

/// With `--pin 1`, this thread stays on the core of its rank: rank r on the r-th that it may use, and round again. On a machine
/// that does other things two ranks can otherwise share a core for as long as they live, and each waits for the other to sleep.
inline void pin(options const& opt, int rank) {
    if (opt.number("pin", 0) <= 0) return;
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int which = rank % std::max(1, CPU_COUNT(&allowed));
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed) && which-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

/// The ranks of a program. `gather` returns what every rank gave, in rank order; both calls are collective.
struct team {
    int rank;
    int size;
    std::function<void()> barrier;
    std::function<std::vector<double>(std::vector<double> const&)> gather;

    double max(double mine) const {
        auto const all = gather({mine});
        return *std::max_element(all.begin(), all.end());
    }
    double sum(double mine) const {
        auto const all = gather({mine});
        return std::accumulate(all.begin(), all.end(), 0.0);
    }
};

/// One way to do the operation; of several, the fastest in the warm-up is measured and named.
struct candidate {
    std::string name;
    std::function<void()> run;
};

/// What is measured. By default every call of a candidate reduces `tensors` in place on every rank; the other patterns read
/// `in` and write `out`.
enum class pattern {
    all_reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    all_moments,
    all_to_all,
    gather,
    scatter
};

/// Memory of this rank, and the place of its first element in the buffer that all ranks work on.
struct piece {
    std::span<float> memory;
    std::size_t first = 0;
};

struct operation {
    std::string what;  ///< the row's label, e.g. "Herring, in place"
    std::size_t bytes; ///< of one rank; reduce-scatter and all-gather: of the whole buffer
    std::vector<std::span<float>> tensors; ///< where the input lies before, and the result after, a call
    bool averages;                         ///< divides by the number of ranks
    std::vector<candidate> candidates;
    std::string table = ""; ///< gradient table, empty in a sweep
    pattern kind = pattern::all_reduce;
    std::vector<piece> in = {}, out = {}; ///< of the other patterns
    std::vector<piece> owned = {};        ///< of all ranks, one range each: place and size count
};

// ---- exact data
// -----------------------------------------------------------------------------------------------------

/// Small integers, times the number of ranks: sum and average (over 2^k ranks) are exact in any order.
inline float value(int rank, std::size_t element, std::size_t call, int ranks) noexcept {
    auto const hash = element * 7 + element / 61 + static_cast<std::size_t>(rank) * 11 + call * 3;
    return static_cast<float>(ranks * (static_cast<int>(hash % 61) - 30));
}

inline float expected(std::size_t element, std::size_t call, int ranks, bool averages) noexcept {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r, element, call, ranks);
    return averages ? sum / static_cast<float>(ranks) : sum;
}

/// Checks one operation's results: whole buffers in a few calls, and a few moving probes in every timed call.
class checker {
  public:
    checker(team const& ranks, operation const& op) : ranks_(ranks), op_(op), in_(op.in), out_(op.out) {
        std::size_t first = 0;
        for (auto const& t : op.tensors) {
            in_.push_back({t, first});
            out_.push_back({t, first});
            first += t.size();
        }
        total_ = op.kind == pattern::all_reduce ? first : op.bytes / sizeof(float);
    }
    void fill(std::size_t call) {
        if (op_.kind != pattern::all_reduce) // what an operation leaves out must show
            for_each(out_, [](float& x, std::size_t) { x = -1e30f; });
        for_each(in_, [&](float& x, std::size_t i) { x = value(ranks_.rank, i, call, ranks_.size); });
    }
    void check(std::size_t call) {
        for_each(out_, [&](float& x, std::size_t i) { wrong_ += x != result(i, call); });
    }
    void zero() {
        for_each(in_, [](float& x, std::size_t) { x = 0; });
        for_each(out_, [](float& x, std::size_t) { x = 0; });
    }
    void place_probes(std::size_t call) {
        for_each_probe(in_, call,
                       [&](float& x, std::size_t i) { x = value(ranks_.rank, i, call, ranks_.size); });
    }
    void check_probes(std::size_t call) {
        for_each_probe(out_, call, [&](float& x, std::size_t i) {
            wrong_ += x != result(i, call);
            x = 0;
        });
        for_each_probe(in_, call, [](float& x, std::size_t) { x = 0; });
    }
    std::size_t wrong() const { return wrong_; }

  private:
    float result(std::size_t element, std::size_t call) const {
        if (op_.kind == pattern::broadcast || op_.kind == pattern::scatter)
            return value(0, element, call, ranks_.size);
        if (op_.kind == pattern::all_to_all) { // block s is rank s's for this rank
            std::size_t const block = total_ / static_cast<std::size_t>(ranks_.size);
            return value(static_cast<int>(element / block),
                         static_cast<std::size_t>(ranks_.rank) * block + element % block, call, ranks_.size);
        }
        if (op_.kind == pattern::all_gather || op_.kind == pattern::gather) {
            for (std::size_t r = 0; r < op_.owned.size(); ++r)
                if (element - op_.owned[r].first < op_.owned[r].memory.size())
                    return value(static_cast<int>(r), element, call, ranks_.size);
        }
        return expected(element, call, ranks_.size, op_.averages);
    }
    template <class F> static void for_each(std::vector<piece> const& pieces, F f) {
        for (auto const& p : pieces)
            for (std::size_t i = 0; i < p.memory.size(); ++i) f(p.memory[i], p.first + i);
    }
    /// A probe outside of this rank's pieces is left out.
    template <class F> void for_each_probe(std::vector<piece> const& pieces, std::size_t call, F f) {
        if (pieces.empty()) return;
        // The same places in every block, for a block that is given is another rank's that is taken.
        std::size_t const blocks =
                              op_.kind == pattern::all_to_all ? static_cast<std::size_t>(ranks_.size) : 1,
                          block = total_ / blocks,
                          probes = std::min(block, std::max<std::size_t>(32 / blocks, 1));
        for (std::size_t n = 0; n < blocks * probes; ++n) {
            std::size_t const p = n % probes, stride = block / probes;
            std::size_t const i =
                n / probes * block +
                (p + 1 == probes && call % 2 ? block - 1 : p * stride + call * 7919 % stride);
            auto const after = std::upper_bound(pieces.begin(), pieces.end(), i,
                                                [](std::size_t at, piece const& x) { return at < x.first; });
            if (after == pieces.begin()) continue;
            auto const& in = *(after - 1);
            if (i - in.first < in.memory.size()) f(in.memory[i - in.first], i);
        }
    }

    team const& ranks_;
    operation const& op_;
    std::vector<piece> in_, out_; // ascending
    std::size_t total_ = 0;
    std::size_t wrong_ = 0;
};

/// The memory of reduce_scatter, all_gather, broadcast, all_to_all, gather and scatter as callers have it, and the rows of a sweep over their sizes.
///
/// Shape: a buffer of n elements; of rank r the range owned[r]. reduce_scatter: n elements → the own range; all_gather: the
///        own range → n elements; broadcast: n elements of rank 0 → of all; all_to_all: n elements → n elements in `part`, a block of each rank; gather:
///        the own range → n elements of rank 0; scatter: the reverse. In place, the own range is where it belongs in
///        the n elements; else in memory beside them.
struct collective_memory {
    pattern kind;
    int rank;
    std::vector<piece> owned; ///< of each rank, in `whole`
    std::vector<float> whole, part;
    std::span<float> mine; ///< the own range

    /// `range(r)` is the {first, elements} of rank r.
    template <class Range>
    collective_memory(pattern of, int own, int ranks, std::size_t elements, Range range,
                      bool in_place = false)
        : kind(of), rank(own), whole(elements) {
        for (int r = 0; r < ranks; ++r) {
            auto const [first, n] = range(r);
            owned.push_back({std::span<float>(whole).subspan(first, n), first});
        }
        mine = owned[static_cast<std::size_t>(rank)].memory;
        if (kind == pattern::broadcast || (in_place && kind != pattern::all_to_all)) return;
        part.resize(kind == pattern::all_to_all ? elements : mine.size());
        mine = part;
    }
    std::size_t first() const { return owned[static_cast<std::size_t>(rank)].first; }
    operation row(std::string what, bool averages, std::vector<candidate> candidates) {
        operation op{std::move(what), whole.size() * sizeof(float), {}, averages, std::move(candidates)};
        piece const all{whole, 0}, part_of{mine, first()};
        op.kind = kind;
        op.owned = owned;
        if (kind == pattern::reduce_scatter) op.in = {all}, op.out = {part_of};
        if (kind == pattern::all_gather) op.in = {part_of}, op.out = {all};
        if (kind == pattern::all_to_all) op.in = {all}, op.out = {{mine, 0}};
        if (kind == pattern::gather) op.in = {part_of};
        if (kind == pattern::gather && rank == 0) op.out = {all};
        if (kind == pattern::scatter) op.out = {part_of};
        if (kind == pattern::scatter && rank == 0) op.in = {all};
        if (kind == pattern::broadcast) op.out = {all};
        if (kind == pattern::broadcast && rank == 0) op.in = {all};
        return op;
    }
};

/// `--operation`, of which all_reduce is the default.
inline pattern pattern_of(options const& opt) {
    auto const name = opt.text("operation", "all_reduce");
    if (name == "reduce_scatter") return pattern::reduce_scatter;
    if (name == "all_gather") return pattern::all_gather;
    if (name == "broadcast") return pattern::broadcast;
    if (name == "all_to_all") return pattern::all_to_all;
    if (name == "gather") return pattern::gather;
    if (name == "scatter") return pattern::scatter;
    if (name == "all_moments") return pattern::all_moments;
    if (name != "all_reduce") {
        std::fprintf(stderr, "--operation: not '%s'\n", name.c_str());
        std::exit(2);
    }
    return pattern::all_reduce;
}

/// Equal blocks in the order of ranks; every size must be a multiple of them.
inline std::pair<std::size_t, std::size_t> block_of(int rank, int ranks, std::size_t elements) {
    auto const n = elements / static_cast<std::size_t>(ranks);
    if (n * static_cast<std::size_t>(ranks) != elements) {
        std::fprintf(stderr, "blocks of %zu elements are not equal on %d ranks\n", elements, ranks);
        std::exit(2);
    }
    return {static_cast<std::size_t>(rank) * n, n};
}

// ---- clocks
// ---------------------------------------------------------------------------------------------------------

inline double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// CPU seconds of this process, all threads, user and system.
inline double cpu_seconds() {
    rusage u{};
    getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/// {ticks stolen by the hypervisor, all ticks} since boot.
inline std::pair<double, double> steal_ticks() {
    std::ifstream in("/proc/stat");
    std::string cpu;
    in >> cpu;
    double all = 0, stolen = 0, x = 0;
    for (int i = 0; i < 8 && in >> x; ++i) {
        all += x;
        if (i == 7) stolen = x;
    }
    return {stolen, all};
}

/// The value below which this share of them lies; of at least one.
inline double quantile(std::vector<double> of, double share) {
    std::sort(of.begin(), of.end());
    return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1))];
}

// ---- one point
// ------------------------------------------------------------------------------------------------------

/// Measures one operation in isolated mode (barrier before each call; the slowest rank of each call counts),
/// then back to back, after 100 ms that do not count; these give the CPU seconds of a call, too. Rank 0 appends one JSON
/// line to `--out`.
///
/// `--warm-up s` [0.5] or 20 calls, `--seconds s` [2] or `--samples n` [100] calls in at least a quarter of
/// that time. Collective.
inline void measure(team const& ranks, options const& opt, operation const& op) {
    constexpr double settling_us = 100e3;
    double const warm_up_us = opt.number("warm-up", 0.5) * 1e6, limit_us = opt.number("seconds", 2) * 1e6;
    auto const enough = static_cast<std::size_t>(opt.number("samples", 100));
    bool const huge = op.bytes > std::size_t{512} << 20;
    checker data(ranks, op);
    std::size_t call = 0;

    auto const verified = [&](candidate const& c) {
        data.fill(++call);
        ranks.barrier();
        double const start = now_us();
        c.run();
        double const spent = now_us() - start;
        data.check(call);
        return ranks.max(spent);
    };

    // Every candidate: verified calls (huge tables: one), then its time; the fastest goes on. One that is far
    // behind at its first call is dropped, and not tried again at the larger sizes of this run if that call
    // also took over a second.
    static std::set<std::string> hopeless;
    candidate const* best = nullptr;
    double best_us = 0;
    std::string tried; // JSON: what each candidate took
    for (auto const& c : op.candidates) {
        if (hopeless.contains(c.name)) continue;
        double us = verified(c);
        bool const behind = best && us > 100e3 && us > 4 * best_us;
        if (behind && us > 1e6) hopeless.insert(c.name);
        if (!behind) {
            for (int i = 0; i < (huge ? 0 : 2); ++i) verified(c);
            data.zero();
            for (int i = 0; i < (us < 100e3 ? 5 : us < 1e6 ? 3 : 1); ++i) {
                ranks.barrier();
                double const start = now_us();
                c.run();
                double const one = ranks.max(now_us() - start);
                us = i ? std::min(us, one) : one;
            }
        }
        tried += (tried.empty() ? "\"" : ",\"") + c.name + "\":" + std::to_string(us);
        if (!best || us < best_us) best = &c, best_us = us;
    }
    data.zero();

    double const warm_start = now_us();
    for (int i = 0, batch = 1; i < 20 && ranks.max(now_us() - warm_start) < warm_up_us;
         i += batch, batch *= 2)
        for (int k = 0; k < batch; ++k) {
            ranks.barrier();
            best->run();
        }

    // Isolated calls. All ranks stop after the same batch.
    std::size_t const most = 4096;
    std::vector<double> starts, ends;
    auto const ticks_before = steal_ticks();
    double const timed_start = now_us();
    for (std::size_t batch = 1;;) {
        for (std::size_t k = 0; k < batch; ++k) {
            data.place_probes(++call);
            ranks.barrier();
            starts.push_back(now_us());
            best->run();
            ends.push_back(now_us());
            data.check_probes(call);
        }
        double const spent = ranks.max(now_us() - timed_start);
        if (starts.size() >= most || (spent >= limit_us && starts.size() >= 3) ||
            (starts.size() >= enough && spent >= limit_us / 4))
            break;
        double const one = spent / static_cast<double>(starts.size());
        batch = static_cast<std::size_t>(std::clamp((limit_us - spent) / 8 / one, 1.0, 256.0));
    }
    auto const ticks_after = steal_ticks();

    // Back to back, for CPU seconds.
    auto const calls = static_cast<std::size_t>(std::clamp(0.2 * limit_us / best_us, 1.0, 10000.0));
    ranks.barrier();
    // Untimed: until the kernel has placed ranks that slept in the barrier, or share a core, where they stay.
    for (auto k = static_cast<std::size_t>(settling_us / best_us); k > 0; --k) best->run();
    double const cpu_start = cpu_seconds(), stream_start = now_us();
    for (std::size_t i = 0; i < calls; ++i) best->run();
    double const stream_us = ranks.max(now_us() - stream_start) / static_cast<double>(calls);
    double const cpu = ranks.sum(cpu_seconds() - cpu_start) / static_cast<double>(calls);

    verified(*best);
    auto const wrong = ranks.sum(static_cast<double>(data.wrong()));

    // Of each call: the slowest rank, how far apart the ranks started, the time from the last start to the
    // last end. Gathered in small pieces.
    std::vector<double> slowest(starts.size()), skew(starts.size()), joint(starts.size());
    for (std::size_t from = 0; from < starts.size(); from += 256) {
        std::size_t const n = std::min<std::size_t>(256, starts.size() - from);
        auto piece = [&](std::vector<double> const& v) {
            return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(from),
                                       v.begin() + static_cast<std::ptrdiff_t>(from + n));
        };
        auto const s = ranks.gather(piece(starts)), e = ranks.gather(piece(ends));
        for (std::size_t i = 0; i < n; ++i) {
            double first = s[i], last = s[i], end = e[i];
            for (std::size_t r = 0; r < static_cast<std::size_t>(ranks.size); ++r) {
                slowest[from + i] = std::max(slowest[from + i], e[r * n + i] - s[r * n + i]);
                first = std::min(first, s[r * n + i]);
                last = std::max(last, s[r * n + i]);
                end = std::max(end, e[r * n + i]);
            }
            joint[from + i] = end - last;
            skew[from + i] = last - first;
        }
    }
    if (ranks.rank != 0) return;
    std::sort(slowest.begin(), slowest.end());
    std::sort(skew.begin(), skew.end());
    std::sort(joint.begin(), joint.end());

    double const ticks = ticks_after.second - ticks_before.second;
    std::string const path = opt.text("out", "/dev/stdout");
    std::FILE* out = std::fopen(path.c_str(), "a");
    if (!out) {
        std::perror(path.c_str());
        std::exit(1);
    }
    std::fprintf(out,
                 "{\"suite\":\"%s\",\"what\":\"%s\",\"candidate\":\"%s\",\"tried_us\":{%s},\"table\":\"%s\","
                 "\"ranks\":%d,\"bytes\":%zu,"
                 "\"samples\":%zu,\"skew_us\":%.2f,\"after_last_start_us\":%.2f,\"stream_us\":%.2f,\"cpu_s\":"
                 "%.9f,\"steal\":%.4f,\"wrong\":%.0f,\"sorted_us\":[",
                 opt.text("suite").c_str(), op.what.c_str(), best->name.c_str(), tried.c_str(),
                 op.table.c_str(), ranks.size, op.bytes, slowest.size(), skew[skew.size() / 2],
                 joint[joint.size() / 2], stream_us, cpu,
                 ticks > 0 ? (ticks_after.first - ticks_before.first) / ticks : 0.0, wrong);
    std::size_t const kept =
        std::min<std::size_t>(slowest.size(), 201); // evenly spaced quantiles, 0 to 100 %
    for (std::size_t i = 0; i < kept; ++i)
        std::fprintf(out, "%s%.3f", i ? "," : "",
                     slowest[kept > 1 ? i * (slowest.size() - 1) / (kept - 1) : 0]);
    std::fprintf(out, "]}\n");
    std::fclose(out);
}

// ---- uneven ranks
// ----------------------------------------------------------------------------------------------------

/// CPU seconds of this thread.
inline double thread_cpu_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

/// Steps in which every rank computes for 100 to 500 µs of CPU time, another time on each, then `run` reduces one number.
/// Lets rank 0 append what a step takes beyond the slowest rank's computing (with fewer cores than ranks: beyond the
/// cores' share of all computing, if that is longer), and the CPU time of all ranks beyond their computing.
///
/// Collective. `--steps n` [1000].
inline void uneven(team const& ranks, options const& opt, std::string const& what,
                   std::function<void()> const& run) {
    auto const steps = static_cast<int>(opt.number("steps", 1000));
    auto const cores = static_cast<double>(opt.number("cores", 2));
    std::uint32_t dice = 12345; // the same sequence on all ranks, and for all contenders
    double least_us = 0, computed_us = 0;
    ranks.barrier();
    double const cpu_start = cpu_seconds(), start = now_us();
    for (int step = 0; step < steps; ++step) {
        double longest = 0, all = 0, mine = 0;
        for (int r = 0; r < ranks.size; ++r) {
            dice = dice * 1664525u + 1013904223u;
            double const us = 100 + 400 * static_cast<double>(dice >> 8) / static_cast<double>(1u << 24);
            longest = std::max(longest, us);
            all += us;
            if (r == ranks.rank) mine = us;
        }
        least_us += std::max(longest, all / cores);
        computed_us += all;
        for (double const until = thread_cpu_us() + mine; thread_cpu_us() < until;) {
        }
        run();
    }
    double const step_us = ranks.max(now_us() - start) / steps;
    double const cpu_us = ranks.sum(cpu_seconds() - cpu_start) * 1e6 / steps;
    if (ranks.rank != 0) return;
    std::FILE* const out = std::fopen(opt.text("out", "/dev/stdout").c_str(), "a");
    if (!out) return;
    std::fprintf(out,
                 "{\"suite\":\"uneven\",\"what\":\"%s\",\"ranks\":%d,\"step_us\":%.1f,\"beyond_us\":%.1f,"
                 "\"cpu_beyond_us\":%.1f}\n",
                 what.c_str(), ranks.size, step_us, step_us - least_us / steps, cpu_us - computed_us / steps);
    std::fclose(out);
}

// ---- gradient tables
// ------------------------------------------------------------------------------------------------

/// Element counts of a table `name,shape,elements`.
inline std::vector<std::size_t> read_table(std::string const& path) {
    std::ifstream in(path);
    std::vector<std::size_t> counts;
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) counts.push_back(std::stoull(line.substr(line.rfind(',') + 1)));
    if (counts.empty()) {
        std::fprintf(stderr, "%s: no tensors\n", path.c_str());
        std::exit(1);
    }
    return counts;
}

/// `a/b/resnet50.csv` → `resnet50`.
inline std::string table_name(std::string const& path) {
    auto const from = path.rfind('/') + 1;
    return path.substr(from, path.rfind('.') - from);
}

/// One allocation for each tensor of a table, as a framework has them.
struct table_memory {
    std::vector<std::vector<float>> storage;
    std::vector<std::span<float>> tensors;
    std::size_t bytes = 0;

    explicit table_memory(std::vector<std::size_t> const& counts) {
        for (auto n : counts) {
            storage.emplace_back(n);
            bytes += n * sizeof(float);
        }
        for (auto& s : storage) tensors.emplace_back(s);
    }
};

/// A gradient table as PyTorch DDP sends it through a library without buckets of its own: tensors in order of
/// readiness are copied into a bucket that closes at 25 MiB (the first at 1 MiB), the bucket is reduced,
/// copied back and divided.
class ddp_buckets {
  public:
    ddp_buckets(std::vector<std::span<float>> tensors, int ranks)
        : tensors_(std::move(tensors)), scale_(1.0f / static_cast<float>(ranks)) {
        std::size_t cap = std::size_t{1} << 20, begin = 0, elements = 0;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            elements += tensors_[i].size();
            if (elements * sizeof(float) >= cap || i + 1 == tensors_.size()) {
                buckets_.push_back({begin, i + 1, std::vector<float>(elements)});
                begin = i + 1, elements = 0, cap = std::size_t{25} << 20;
            }
        }
    }
    /// `start(bucket number, span)` begins the reduction of a packed bucket, `finish(bucket number)` ends it.
    template <class Start, class Finish> void run(Start start, Finish finish) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            auto* to = buckets_[b].memory.data();
            for (std::size_t i = buckets_[b].begin; i < buckets_[b].end; ++i)
                to = std::copy(tensors_[i].begin(), tensors_[i].end(), to);
            start(b, std::span<float>(buckets_[b].memory));
        }
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            finish(b);
            auto const* from = buckets_[b].memory.data();
            for (std::size_t i = buckets_[b].begin; i < buckets_[b].end; ++i)
                for (auto& x : tensors_[i]) x = *from++ * scale_;
        }
    }
    std::size_t size() const { return buckets_.size(); }
    std::span<float> memory(std::size_t b) { return buckets_[b].memory; }

  private:
    struct bucket {
        std::size_t begin, end;
        std::vector<float> memory;
    };
    std::vector<std::span<float>> tensors_;
    float scale_;
    std::vector<bucket> buckets_;
};

} // namespace bench

#endif
