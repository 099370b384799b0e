// herring: what every contender of the ensemble bench has in common: rows, members' processes, clocks, and a line of JSON.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_ENSEMBLE_HARNESS_HPP
#define HERRING_BENCH_ENSEMBLE_HARNESS_HPP

#include <herring/ensemble/combine.hpp>
#include <herring/ensemble/outputs.hpp>
#include <herring/ensemble/row_format.hpp>
#include <herring/wire/codecs.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <csignal>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace ensemble_bench {

/// Every contender sends rows of this form and folds them with the same kernel, so that what differs is how they travel.
template <class Wire>
using format_over =
    herring::detail::ensembles::row_format<float, herring::combine::mean<herring::space::probability>, Wire,
                                           herring::outputs::of<>>;
using format = format_over<herring::wire::as_is>;

struct options {
    std::string row = "tcp"; ///< name in the table
    std::size_t members = 4;
    std::size_t elements = 1000;
    std::size_t requests = 2000; ///< that are counted
    std::size_t request_bytes = 256;
    std::string out{}; ///< a file to which lines of JSON are appended; empty: standard output

    options(int count, char** value) {
        for (int i = 1; i < count; i += 2) {
            std::string_view const name = value[i];
            if (i + 1 == count) throw std::runtime_error("a value is missing behind " + std::string(name));
            auto const number = [&] {
                return static_cast<std::size_t>(std::strtoull(value[i + 1], nullptr, 10));
            };
            if (name == "--row")
                row = value[i + 1];
            else if (name == "--members")
                members = number();
            else if (name == "--elements")
                elements = number();
            else if (name == "--requests")
                requests = number();
            else if (name == "--out")
                out = value[i + 1];
            else
                throw std::runtime_error("unknown option " + std::string(name));
        }
    }
};

inline std::int64_t now_ns() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

/// When each member had encoded its row of a request and began to send it; in memory that all processes share.
class send_times {
  public:
    static constexpr std::size_t ring = 1 << 16, most_members = 16;
    send_times() {
        void* const memory =
            ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        table_ = new (memory) table;
    }
    void sending(std::size_t member, std::uint64_t request) noexcept {
        table_->sent[request % ring][member].store(now_ns(), std::memory_order_release);
    }
    /// 0: not yet.
    std::int64_t at(std::size_t member, std::uint64_t request) const noexcept {
        return table_->sent[request % ring][member].load(std::memory_order_acquire);
    }
    std::int64_t last(std::uint64_t request, std::size_t members) const noexcept {
        std::int64_t latest = 0;
        for (std::size_t m = 0; m < members; ++m)
            latest = std::max(latest, table_->sent[request % ring][m].load(std::memory_order_acquire));
        return latest;
    }
    std::atomic<std::uint32_t>& go() noexcept { return table_->go; }

  private:
    struct table {
        std::atomic<std::int64_t> sent[ring][most_members] = {};
        std::atomic<std::uint32_t> go = 0; ///< members that are ready, or a port
    };
    table* table_;
};

/// Processes that run `serve(member)`, killed at the end.
class member_processes {
  public:
    template <class Serve> member_processes(std::size_t count, Serve serve) {
        for (std::size_t m = 0; m < count; ++m) {
            pid_t const process = ::fork();
            if (process == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                try {
                    serve(m);
                } catch (std::exception const& problem) {
                    std::fprintf(stderr, "member %zu: %s\n", m, problem.what());
                }
                std::_Exit(0);
            }
            processes_.push_back(process);
        }
    }
    member_processes(member_processes const&) = delete;
    ~member_processes() {
        for (pid_t const p : processes_) ::kill(p, SIGCONT), ::kill(p, SIGKILL);
        for (pid_t const p : processes_) ::waitpid(p, nullptr, 0);
    }
    pid_t process(std::size_t member) const { return processes_[member]; }

  private:
    std::vector<pid_t> processes_;
};

/// The logits of a member: the same in every contender.
inline std::vector<float> logits(std::size_t member, std::size_t elements) {
    std::vector<float> row(elements);
    std::uint32_t state = 0x9e3779b9u * static_cast<std::uint32_t>(member + 1);
    for (float& x : row) {
        state = state * 1664525u + 1013904223u;
        x = static_cast<float>(state >> 8) * 0x1p-21f - 4.0f;
    }
    return row;
}

/// The mean of rows as they came, with its scratch memory.
class folder {
  public:
    folder(std::size_t elements, std::size_t members)
        : elements_(elements), members_(members), memory_(format::result_bytes(elements, members) / 64 + 1) {}
    void fold(std::span<std::span<std::byte const> const> rows) {
        for (auto const row : rows)
            if (format::check(row, elements_) != herring::detail::ensembles::row_check::good)
                throw std::runtime_error("a row is not as it was sent");
        format::results results =
            format::results_in({memory_.data()->bytes, memory_.size() * sizeof(line)}, elements_, members_);
        if (!format::fold(rows, {}, elements_, results)) throw std::runtime_error("rows without weight");
        values_ = results.values;
    }
    std::span<float const> values() const noexcept { return values_; }

  private:
    struct alignas(64) line {
        std::byte bytes[64];
    };
    std::size_t elements_, members_;
    std::vector<line> memory_; // of values and scratch
    std::span<float const> values_;
};

/// Latencies of one row of the table.
struct latencies {
    std::vector<double> whole{}; ///< from the entry of ask to its return
    std::vector<double>
        after_send{}; ///< from the moment at which the last member counted begins to send what it has encoded

    static double at(std::vector<double>& sorted, double share) {
        if (sorted.empty()) return 0;
        std::sort(sorted.begin(), sorted.end());
        return sorted[std::min(sorted.size() - 1,
                               static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
    }
    void print(options const& set, char const* contender, char const* extra = "") {
        std::FILE* const file = set.out.empty() ? stdout : std::fopen(set.out.c_str(), "a");
        if (file == nullptr) throw std::runtime_error("cannot write " + set.out);
        std::fprintf(
            file,
            "{\"suite\":\"ensemble\",\"row\":\"%s\",\"contender\":\"%s\",\"members\":%zu,\"elements\":%zu,"
            "\"requests\":%zu,\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,\"after_send_p50_us\":%.2f,"
            "\"after_send_p99_us\":%.2f%s}\n",
            set.row.c_str(), contender, set.members, set.elements, whole.size(), at(whole, 0.5),
            at(whole, 0.99), at(whole, 0.999), at(after_send, 0.5), at(after_send, 0.99), extra);
        if (file != stdout) std::fclose(file);
    }
};

/// Asks 200 times, then `requests` times that count. `ask(request)` returns how many rows were in the answer.
template <class Ask> latencies measure(options const& set, send_times& times, Ask ask) {
    latencies result;
    result.whole.reserve(set.requests);
    for (std::uint64_t request = 0; request < 200 + set.requests; ++request) {
        std::int64_t const begin = now_ns();
        std::size_t const rows = ask(request);
        std::int64_t const end = now_ns();
        if (rows != set.members) throw std::runtime_error("an answer has " + std::to_string(rows) + " rows");
        if (request < 200) continue;
        result.whole.push_back(static_cast<double>(end - begin) * 1e-3);
        result.after_send.push_back(static_cast<double>(end - times.last(request, set.members)) * 1e-3);
    }
    return result;
}

} // namespace ensemble_bench

#endif // HERRING_BENCH_ENSEMBLE_HARNESS_HPP
