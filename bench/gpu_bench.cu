// herring: on a GPU: calls, steps and nodes that reduce device memory, and the kernels beside the device's own copies.
// SPDX-License-Identifier: Apache-2.0
//
//   nvcc -std=c++20 -O2 -arch=sm_90 -Xcompiler -march=x86-64-v3 -Iinclude bench/gpu_bench.cu -o build/gpu_bench
//   build/gpu_bench [part ...] [--tables bench/data] [--sizes 4096,65536,...] [--seconds 0.1] [--timeline FILE.pftrace]
//
// Parts, all of them where none is named; a second to a minute each, three minutes together:
//   calls      one node, ranks as threads: all_reduce(buffer, stream) of reducers with a layout of 1,024 elements, with none and
//              with one of 64 MiB, and a step of as many bytes in place
//   steps      one node, 1 to 8 ranks as threads: steps in place, also of BERT-large's table
//   processes  one node, ranks as processes: calls and steps
//   nodes      each rank a node, TCP on loopback: host tensors, nvlink and pcie_staging; calls and steps
//   staging    BERT-large's table by pcie_staging, in GB/s each way, beside the link's share
//   timeline   two nodes, pcie_staging: writes what happens in some steps, for bench/timeline_svg.py and ui.perfetto.dev
//   sums packing latency    kernels, in gpu_kernels.cuh; gpu_test checks their results
//
// A line has medians in microseconds, from a call until the stream has ended, of the slowest rank, of as many calls in a row as
// --seconds allows. Every element of the last result is compared: «wrong» stands where one differs, and the program ends with
// status 1. «-»: not measured, for a smaller size took more than a second. All ranks share the first device if there is one alone.
#include "gpu_kernels.cuh"
#include "world_team.hpp"

#include "herring/intra_node/nvlink.cuh"
#include "herring/intra_node/pcie_staging.cuh"
#include "herring/launch.hpp"
#include "herring/trace/perfetto.hpp"
#include "herring/trace/timeline.hpp"

#include <numeric>
#include <type_traits>

namespace bench {

struct settings {
    std::string tables = "bench/data";
    std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 16 << 20, 64 << 20, 256 << 20};
    double seconds = 0.1; // a cell
    std::string timeline = "timeline.pftrace";
} given;

std::vector<std::size_t> bert() { return read_table(given.tables + "/bert_large.csv"); }

// What averages exactly, over 2^k ranks.
float value(std::size_t i, double rank) { return static_cast<float>(static_cast<double>(i & 255) + rank); }

void fill(std::span<float> to, int rank) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = value(i, rank);
}
void fill(device_span<float> to, int rank) {
    std::vector<float> here(to.size());
    fill(std::span(here), rank);
    must(cudaMemcpy(to.data(), here.data(), to.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); // of up to 64 KiB the copy may still be under way
}
bool is_right(std::span<float> found, int ranks) {
    for (std::size_t i = 0; i < found.size(); ++i)
        if (found[i] != value(i, (ranks - 1) / 2.0)) return false;
    return true;
}
bool is_right(device_span<float> found, int ranks) {
    std::vector<float> here(found.size());
    must(cudaMemcpy(here.data(), found.data(), found.size_bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return is_right(std::span(here), ranks);
}

void print_columns(char const* part) {
    std::printf("\n%-10s us, median; bytes of a rank:        ", part);
    for (std::size_t const bytes : given.sizes) std::printf(" %11zu", bytes);
    std::printf(" %11s\n", "bert_large");
}

// What one rank measures of one intra-node reducer. With intra_node::none its tensors lie on the host.
template <class Node> class measurement {
  public:
    measurement(world& ranks, char const* started_as)
        : ranks_(ranks), team_(team_of(ranks)), started_as_(started_as) {
        if constexpr (on_device) {
            gpu::use_device(ranks);
            must(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), "cudaStreamCreate");
        }
    }
    measurement(measurement const&) = delete;
    ~measurement() {
        if (queue != nullptr) (void)cudaStreamDestroy(queue);
    }

    /// Buffers outside the reducer's tensors, which are `elements` in all.
    void calls(char const* layout_is, std::size_t elements) {
        reducer_type reduce(ranks_, layout::of(std::vector<std::size_t>(elements > 0 ? 1 : 0, elements)));
        typename choice::memory buffer(*std::max_element(given.sizes.begin(), given.sizes.end()));
        begin_line(std::string("call, layout ") + layout_is);
        for (std::size_t const bytes : given.sizes) {
            auto const part = choice::span_of(buffer, bytes / sizeof(float));
            fill(part, ranks_.rank());
            cell(
                [&] {
                    if constexpr (on_device)
                        reduce.all_reduce(part, queue);
                    else
                        reduce.all_reduce(part);
                },
                [&] { return is_right(part, ranks_.size()); });
        }
        end_line();
    }
    /// Tensors in the reducer's memory: one of each size, and a model's.
    void steps(bool with_bert) {
        begin_line("step in place");
        for (std::size_t const bytes : given.sizes) step({bytes / sizeof(float)});
        if (with_bert) step(bert());
        end_line();
    }
    /// One step of these tensors; returns its microseconds, which are 0 if its result is wrong.
    double step(std::vector<std::size_t> const& tensors) {
        if (too_slow_) return cell([] {}, [] { return true; });
        reducer_type reduce(ranks_, layout::of(tensors));
        for (std::size_t i = 0; i < reduce.size(); ++i) fill(reduce.tensor(i), ranks_.rank());
        return cell(
            [&] {
                for (std::size_t i = 0; i < reduce.size(); ++i)
                    if constexpr (on_device)
                        reduce.ready(i, queue);
                    else
                        reduce.ready(i);
                if constexpr (on_device)
                    reduce.wait(queue);
                else
                    reduce.wait();
            },
            [&] {
                bool right = true;
                for (std::size_t i = 0; i < reduce.size(); ++i)
                    right = right && is_right(reduce.tensor(i), ranks_.size());
                return right;
            });
    }
    /// All bytes of a rank cross the link once each way, which all ranks of a device share.
    void share_of_link() {
        double link = 0;
        if (ranks_.rank() == 0) link = both_ways(std::size_t{256} << 20) / ranks_.size();
        link = team_.max(link);
        std::vector<std::size_t> const tensors = bert();
        double const bytes =
            4.0 * static_cast<double>(std::accumulate(tensors.begin(), tensors.end(), std::size_t{0}));
        begin_line("bert_large");
        double const reached = gbs(bytes, step(tensors) * 1e-6);
        char text[120];
        std::snprintf(text, sizeof text,
                      "; %.1f GB/s each way a rank, %.0f %% of its share of the link, %.1f", reached,
                      100 * reached / link, link);
        line_ += text;
        end_line();
    }
    int status() const { return wrong_ ? 1 : 0; }

  private:
    static constexpr bool on_device = !std::is_same_v<Node, intra_node::none>;
    using reducer_type = reducer<float, transport::tcp, Node, update::average>;
    struct of_device {
        using memory = buffer;
        static device_span<float> span_of(memory& all, std::size_t n) {
            return {reinterpret_cast<float*>(all.at), n};
        }
    };
    struct of_host {
        struct memory : std::vector<float> {
            explicit memory(std::size_t bytes) : vector(bytes / sizeof(float)) {}
        };
        static std::span<float> span_of(memory& all, std::size_t n) { return std::span(all).first(n); }
    };
    using choice = std::conditional_t<on_device, of_device, of_host>;

    template <class Call, class Check> double cell(Call const& call, Check const& check) {
        char text[40] = "           -";
        double median = 0;
        if (!too_slow_) {
            median = median_us(call);
            bool const right = team_.sum(check() ? 0 : 1) == 0;
            wrong_ = wrong_ || !right;
            std::snprintf(text, sizeof text, right ? " %11.1f" : "       wrong", median);
        }
        line_ += text;
        return median;
    }
    template <class Call> double median_us(Call const& call) {
        auto const timed = [&] {
            double const from = now_us();
            call();
            if constexpr (on_device) must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
            return now_us() - from;
        };
        team_.barrier();
        (void)timed();
        double const first = timed(), once = team_.max(first);
        too_slow_ = once > 1e6;
        std::vector<double> all(
            static_cast<std::size_t>(std::clamp(given.seconds * 1e6 / once, too_slow_ ? 1.0 : 3.0, 300.0)),
            first);
        for (std::size_t i = 1; i < all.size(); ++i) all[i] = timed();
        std::sort(all.begin(), all.end());
        return team_.max(all[all.size() / 2]);
    }

    void begin_line(std::string const& what) {
        char text[80], who[40];
        std::snprintf(who, sizeof who, "%s, %d %s,", on_device ? Node::name : "host tensors", ranks_.size(),
                      started_as_);
        std::snprintf(text, sizeof text, "%-27s %-20s", who, what.c_str());
        line_ = text;
        too_slow_ = false;
    }
    void end_line() {
        if (ranks_.rank() == 0) std::printf("%s\n", line_.c_str());
    }

    world& ranks_;
    team team_;
    char const* started_as_;
    std::string line_;
    bool too_slow_ = false, wrong_ = false;
};

int failed_with = 0;

// Runs `body(measurement<Node>&)` on so many ranks. This process never calls anything of CUDA's, so that it can fork at any time.
enum class ranks_as { threads, processes };
enum class on { one_node, nodes };
template <class Node, class Body> void measure(int ranks, ranks_as start, on where, Body const& body) {
    launch_options options;
    options.timeout = std::chrono::seconds(120);
    launch_options const whole = options;
    for (int r = 0; where == on::nodes && r < ranks; ++r) options.nodes.push_back(std::to_string(r));
    char const* const name = start == ranks_as::threads ? "threads" : "processes";
    auto const rank = [&](world& here) {
        measurement<Node> of(here, name);
        body(of);
        return of.status();
    };
    int const failed = start == ranks_as::processes
                           ? launch(ranks, rank, options)
                           : launch(
                                 1, [&](world&) { return launch_threads(ranks, rank, options); }, whole);
    if (failed != 0) std::printf("FAILED: %d %s: status %d\n", ranks, name, failed_with = failed);
}

constexpr auto all_steps = [](auto& of) { of.steps(true); };
constexpr auto calls_and_steps = [](auto& of) {
    of.calls("64 MiB", 16 << 20);
    of.steps(true);
};

void calls() {
    print_columns("calls");
    auto const all = [](auto& of) {
        of.calls("1,024", 1024);
        of.calls("empty", 0);
        of.calls("64 MiB", 16 << 20);
        of.steps(false);
    };
    for (int const ranks : {2, 4}) {
        measure<intra_node::nvlink>(ranks, ranks_as::threads, on::one_node, all);
        measure<intra_node::pcie_staging>(ranks, ranks_as::threads, on::one_node, all);
    }
}
void steps() {
    print_columns("steps");
    for (int const ranks : {1, 2, 4, 8}) {
        measure<intra_node::nvlink>(ranks, ranks_as::threads, on::one_node, all_steps);
        measure<intra_node::pcie_staging>(ranks, ranks_as::threads, on::one_node, all_steps);
    }
}
void processes() {
    print_columns("processes");
    for (int const ranks : {2, 4}) {
        measure<intra_node::nvlink>(ranks, ranks_as::processes, on::one_node, calls_and_steps);
        measure<intra_node::pcie_staging>(ranks, ranks_as::processes, on::one_node, calls_and_steps);
    }
}
void nodes() {
    print_columns("nodes");
    auto const all = [](int ranks, ranks_as start) {
        measure<intra_node::none>(ranks, start, on::nodes, calls_and_steps);
        measure<intra_node::nvlink>(ranks, start, on::nodes, calls_and_steps);
        measure<intra_node::pcie_staging>(ranks, start, on::nodes, calls_and_steps);
    };
    all(2, ranks_as::threads);
    all(2, ranks_as::processes);
    all(4, ranks_as::processes);
}
void staging() {
    std::printf("\n%-10s us, median\n", "staging");
    for (int const ranks : {1, 2, 4})
        for (ranks_as const start : {ranks_as::threads, ranks_as::processes})
            measure<intra_node::pcie_staging>(ranks, start, on::one_node,
                                              [](auto& of) { of.share_of_link(); });
}

// Of 8 tensors of 4 MiB. The stream is waited for behind each step, so that no step begins beside another one's copies.
void timeline() {
    launch_options nodes;
    nodes.nodes = {"0", "1"};
    auto const rank = [](world& ranks) {
        gpu::use_device(ranks);
        must(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), "cudaStreamCreate");
        reducer<float, transport::tcp, intra_node::pcie_staging, update::average, trace::timeline<1 << 14>>
            reduce(ranks, layout::of(std::vector<std::size_t>(8, 1 << 20)));
        for (int step = 0; step < 5; ++step) {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i, queue);
            reduce.wait(queue);
            must(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
        }
        bool const is_written = write_perfetto(given.timeline, reduce.trace());
        if (ranks.rank() == 0 && is_written) std::printf("\ntimeline   %s\n", given.timeline.c_str());
        must(cudaStreamDestroy(queue), "cudaStreamDestroy");
        return ranks.rank() == 0 && !is_written ? 1 : 0;
    };
    int const failed = launch(1, [&](world&) { return launch_threads(2, rank, nodes); });
    if (failed != 0) failed_with = failed;
}

// Kernels, in a process of their own.
template <class Body> void alone(Body const& body) {
    int const failed = launch(1, [&](world& here) {
        cudaDeviceProp facts;
        must(cudaGetDeviceProperties(&facts, gpu::use_device(here)), "cudaGetDeviceProperties");
        must(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), "cudaStreamCreate");
        body(here, facts);
        must(cudaStreamDestroy(queue), "cudaStreamDestroy");
    });
    if (failed != 0) failed_with = failed;
}
void device_and_copies() {
    alone([](world&, cudaDeviceProp const& facts) {
        std::size_t const large = std::size_t{256} << 20;
        std::printf("device   %s, %d multiprocessors\n", facts.name, facts.multiProcessorCount);
        std::printf("copy     device, 256 MiB          %8.1f GB/s read and written\n", copy_bandwidth(large));
        std::printf("copy     pinned, 256 MiB          %8.1f GB/s each way, both at once\n",
                    both_ways(large));
    });
}
void sums() {
    alone([](world&, cudaDeviceProp const& facts) {
        sums<float>("float", facts.multiProcessorCount);
        sums<bfloat16>("bfloat16", facts.multiProcessorCount);
    });
}
void packing() {
    alone([](world& here, cudaDeviceProp const&) {
        for (char const* const model : {"resnet50", "bert_large"})
            packing(here, model, given.tables + "/" + model + ".csv");
    });
}
void latency() {
    alone([](world& here, cudaDeviceProp const& facts) {
        latency(facts.multiProcessorCount);
        small_bucket<intra_node::nvlink>(here, "nvlink");
        small_bucket<intra_node::nvlink>(here, "nvlink, 3 places", 3); // a new list for each step
        small_bucket<gpu::basic_nvlink<gpu::cuda_runtime, gpu::peer_sums_tuning{.graphs = true}>>(
            here, "nvlink, graphs");
        small_bucket<intra_node::pcie_staging>(here, "pcie_staging");
        small_bucket<gpu::basic_pcie_staging<gpu::cuda_runtime, gpu::staging_tuning{.graphs = true}>>(
            here, "pcie_staging, graphs");
    });
}

struct part {
    char const* name;
    void (*run)();
};
constexpr part parts[] = {{"sums", sums},   {"packing", packing}, {"latency", latency},
                          {"calls", calls}, {"steps", steps},     {"processes", processes},
                          {"nodes", nodes}, {"staging", staging}, {"timeline", timeline}};

} // namespace bench

int main(int argc, char** argv) {
    using namespace bench;
    int named = 1;
    while (named < argc && std::string_view(argv[named]).substr(0, 2) != "--") ++named;
    options const opt(argc - named + 1, argv + named - 1);
    given.tables = opt.text("tables", given.tables);
    given.seconds = opt.number("seconds", given.seconds);
    given.timeline = opt.text("timeline", given.timeline);
    if (!opt.sizes().empty()) given.sizes = opt.sizes();
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // who forks must not print twice
    for (int i = 1; i < named; ++i)
        if (std::none_of(std::begin(parts), std::end(parts),
                         [&](part const& p) { return p.name == std::string_view(argv[i]); })) {
            std::fprintf(stderr, "gpu_bench: no part «%s»; there are:", argv[i]);
            for (part const& p : parts) std::fprintf(stderr, " %s", p.name);
            std::fprintf(stderr, "\n");
            return 2;
        }
    device_and_copies();
    for (part const& p : parts)
        if (named == 1 ||
            std::any_of(argv + 1, argv + named, [&](char const* n) { return p.name == std::string_view(n); }))
            p.run();
    return failed_with;
}
