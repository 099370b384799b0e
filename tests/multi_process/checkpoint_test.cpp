// herring: checkpoints of real processes that are killed at every call that writes, of machines that lose power at any of them, of full
// disks and of folders that nobody may write: there is always one whole checkpoint, and it is the old one or the new one.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint.hpp"
#include "herring/gap_checkpoint.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "checkpoint_files.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using herring::layout;
using herring::world;
using herring::tests::files;
using herring::tests::scratch_folder;

// ---- every call that changes a file or a folder passes here ---------------------------------------------------------------------

namespace {

enum class op { write, sync, rename, unlink };

/// A call on a file, or of its folder (an empty name).
struct file_call {
    op what;
    std::string name;
    std::string bytes; // that are written; of a rename, the new name
};

/// What this process does with them.
struct {
    bool counted = false; // and the process ends at one of them
    int left = 0;         // until then
    bool in_half = false; // not before a write, but when half is written
    bool logged = false;
    std::mutex mutex; // ranks are threads then
    std::vector<file_call> log;
    std::string slow_file; // of this ending: the disk takes `slow_for` to have it
    std::chrono::seconds slow_for{0};
    int refusals = 0; // of fsync, from the next rename on
    bool renamed = false;
} calls;

std::string path_of(int file) {
    char path[4096];
    ssize_t const size = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
    return {path, size < 0 ? 0 : static_cast<std::size_t>(size)};
}
/// Not sockets, pipes and events, which have no path.
bool is_ours(std::string const& path) { return path.find("/herring_") != path.npos; }

void note(op what, int file, std::string name, std::string bytes = {}) {
    if (!calls.counted && !calls.logged) return;
    std::string const path = path_of(file);
    if (!is_ours(path)) return;
    if (calls.counted && calls.left-- == 0) {
        if (calls.in_half && what == op::write)
            (void)::syscall(SYS_write, file, bytes.data(), bytes.size() / 2);
        ::kill(::getpid(), SIGKILL);
    }
    if (!calls.logged) return;
    if (name.empty() && !std::filesystem::is_directory(path)) name = std::filesystem::path(path).filename();
    std::lock_guard const alone(calls.mutex);
    calls.log.push_back({what, std::move(name), std::move(bytes)});
}

} // namespace

extern "C" {
ssize_t write(int file, void const* data, std::size_t size) {
    if (calls.counted || calls.logged) note(op::write, file, {}, {static_cast<char const*>(data), size});
    return ::syscall(SYS_write, file, data, size);
}
int fsync(int file) {
    note(op::sync, file, {});
    if (!calls.slow_file.empty() && path_of(file).ends_with(calls.slow_file))
        std::this_thread::sleep_for(calls.slow_for);
    if (calls.renamed && calls.refusals > 0 && is_ours(path_of(file))) {
        --calls.refusals;
        errno = EIO;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fsync, file));
}
int renameat(int folder, char const* from, int to_folder, char const* to) noexcept {
    note(op::rename, folder, from, to);
    calls.renamed = true;
    return static_cast<int>(::syscall(SYS_renameat2, folder, from, to_folder, to, 0));
}
int unlinkat(int folder, char const* name, int flags) noexcept {
    note(op::unlink, folder, name);
    return static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
}
}

// ---- a training whose weights after each step are known ---------------------------------------------------------------------------

namespace {

using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw>;
layout const tensors{{"first", 40}, {"second", 9'000}}; // two hops: each of three nodes owns a third

/// The mean over any number of ranks is exact.
void run_step(trainer& train, int step) {
    for (std::size_t i = 0; i < train.size(); ++i) {
        std::span<float> const into = train.tensor(i);
        for (std::size_t at = 0; at < into.size(); ++at)
            into[at] = static_cast<float>((at * 7 + i * 3 + static_cast<std::size_t>(step) * 11) % 64) - 20;
        train.ready(i);
    }
    train.wait();
}
void start(trainer& train) {
    train.start(0, [](std::size_t i, std::span<float> into) {
        for (std::size_t at = 0; at < into.size(); ++at) into[at] = static_cast<float>(at + i);
    });
}
std::vector<float> weights_of(trainer& train) {
    std::vector<float> all;
    for (std::size_t i = 0; i < train.size(); ++i) {
        auto const one = train.weights(i);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}
/// After that many steps.
std::vector<float> const& known_weights(std::size_t steps) {
    static std::vector<std::vector<float>> const known = [] {
        std::vector<std::vector<float>> all;
        world alone;
        trainer train(alone, tensors);
        start(train);
        for (int step = 0; step < 6; ++step) {
            all.push_back(weights_of(train));
            run_step(train, step);
        }
        return all;
    }();
    return known[steps];
}
std::vector<std::byte> bytes_for(int steps) {
    return std::vector<std::byte>(static_cast<std::size_t>(100 + steps), static_cast<std::byte>(steps));
}
/// At once, or in pieces.
enum class how { at_once, in_pieces };
void save(trainer& train, std::string const& folder, int steps, how written = how::at_once) {
    if (written == how::at_once) return train.save(folder, bytes_for(steps));
    herring::gap_checkpoint pieces(train);
    pieces.begin(folder, bytes_for(steps));
    while (pieces.next()) {
    }
    pieces.finish();
}

/// The steps of the checkpoint that is there, which is whole; −1: there is none, or one that is not.
int steps_of(std::string const& folder) {
    world alone;
    trainer train(alone, tensors);
    try {
        auto const bytes = train.load(folder);
        int const steps = static_cast<int>(bytes.size()) - 100;
        if (steps < 0 || bytes != bytes_for(steps)) return -1;
        if (weights_of(train) != known_weights(static_cast<std::size_t>(steps))) return -1;
        run_step(train, steps); // and the state
        return weights_of(train) == known_weights(static_cast<std::size_t>(steps) + 1) ? steps : -1;
    } catch (herring::error const& why) {
        MESSAGE(why.what());
        return -1;
    }
}

/// Loads, takes a step, and saves. Ranks on nodes of their own, so that each of them owns something.
int resume_and_save(world& ranks, std::string const& folder, int steps) {
    trainer train(ranks, tensors);
    if (steps > 0)
        train.load(folder);
    else
        start(train);
    run_step(train, steps);
    save(train, folder, steps + 1);
    return 0;
}
herring::launch_options apart(int ranks) {
    herring::launch_options options;
    for (int r = 0; r < ranks; ++r) options.nodes.push_back(std::string(1, static_cast<char>('a' + r)));
    return options;
}
void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}
template <class Call> void require_error(herring::errc code, std::string const& words, Call&& call) {
    try {
        call();
    } catch (herring::error const& why) {
        require(why.code() == code && std::string(why.what()).find(words) != std::string::npos,
                words + ", in: " + why.what());
        return;
    }
    throw std::runtime_error("no error, where there should be: " + words);
}

} // namespace

TEST_CASE(
    "checkpoint: a process that is killed before any call, or within a write, leaves a whole checkpoint") {
    (void)known_weights(0);
    scratch_folder const folder;
    REQUIRE(herring::launch(
                3, [&](world& w) { return resume_and_save(w, folder.path(), 0); }, apart(3)) == 0);
    files const first = herring::tests::files_of(folder.path());
    REQUIRE(first.size() == 5); // the manifest, a part a rank, bytes
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto* const told = ::new (memory) std::atomic<int>(0);
    struct {
        bool in_half;
        how written;
    } const ways[] = {{false, how::at_once}, {true, how::at_once}, {true, how::in_pieces}};
    for (int const victim : {0, 2})
        for (auto const& way : ways) {
            int before = 1, status = -1;
            for (int k = 0; status != 0; ++k) {
                REQUIRE(k < 100);
                herring::tests::put_files(folder.path(), first);
                status = herring::launch(
                    3,
                    [&](world& w) {
                        trainer train(w, tensors);
                        train.load(folder.path());
                        run_step(train, 1);
                        if (w.rank() == victim) {
                            calls.left = k;
                            calls.in_half = way.in_half;
                            calls.counted = true;
                        }
                        try {
                            save(train, folder.path(), 2, way.written);
                        } catch (herring::error const& why) {
                            std::string const call = why.operation();
                            *told += why.peer() == victim &&
                                     (way.written == how::at_once ? call == "save"
                                                                  : call == "begin" || call == "finish");
                            return 1;
                        }
                        return 0;
                    },
                    apart(3));
                CAPTURE(victim);
                CAPTURE(k);
                CHECK(told->exchange(0) == (status == 0 ? 0 : 2)); // the others, of the rank that died
                int const found = steps_of(folder.path());
                CHECK(found >= before); // once it is there it stays
                CHECK(found <= 2);
                before = std::max(before, found);
                if (k % 5 != 4)
                    continue; // what is left over does not harm the next save, and is removed by it
                REQUIRE(herring::launch(
                            3, [&](world& w) { return resume_and_save(w, folder.path(), found); },
                            apart(3)) == 0);
                CHECK(steps_of(folder.path()) == found + 1);
                CHECK(herring::tests::files_of(folder.path()).size() == 5);
            }
            CHECK(before == 2);
        }
    ::munmap(memory, 4096);
}

namespace {

/// A folder on a disk whose machine may lose power: what is certain to be there then, and what may be.
class disk {
  public:
    explicit disk(files const& durable) {
        for (auto const& [name, bytes] : durable) {
            synced_names_[name] = names_[name] = contents_.size();
            contents_.push_back({bytes, bytes});
        }
    }
    void apply(file_call const& call) {
        switch (call.what) {
        case op::write:
            if (!names_.contains(call.name)) {
                names_[call.name] = contents_.size();
                contents_.push_back({});
            }
            contents_[names_[call.name]].now += call.bytes;
            break;
        case op::sync:
            if (call.name.empty()) {
                synced_names_ = names_;
                removed_.clear();
                renamed_.clear();
            } else {
                auto& one = contents_[names_.at(call.name)];
                one.synced = one.now;
            }
            break;
        case op::rename:
            renamed_[call.bytes] = names_[call.bytes] = names_.at(call.name);
            names_.erase(call.name);
            break;
        case op::unlink:
            names_.erase(call.name);
            removed_.push_back(call.name);
            break;
        }
    }
    files now() const { return files_of(names_, false); }
    /// After power was lost: nothing that was not synced; or all names, and of contents what was; or of names what was, and those
    /// that were removed, or given anew.
    std::vector<files> after_power_loss() const {
        auto without = synced_names_, with = synced_names_;
        for (auto const& one : removed_) without.erase(one);
        for (auto const& [name, number] : renamed_) with[name] = number;
        return {files_of(synced_names_, true), files_of(names_, true), files_of(without, true),
                files_of(with, true)};
    }

  private:
    struct content {
        std::string now, synced;
    };
    files files_of(std::map<std::string, std::size_t> const& names, bool synced) const {
        files all;
        for (auto const& [name, number] : names)
            all[name] = synced ? contents_[number].synced : contents_[number].now;
        return all;
    }
    std::map<std::string, std::size_t> names_, synced_names_, renamed_;
    std::vector<content> contents_;
    std::vector<std::string> removed_; // since names were synced
};

/// The calls of one save of two ranks, in their order.
std::vector<file_call> calls_of_a_save(std::string const& folder, int steps, how written = how::at_once) {
    calls.log.clear();
    herring::launch_threads(
        2,
        [&](world& w) {
            trainer train(w, tensors);
            train.load(folder);
            run_step(train, steps);
            w.barrier();
            if (w.rank() == 0) calls.logged = true;
            w.barrier();
            save(train, folder, steps + 1, written);
            return 0;
        },
        apart(2));
    calls.logged = false;
    return calls.log;
}

/// Power is lost before each of the calls, and after the last: afterwards there is an old or the new checkpoint.
void lose_power(disk on, std::vector<file_call> const& done, std::string const& folder, int oldest) {
    for (std::size_t k = 0; k <= done.size(); ++k) {
        CAPTURE(k);
        std::vector<files> seen;
        for (files const& left : on.after_power_loss()) {
            if (std::ranges::find(seen, left) != seen.end()) continue;
            seen.push_back(left);
            herring::tests::put_files(folder, left);
            int const found = steps_of(folder);
            CHECK(found >= (k == done.size() ? oldest + 1 : oldest));
        }
        if (k < done.size()) on.apply(done[k]);
    }
}

} // namespace

TEST_CASE("checkpoint: a machine that loses power at any call has a whole checkpoint, and the new one once "
          "save has returned") {
    (void)known_weights(0);
    scratch_folder const folder;
    REQUIRE(herring::launch_threads(
                2, [&](world& w) { return resume_and_save(w, folder.path(), 0); }, apart(2)) == 0);
    files const first = herring::tests::files_of(folder.path());
    std::vector<file_call> const pieces = calls_of_a_save(folder.path(), 1, how::in_pieces);
    REQUIRE(pieces.size() > 15);
    lose_power(disk(first), pieces, folder.path(), 1);
    herring::tests::put_files(folder.path(), first);
    std::vector<file_call> const done = calls_of_a_save(folder.path(), 1);
    REQUIRE(done.size() > 15);
    lose_power(disk(first), done, folder.path(), 1);

    // The processes end at one of the calls, but for power, and the next ones save.
    disk on(first);
    for (std::size_t k = 0; k < done.size(); ++k) {
        herring::tests::put_files(folder.path(), on.now());
        int const found = steps_of(folder.path());
        REQUIRE((found == 1 || found == 2));
        CAPTURE(k);
        std::vector<file_call> const again = calls_of_a_save(folder.path(), found);
        disk then = on; // of which power takes what the first processes wrote, too
        if (k % 3 == 0 || found == 2) lose_power(then, again, folder.path(), 1);
        on.apply(done[k]);
    }
}

TEST_CASE("checkpoint: a disk that is full on one rank fails the save on all, and the next one succeeds") {
    (void)known_weights(0);
    scratch_folder const folder;
    int const status = herring::launch(
        3,
        [&](world& w) {
            trainer train(w, tensors);
            start(train);
            run_step(train, 0);
            save(train, folder.path(), 1);
            files const first = herring::tests::files_of(folder.path());
            run_step(train, 1);
            rlimit usual{};
            ::getrlimit(RLIMIT_FSIZE, &usual);
            std::signal(SIGXFSZ, SIG_DFL); // would end the process
            for (int const odd : {1, 0})
                for (rlim_t const most : {rlim_t{0}, rlim_t{1000}, rlim_t{20'000}}) {
                    w.barrier(); // rank 0 has tidied
                    require(herring::tests::files_of(folder.path()) == first, "a failed save leaves nothing");
                    w.barrier();
                    rlimit small = usual;
                    small.rlim_cur = most;
                    if (w.rank() == odd) ::setrlimit(RLIMIT_FSIZE, &small);
                    require_error(herring::errc::no_resources,
                                  "(rank " + std::to_string(odd) + "): herring-2-2." + std::to_string(odd) +
                                      ": it cannot be written: File too large",
                                  [&] { save(train, folder.path(), 2); });
                    ::setrlimit(RLIMIT_FSIZE, &usual);
                }
            run_step(train, 2);
            save(train, folder.path(), 3);
            return 0;
        },
        apart(3));
    CHECK(status == 0);
    CHECK(steps_of(folder.path()) == 3);
}

TEST_CASE("checkpoint: a disk that refuses the very last call leaves a whole checkpoint: no rank removes its "
          "files") {
    (void)known_weights(0);
    scratch_folder const folder;
    for (int const refusals : {1, 100}) {
        herring::tests::put_files(folder.path(), {});
        CHECK(herring::launch_threads(
                  2,
                  [&](world& w) {
                      trainer train(w, tensors);
                      start(train);
                      run_step(train, 0);
                      save(train, folder.path(), 1);
                      run_step(train, 1);
                      w.barrier();
                      if (w.rank() == 0) {
                          calls.renamed = false;
                          calls.refusals = refusals;
                      }
                      w.barrier();
                      require_error(herring::errc::bad_argument,
                                    "(rank 0): the folder cannot be written to the disk (fsync)",
                                    [&] { save(train, folder.path(), 2); });
                      return 0;
                  },
                  apart(2)) == 0);
        calls.refusals = 0;
        CHECK(steps_of(folder.path()) == 2); // the file system has it, whatever the disk has
    }
}

TEST_CASE("checkpoint: ranks wait for a slow disk by all that they write: each its own weights, and the "
          "program's bytes") {
    struct {
        char const *ending, *what;
        std::size_t elements, user;
    } const cases[] = {{".sync2", "weights of each rank", 4 << 20, 0}, // of 16 MiB, beside the common ones
                       {".user", "bytes of the program's", 1000, std::size_t{80} << 20}};
    for (auto const& one : cases) {
        std::string const what = one.what;
        CAPTURE(what);
        scratch_folder const folder;
        auto options = apart(4);
        options.default_timeout = std::chrono::seconds(3); // and 5 for the bytes
        calls.slow_file = one.ending;
        calls.slow_for = std::chrono::seconds(5);
        CHECK(herring::launch_threads(
                  4,
                  [&](world& w) {
                      herring::reducer<float, herring::transport::inproc, herring::sync::every<8>,
                                       herring::update::average>
                          train(w, {{"one", one.elements}});
                      train.start(0,
                                  [](std::size_t, std::span<float> into) { std::ranges::fill(into, 1.0f); });
                      train.ready(0);
                      train.wait();
                      for (float& x : train.weights(0)) x += static_cast<float>(w.rank());
                      train.updated(0);
                      train.settle();
                      train.save(folder.path(), std::vector<std::byte>(w.rank() == 0 ? one.user : 0));
                      return 0;
                  },
                  options) == 0);
        calls.slow_file.clear();
    }
}

TEST_CASE("checkpoint: each rank reads its share of it, of weights as of the state") {
    scratch_folder const folder;
    auto const bytes_read = [] { // of files, by this process
        std::ifstream in("/proc/self/io");
        std::string name;
        std::size_t bytes = 0;
        in >> name >> bytes;
        require(name == "rchar:", "the bytes that this process has read");
        return bytes;
    };
    CHECK(herring::launch(
              4,
              [&](world& w) {
                  constexpr std::size_t elements = 1'000'003;
                  trainer train(w, {{"one", elements}});
                  start(train);
                  train.save(folder.path());
                  std::size_t const before = bytes_read();
                  train.load(folder.path());
                  std::size_t const share = elements * 3 * sizeof(float) / 4, read = bytes_read() - before;
                  require(read >= share && read < share + share / 5, std::to_string(share) +
                                                                         " bytes are a share, and " +
                                                                         std::to_string(read) + " were read");
                  return 0;
              },
              apart(4)) == 0);
}

TEST_CASE("checkpoint: a file system that is full, with another checkpoint on it") {
    (void)known_weights(0);
    scratch_folder const folder;
    if (::mount("herring", folder.path().c_str(), "tmpfs", 0, "size=160k") != 0) {
        MESSAGE("left out: a file system of a test's own takes root");
        return;
    }
    struct unmounted {
        std::string const& path;
        ~unmounted() { ::umount2(path.c_str(), MNT_DETACH); }
    } const afterwards{folder.path()};
    int const status = herring::launch(
        2,
        [&](world& w) {
            trainer train(w, tensors);
            start(train);
            run_step(train, 0);
            save(train, folder.path(), 1);
            run_step(train, 1);
            require_error(herring::errc::no_resources, "No space left on device",
                          [&] { save(train, folder.path(), 2); });
            require(train.load(folder.path()) == bytes_for(1), "the one before is there");
            return 0;
        },
        apart(2));
    CHECK(status == 0);
    CHECK(steps_of(folder.path()) == 1);
}

TEST_CASE("checkpoint: folders and files that a rank may not write, or read") {
    (void)known_weights(0);
    scratch_folder const folder;
    ::chmod(folder.path().c_str(), 0777);
    int const status = herring::launch(
        2,
        [&](world& w) {
            trainer train(w, tensors);
            start(train);
            run_step(train, 0);
            save(train, folder.path(), 1);
            std::string const part = folder.path() + "/herring-1-1.1";
            w.barrier();
            if (w.rank() == 0) {
                ::chmod(folder.path().c_str(), 0555);
                ::chmod(part.c_str(), 0);
            }
            w.barrier();
            if (::geteuid() == 0) require(::seteuid(65'534) == 0, "root is not nobody");
            require_error(herring::errc::bad_argument, "cannot be created: Permission denied",
                          [&] { save(train, folder.path(), 1); });
            require_error(herring::errc::bad_argument,
                          "herring-1-1.1: it cannot be opened: Permission denied",
                          [&] { train.load(folder.path()); });
            run_step(train, 1);
            require(weights_of(train) == known_weights(2), "training goes on");
            return 0;
        },
        apart(2));
    CHECK(status == 0);
    ::chmod(folder.path().c_str(), 0777);
    ::chmod((folder.path() + "/herring-1-1.1").c_str(), 0666);
    CHECK(steps_of(folder.path()) == 1);
}
