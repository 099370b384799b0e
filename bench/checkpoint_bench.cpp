// herring: how fast `save` and `load` of a model with AdamW are, beside files of as many bytes that are plainly written and read.
// SPDX-License-Identifier: Apache-2.0
//
//   checkpoint_bench --ranks 4 --table FILE.csv --folder DIR      local ranks of one node; files go into DIR/checkpoint_bench, a new folder
//     --rounds 9 --name disk --uncached 0           turns of all in one run; `name` is one for what the folder lies on; whether files are dropped, too
//     [--out FILE] [--pin 1]                       a line of JSON for each row
//
// Contenders, in turn: `save`; `load` from the page cache; `load` when the files were dropped from it (`posix_fadvise`, which a tmpfs
// ignores). Bounds, in the same rounds: the bytes of the checkpoint in pieces of 64 KiB, by every rank its share at once, or by rank 0
// alone, whichever is faster. They are written over an earlier file, with one fsync each; they are read, a third into memory that was
// used before, as weights are, and the rest into new memory while that of the last time is still there, since `load` keeps the state
// that there is until all is checked. Nobody looks at them. What was loaded is compared with what was saved, or the program ends with 1.
#include "harness.hpp"
#include "training_data.hpp"
#include "world_team.hpp"

#include <herring/checkpoint.hpp>
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/optimizer/adamw.hpp>
#include <herring/training.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using trainer = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                 herring::update::average, herring::optimizer::adamw>;

constexpr std::size_t piece = std::size_t{64}
                              << 10; // as `save` has; of 1 MiB some rounds take three times as long

void must(bool holds, char const* what) {
    if (!holds) throw std::system_error(errno, std::generic_category(), what);
}

/// Memory of one read. Huge pages where there are any, as the state has them.
class new_memory {
  public:
    explicit new_memory(std::size_t bytes) : bytes_(bytes + huge) {
        memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(memory_ != MAP_FAILED, "mmap");
        first_ = static_cast<char*>(memory_);
        first_ += (huge - reinterpret_cast<std::uintptr_t>(first_) % huge) % huge;
        ::madvise(first_, bytes, MADV_HUGEPAGE);
    }
    ~new_memory() { ::munmap(memory_, bytes_); }
    new_memory(new_memory const&) = delete;
    new_memory& operator=(new_memory const&) = delete;
    char* data() const { return first_; }

  private:
    static constexpr std::size_t huge = std::size_t{1} << 21;

    std::size_t bytes_;
    void* memory_;
    char* first_;
};

/// A file of this rank's.
class plain_file {
  public:
    plain_file(std::string path, std::size_t bytes) : path_(std::move(path)), memory_(bytes, 'w') {}
    void write() {
        int const file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        must(file >= 0, "open");
        for (std::size_t at = 0; at < memory_.size();) {
            ssize_t const done = ::write(file, memory_.data() + at, std::min(piece, memory_.size() - at));
            must(done > 0, "write");
            at += static_cast<std::size_t>(done);
        }
        must(::fsync(file) == 0, "fsync");
        ::close(file);
    }
    void read() {
        int const file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
        must(file >= 0, "open");
        std::size_t const weights = memory_.size() / 3, state = memory_.size() - weights;
        read(file, memory_.data(), weights);
        if (state > 0) {
            auto fresh = std::make_unique<new_memory>(state);
            read(file, fresh->data(), state);
            state_ = std::move(fresh);
        }
        ::close(file);
    }

  private:
    static void read(int file, char* into, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes;) {
            ssize_t const done = ::read(file, into + at, std::min(piece, bytes - at));
            must(done > 0, "read");
            at += static_cast<std::size_t>(done);
        }
    }

    std::string path_;
    std::vector<char> memory_;
    std::unique_ptr<new_memory> state_;
};

void drop_from_cache(std::string const& folder) {
    for (auto const& one : std::filesystem::directory_iterator(folder)) {
        int const file = ::open(one.path().c_str(), O_RDONLY | O_CLOEXEC);
        must(file >= 0, "open");
        ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        ::close(file);
    }
}

/// What one thing takes, of all rounds.
struct row {
    std::vector<double> ms, cpu_ms;
};

struct row_with_bound {
    char const* what;
    row own, together, alone; // the plain twins: all ranks at once, and rank 0
    double bound(std::size_t round) const { return std::min(together.ms[round], alone.ms[round]); }
};

int run(herring::world& world, bench::options const& opt) {
    bench::pin(opt, world.rank());
    auto const ranks = bench::team_of(world);
    std::filesystem::path const folder = std::filesystem::path(opt.text("folder")) / "checkpoint_bench";
    std::string const saved = folder / "saved", plain = folder / "plain";
    if (ranks.rank == 0) {
        if (!std::filesystem::create_directory(folder)) throw std::runtime_error(folder.string() + " exists");
        std::filesystem::create_directory(saved);
        std::filesystem::create_directory(plain);
    }
    ranks.barrier();
    auto const counts = bench::read_table(opt.text("table"));
    std::size_t parameters = 0;
    for (std::size_t const n : counts) parameters += n;
    std::size_t const bytes = parameters * 3 * sizeof(float); // a weight and two moments
    auto const share = bytes / static_cast<std::size_t>(ranks.size);
    plain_file own(plain + "/of_rank_" + std::to_string(ranks.rank), share);
    plain_file whole(plain + "/whole", ranks.rank == 0 ? bytes : 0);

    trainer train(world, herring::layout::of(counts));
    train.start(0, bench::initial_weights);
    auto const step = [&](int number) {
        for (std::size_t i = counts.size(); i-- > 0;) {
            bench::write_gradient(i, train.tensor(i), ranks.rank, number);
            train.ready(i);
        }
        train.wait();
    };
    step(0);

    // What is loaded has to be what was saved.
    train.save(saved);
    std::vector<std::vector<float>> before;
    for (auto const& one : train.state()) before.emplace_back(one.span.begin(), one.span.end());
    step(1);
    train.load(saved);
    std::size_t wrong = 0, place = 0;
    for (auto const& one : train.state()) {
        auto const& was = before[place++];
        wrong += was.size() != one.span.size() ||
                 std::memcmp(was.data(), one.span.data(), one.span.size_bytes()) != 0;
    }
    before = {};
    if (ranks.sum(static_cast<double>(wrong)) > 0) {
        if (ranks.rank == 0) std::puts("checkpoint_bench: what was loaded is not what was saved");
        return 1;
    }

    auto const timed = [&](row& of, auto const& call) {
        ranks.barrier();
        double const cpu = bench::cpu_seconds(), start = bench::now_us();
        call();
        of.ms.push_back(ranks.max(bench::now_us() - start) / 1e3);
        of.cpu_ms.push_back(ranks.sum(bench::cpu_seconds() - cpu) * 1e3);
    };
    auto const cold = [&](auto const& call) {
        return [&, call](row& of) {
            ranks.barrier();
            if (ranks.rank == 0) drop_from_cache(saved), drop_from_cache(plain);
            timed(of, call);
        };
    };
    auto const warm = [&](auto const& call) { return [&, call](row& of) { timed(of, call); }; };
    auto const save = [&] { train.save(saved); };
    auto const load = [&] { train.load(saved); };
    auto const write_share = [&] { own.write(); };
    auto const read_share = [&] { own.read(); };
    auto const write_all = [&] {
        if (ranks.rank == 0) whole.write();
    };
    auto const read_all = [&] {
        if (ranks.rank == 0) whole.read();
    };
    row_with_bound saves{"save", {}, {}, {}}, loads{"load", {}, {}, {}},
        cold_loads{"load, not cached", {}, {}, {}};
    auto const rounds = static_cast<std::size_t>(std::max(opt.number("rounds", 9), 1.0));
    bool const uncached = opt.number("uncached", 1) != 0;   // files in memory are always in the page cache
    for (std::size_t round = 0; round <= rounds; ++round) { // the first one warms up
        auto const turn = [&](row_with_bound& of, auto const& a, auto const& b, auto const& c) {
            for (std::size_t k = 0; k < 3; ++k) // who comes first changes
                switch ((k + round) % 3) {
                case 0:
                    a(of.own);
                    break;
                case 1:
                    b(of.together);
                    break;
                default:
                    c(of.alone);
                }
            if (round == 0) of.own = of.together = of.alone = {};
        };
        turn(saves, warm(save), warm(write_share), warm(write_all));
        turn(loads, warm(load), warm(read_share), warm(read_all));
        if (uncached) turn(cold_loads, cold(load), cold(read_share), cold(read_all));
    }
    if (ranks.rank != 0) return 0;
    std::filesystem::remove_all(folder);
    std::string const table = bench::table_name(opt.text("table")), name = opt.text("name", "folder");
    for (row_with_bound const* const one : {&saves, &loads, &cold_loads}) {
        if (one == &cold_loads && !uncached) continue;
        std::vector<double> bound, of_bound;
        for (std::size_t r = 0; r < rounds; ++r) {
            bound.push_back(one->bound(r));
            of_bound.push_back(one->bound(r) / one->own.ms[r]);
        }
        auto const median = [](std::vector<double> const& of) { return bench::quantile(of, 0.5); };
        double const gb = static_cast<double>(bytes) * 1e-6; // GB/s = gb / ms
        std::printf("%-8s %-6s %d ranks, %-16s: %8.1f ms, %6.2f GB/s, %7.0f ms of CPU; bound %8.1f ms (ranks "
                    "at once %.1f, %.0f of CPU; one %.1f); of the bound %.2f [%.2f %.2f]\n",
                    table.c_str(), name.c_str(), ranks.size, one->what, median(one->own.ms),
                    gb / median(one->own.ms), median(one->own.cpu_ms), median(bound),
                    median(one->together.ms), median(one->together.cpu_ms), median(one->alone.ms),
                    median(of_bound), bench::quantile(of_bound, 0.25), bench::quantile(of_bound, 0.75));
        auto const path = opt.text("out");
        std::FILE* const out = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
        if (out == nullptr) continue;
        std::fprintf(
            out,
            "{\"suite\":\"checkpoints\",\"what\":\"%s\",\"folder\":\"%s\",\"table\":\"%s\",\"ranks\":%d,"
            "\"bytes\":%zu,\"ms\":%.2f,\"cpu_ms\":%.1f,\"bound_ms\":%.2f,\"ranks_at_once_ms\":%.2f,"
            "\"ranks_at_once_cpu_ms\":%.1f,\"one_rank_ms\":%.2f,\"of_bound\":%.3f}\n",
            one->what, name.c_str(), table.c_str(), ranks.size, bytes, median(one->own.ms),
            median(one->own.cpu_ms), median(bound), median(one->together.ms), median(one->together.cpu_ms),
            median(one->alone.ms), median(of_bound));
        std::fclose(out);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    if (opt.text("table").empty() || opt.text("folder").empty()) {
        std::fprintf(stderr, "checkpoint_bench: --table FILE.csv and --folder DIR are needed\n");
        return 2;
    }
    int const size = static_cast<int>(opt.number("ranks", 2));
    return herring::launch(size, [&](herring::world& world) { return run(world, opt); });
}
