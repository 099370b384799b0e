// herring: must not compile: work in gaps of a thread that has to move the bytes itself.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/in_gaps.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>

struct task {
    std::chrono::nanoseconds quantum() noexcept { return std::chrono::microseconds(50); }
    bool next() noexcept { return false; }
};
#ifdef HERRING_TWIN
using reducer = herring::reducer<float, herring::transport::tcp, herring::progress::thread>;
#else
using reducer = herring::reducer<float, herring::transport::tcp>;
#endif
void train(reducer& reduce, task& idle) {
    auto work = reduce.in_gaps(idle);
    work.wait();
}
