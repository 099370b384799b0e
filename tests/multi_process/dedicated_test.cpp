// herring: servers of their own as processes that are told their role by HERRING_ROLE, over sockets, on cores of their own.
// SPDX-License-Identifier: Apache-2.0
#include "herring/serve.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace herring;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

/// Runs `function(world&)` in a process for each letter: 's' is a server, others are workers on nodes of these names. Returns how
/// many ended in an error.
template <class Function> int joined(std::string const& ranks, Function const& function) {
    std::string const address = "127.0.0.1:" + std::to_string(free_port());
    std::vector<pid_t> processes;
    std::fflush(nullptr);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        pid_t const pid = ::fork();
        if (pid == 0) {
            int status = 0;
            try {
                ::setenv("HERRING_RANK", std::to_string(r).c_str(), 1);
                ::setenv("HERRING_SIZE", std::to_string(ranks.size()).c_str(), 1);
                ::setenv("HERRING_ADDR", address.c_str(), 1);
                ::setenv("HERRING_NODE", std::string(1, ranks[r]).c_str(), 1);
                ::setenv("HERRING_RATE", ranks[r] == 's' ? "20000" : "10000", 1);
                if (ranks[r] == 's') ::setenv("HERRING_ROLE", "server", 1);
                world w = join();
                function(w);
            } catch (std::exception const& why) {
                std::fprintf(stderr, "rank %zu: %s\n", r, why.what());
                status = 1;
            }
            ::_exit(status);
        }
        processes.push_back(pid);
    }
    int wrong = 0;
    for (pid_t const pid : processes) {
        int raw = 0;
        ::waitpid(pid, &raw, 0);
        wrong += !WIFEXITED(raw) || WEXITSTATUS(raw) != 0;
    }
    return wrong;
}

template <class Placement> void train(world& w) {
    using trainer =
        reducer<float, transport::tcp, intra_node::shared_memory, Placement, optimizer::adamw, update::sum>;
    layout const tensors{{"embedding", 300'001}, {"bias", 7}, {"head", 65'536}};
    if (w.role() == role::server) return serve<trainer>(w, tensors);
    trainer train(w, tensors);
    train.start(0, [](std::size_t i, std::span<float> into) {
        std::fill(into.begin(), into.end(), static_cast<float>(i));
    });
    for (int step = 0; step < 3; ++step) {
        for (std::size_t i = train.size(); i-- > 0;) {
            std::span<float> const t = train.tensor(i);
            std::fill(t.begin(), t.end(), static_cast<float>(w.worker() + 1));
            train.ready(i);
        }
        train.wait();
    }
    // AdamW's first steps of equal gradients: about the rate each, whatever the gradients are.
    for (std::size_t i = 0; i < train.size(); ++i)
        for (float const x : train.weights(i)) require(x == train.weights(i)[0], "weights alike");
    require(train.weights(0)[0] < 0, "weights went down");
    std::vector<float> all(1000, static_cast<float>(w.worker())), mine(train.owned(1000).elements);
    reduce_scatter(train, all, mine);
    for (float const x : mine) require(x == static_cast<float>(w.workers() * (w.workers() - 1) / 2), "a sum");
}

} // namespace

TEST_CASE("dedicated: processes that are told their role by HERRING_ROLE train, and all end in order") {
    CHECK(joined("aabss", train<placement::dedicated>) == 0);
    CHECK(joined("abcs", train<placement::optimal>) == 0);
}

TEST_CASE("dedicated: a server on a core of its own, and a line about its load") {
    CHECK(joined("as", [](world& w) {
              using reducer = herring::reducer<float, transport::tcp, placement::dedicated, update::sum>;
              layout const tensors{{"a", 1'000'000}};
              if (w.role() == role::server) {
                  ::cpu_set_t may;
                  CPU_ZERO(&may);
                  require(::sched_getaffinity(0, sizeof may, &may) == 0, "cores");
                  int core = 0;
                  while (!CPU_ISSET(static_cast<std::size_t>(core), &may)) ++core;
                  char name[] = "/tmp/herring-report-XXXXXX";
                  int const file = ::mkstemp(name), before = ::dup(2);
                  ::dup2(file, 2);
                  serve<reducer>(w, tensors, {.pin = core, .report = true});
                  ::dup2(before, 2);
                  char line[400] = {};
                  require(::pread(file, line, sizeof line - 1, 0) > 0, "a line");
                  ::unlink(name);
                  std::string const due =
                      "herring: server 0 of 1 (rank 1) combines 4000000 of 4000000 bytes a step (100.0 %), "
                      "from 1 nodes: 4000000 bytes come in, 4000000 go out; on core " +
                      std::to_string(core) + "\n";
                  require(line == due, line);
                  require(::sched_getaffinity(0, sizeof may, &may) == 0 && CPU_COUNT(&may) == 1, "one core");
                  return;
              }
              reducer reduce(w, tensors);
              reduce.ready(0);
              reduce.wait();
          }) == 0);
}
