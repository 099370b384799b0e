// herring: the ensemble bench over ZeroMQ: the frontend has a ROUTER, each member a DEALER.
// SPDX-License-Identifier: Apache-2.0

#include "ensemble_harness.hpp"

#include <zmq.h>

namespace {

using namespace ensemble_bench;

constexpr std::int64_t deadline_ns = 1'000'000'000;

void check(bool good, char const* what) {
    if (!good) throw std::runtime_error(std::string(what) + ": " + zmq_strerror(zmq_errno()));
}

void serve(std::size_t member, options const& set, send_times& times) {
    while (times.go().load() == 0) ::usleep(1000);
    void* const context = zmq_ctx_new();
    void* const socket = zmq_socket(context, ZMQ_DEALER);
    char const name = static_cast<char>('a' + member);
    check(zmq_setsockopt(socket, ZMQ_IDENTITY, &name, 1) == 0, "identity");
    check(zmq_connect(socket, ("tcp://127.0.0.1:" + std::to_string(times.go().load())).c_str()) == 0,
          "connect");
    check(zmq_send(socket, "", 0, 0) == 0, "hello");
    std::vector<float> const row = logits(member, set.elements);
    std::vector<std::byte> reply(8 + format::row_bytes(set.elements)), request(8 + set.request_bytes);
    while (true) {
        int const bytes = zmq_recv(socket, request.data(), request.size(), 0);
        check(bytes == static_cast<int>(request.size()), "a request");
        std::uint64_t id = 0;
        std::memcpy(&id, request.data(), 8);
        std::memcpy(reply.data(), &id, 8);
        (void)format::encode(row, std::span(reply).subspan(8));
        times.sending(member, id);
        check(zmq_send(socket, reply.data(), reply.size(), 0) >= 0, "a reply");
    }
}

} // namespace

int main(int count, char** value) try {
    options const set(count, value);
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) { serve(m, set, times); });

    void* const context = zmq_ctx_new();
    void* const socket = zmq_socket(context, ZMQ_ROUTER);
    check(zmq_bind(socket, "tcp://127.0.0.1:*") == 0, "bind");
    char end[64] = {};
    std::size_t end_bytes = sizeof end;
    check(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, end, &end_bytes) == 0, "endpoint");
    times.go().store(static_cast<std::uint32_t>(std::strtoul(std::strrchr(end, ':') + 1, nullptr, 10)));
    char name[8];
    for (std::size_t m = 0; m < set.members; ++m) {
        check(zmq_recv(socket, name, sizeof name, 0) == 1, "a name");
        check(zmq_recv(socket, name, sizeof name, 0) == 0, "a hello");
    }

    folder mean(set.elements, set.members);
    std::size_t const bytes = format::row_bytes(set.elements);
    std::vector<std::vector<std::byte>> rows(set.members, std::vector<std::byte>(8 + bytes));
    std::vector<std::span<std::byte const>> views(set.members);
    std::vector<std::byte> request(8 + set.request_bytes);
    latencies result = measure(set, times, [&](std::uint64_t id) -> std::size_t {
        std::int64_t const until = now_ns() + deadline_ns;
        std::memcpy(request.data(), &id, 8);
        for (std::size_t m = 0; m < set.members; ++m) {
            char const to = static_cast<char>('a' + m);
            check(zmq_send(socket, &to, 1, ZMQ_SNDMORE) >= 0 &&
                      zmq_send(socket, request.data(), request.size(), 0) >= 0,
                  "send");
        }
        std::size_t in = 0;
        while (in < set.members) {
            zmq_pollitem_t item{socket, 0, ZMQ_POLLIN, 0};
            std::int64_t const left = until - now_ns();
            if (left <= 0 || zmq_poll(&item, 1, static_cast<long>(left / 1'000'000)) <= 0) break;
            char from = 0;
            check(zmq_recv(socket, &from, 1, 0) == 1, "from");
            auto& row = rows[static_cast<std::size_t>(from - 'a') % set.members];
            check(zmq_recv(socket, row.data(), row.size(), 0) == static_cast<int>(row.size()), "a row");
            std::uint64_t of = 0;
            std::memcpy(&of, row.data(), 8);
            if (of == id) ++in; // a row of an earlier request is dropped
        }
        for (std::size_t m = 0; m < set.members; ++m)
            views[m] = std::span<std::byte const>(rows[m]).subspan(8);
        mean.fold(views);
        return in;
    });
    int major = 0, minor = 0, patch = 0;
    zmq_version(&major, &minor, &patch);
    result.print(set, "zeromq",
                 (",\"version\":\"" + std::to_string(major) + '.' + std::to_string(minor) + '.' +
                  std::to_string(patch) + '"')
                     .c_str());
    return 0;
} catch (std::exception const& problem) {
    std::fprintf(stderr, "ensemble_zeromq: %s\n", problem.what());
    return 1;
}
