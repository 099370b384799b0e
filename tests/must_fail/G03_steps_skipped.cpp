// herring: must not compile: work in gaps with a sync policy that skips steps, which have two waits or none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/in_gaps.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>

struct task {
    std::chrono::nanoseconds quantum() noexcept { return std::chrono::microseconds(50); }
    bool next() noexcept { return false; }
};
#ifdef HERRING_TWIN
using how_often = herring::sync::every_step;
#else
using how_often = herring::sync::every<4>;
#endif
using reducer = herring::reducer<float, herring::transport::tcp, herring::progress::thread, how_often>;
void train(reducer& reduce, task& idle) {
    auto work = reduce.in_gaps(idle);
    work.wait();
}
