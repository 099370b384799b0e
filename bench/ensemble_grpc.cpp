// herring: the ensemble bench over gRPC: members are servers, the frontend asks all of them through one completion queue.
// SPDX-License-Identifier: Apache-2.0

#include "ensemble_harness.hpp"

#include "ensemble.grpc.pb.h"

#include <chrono>
#include <memory>

#include <grpcpp/grpcpp.h>

namespace {

using namespace ensemble_bench;

/// An asynchronous server of one thread, which answers calls in the order in which they come.
void serve(std::size_t member, options const& set, send_times& times, int to_frontend) {
    model::AsyncService service;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&service);
    std::unique_ptr<grpc::ServerCompletionQueue> const queue = builder.AddCompletionQueue();
    std::unique_ptr<grpc::Server> const server = builder.BuildAndStart();
    if (!server || ::write(to_frontend, &port, sizeof port) != sizeof port)
        throw std::runtime_error("no server");

    std::vector<float> const scores = logits(member, set.elements);
    struct call {
        grpc::ServerContext context{};
        request in{};
        row out{};
        grpc::ServerAsyncResponseWriter<row> writer{&context};
        bool answered = false;
    };
    auto const wait_for_one = [&] {
        auto* const next = new call;
        service.Requestask(&next->context, &next->in, &next->writer, queue.get(), queue.get(), next);
    };
    wait_for_one();
    void* tag = nullptr;
    bool good = false;
    while (queue->Next(&tag, &good)) {
        auto* const now = static_cast<call*>(tag);
        if (now->answered || !good) {
            delete now;
            continue;
        }
        wait_for_one();
        std::string* const bytes = now->out.mutable_values();
        bytes->resize(format::row_bytes(set.elements));
        (void)format::encode(scores, std::as_writable_bytes(std::span(bytes->data(), bytes->size())));
        now->answered = true;
        times.sending(member, now->in.id());
        now->writer.Finish(now->out, grpc::Status::OK, now);
    }
}

} // namespace

int main(int count, char** value) try {
    options const set(count, value);
    send_times times;
    int ports[2];
    if (::pipe(ports) != 0) throw std::runtime_error("no pipe");
    // gRPC must not have been used before a fork.
    member_processes const members(set.members, [&](std::size_t m) { serve(m, set, times, ports[1]); });
    std::vector<std::unique_ptr<model::Stub>> stubs;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    for (std::size_t m = 0; m < set.members; ++m) {
        int port = 0;
        if (::read(ports[0], &port, sizeof port) != sizeof port)
            throw std::runtime_error("a member has no port");
        auto const channel = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                                       grpc::InsecureChannelCredentials(), arguments);
        if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)))
            throw std::runtime_error("a member cannot be reached");
        stubs.push_back(model::NewStub(channel));
    }

    folder mean(set.elements, set.members);
    grpc::CompletionQueue queue;
    struct reply {
        std::unique_ptr<grpc::ClientContext> context{};
        row in{};
        grpc::Status status{};
        std::unique_ptr<grpc::ClientAsyncResponseReader<row>> reader{};
    };
    std::vector<reply> replies(set.members);
    std::vector<std::span<std::byte const>> views(set.members);
    std::string const input(set.request_bytes, 'x');
    latencies result = measure(set, times, [&](std::uint64_t id) -> std::size_t {
        auto const deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
        request ask;
        ask.set_id(id);
        ask.set_input(input);
        for (std::size_t m = 0; m < set.members; ++m) {
            reply& r = replies[m];
            r.context = std::make_unique<grpc::ClientContext>();
            r.context->set_deadline(deadline);
            r.reader = stubs[m]->Asyncask(r.context.get(), ask, &queue);
            r.reader->Finish(&r.in, &r.status, &r);
        }
        std::size_t in = 0;
        for (std::size_t m = 0; m < set.members; ++m) {
            void* tag = nullptr;
            bool good = false;
            if (!queue.Next(&tag, &good)) break;
            in += good && static_cast<reply*>(tag)->status.ok();
        }
        for (std::size_t m = 0; m < set.members; ++m)
            views[m] = std::as_bytes(std::span(replies[m].in.values().data(), replies[m].in.values().size()));
        mean.fold(views);
        return in;
    });
    result.print(set, "grpc", (",\"version\":\"" + grpc::Version() + '"').c_str());
    return 0;
} catch (std::exception const& problem) {
    std::fprintf(stderr, "ensemble_grpc: %s\n", problem.what());
    return 1;
}
