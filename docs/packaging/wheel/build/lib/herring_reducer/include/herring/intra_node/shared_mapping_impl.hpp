// herring: set-up code of shared_mapping.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_SHARED_MAPPING_IMPL_HPP
#define HERRING_INTRA_NODE_SHARED_MAPPING_IMPL_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/control/world.hpp"
#include "herring/intra_node/shared_mapping.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/free_memory.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/local_socket.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

// A rank's part of the first all_gather.
struct shared_mapping::introduction {
    std::uint64_t bytes = 0;
    std::uint64_t random = 0; // part of the socket's name, beside the rank
    memory_need memory{};     // control group and free memory; its bytes are computed later
};

// State of the construction.
struct shared_mapping::building {
    world& all;
    std::chrono::milliseconds timeout;
    std::size_t bytes = 0;
    std::size_t whole_pages = 0;
    std::vector<std::uint64_t> randoms{}; // of the node's ranks
    descriptor socket{};
    descriptor file{};

    // Runs one step on this rank. Then all ranks continue, or all throw the same failure.
    template <class Step> HERRING_SETUP void agree(Step&& step) {
        tell(failure_of(all.rank(), "shared_mapping", step), {});
    }

    HERRING_SETUP void exchange_names(std::size_t wanted) {
        introduction me{wanted, random_bits()};
        me.memory.group = memory_group();
        if (wanted >= least_to_ask_for) me.memory.free = free_memory();
        given_by_all const answers = tell(failure_of(all.rank(), "shared_mapping",
                                                     [&] {
                                                         if (all.local_rank() != 0) listen(me.random);
                                                     }),
                                          std::as_bytes(std::span(&me, 1)));
        fixed_array<memory_need> needs(answers.size());
        fixed_array<std::uint64_t> largest(static_cast<std::size_t>(all.nodes())); // largest request per node
        for (int rank = 0; rank < all.size(); ++rank) {
            introduction theirs;
            if (!wire::read_value(answers[static_cast<std::size_t>(rank)], theirs))
                give_up(errc::mismatch, rank,
                        {"it is in another collective; let every rank make the same calls in the same "
                         "order"});
            std::uint64_t& most = largest[static_cast<std::size_t>(all.topology().node(rank))];
            if (theirs.bytes > most) most = theirs.bytes;
            needs[static_cast<std::size_t>(rank)] = theirs.memory;
            if (all.topology().node(rank) == all.node()) randoms.push_back(theirs.random);
        }
        bytes = largest[static_cast<std::size_t>(all.node())];
        // Each rank fills its share. The kernel grants memory that it lacks, and kills a process later.
        for (int rank = 0; rank < all.size(); ++rank) {
            int const node = all.topology().node(rank);
            needs[static_cast<std::size_t>(rank)].bytes =
                largest[static_cast<std::size_t>(node)] /
                static_cast<std::size_t>(all.topology().local_size(node));
        }
        failure const poor =
            memory_failure({needs.data(), needs.size()}, all.rank(), "shared_mapping", "shared memory");
        if (poor.what != errc::ok) throw error(poor);
        std::size_t const page = page_bytes();
        whole_pages = bytes / page + (bytes % page != 0);
    }

    HERRING_SETUP given_by_all tell(failure const& how, std::span<std::byte const> mine) {
        return all_or_none(all.rank(), "shared_mapping", how, mine,
                           [this](std::span<std::byte const> bytes_of_mine) {
                               return all.all_gather(bytes_of_mine, timeout);
                           });
    }

    [[noreturn]] HERRING_SETUP void give_up(errc what, int peer,
                                            std::initializer_list<text_part> text) const {
        throw error(what, all.rank(), peer, "shared_mapping", text);
    }
    [[noreturn]] HERRING_SETUP void give_up_errno(char const* call,
                                                  std::initializer_list<text_part> advice) const {
        give_up(errc::no_resources, -1, {call, ": ", std::strerror(errno), "; ", text(advice)});
    }
    int first_rank() const { return all.topology().members(all.node())[0]; }

    // Returns the abstract name of a socket: such a name has no file, and ends with the socket.
    HERRING_SETUP std::string name_of(int local_rank, std::uint64_t random) const {
        char name[64];
        std::snprintf(name, sizeof name, "herring.%016llx.%d.%016llx",
                      static_cast<unsigned long long>(all.job()), local_rank,
                      static_cast<unsigned long long>(random));
        return name;
    }

    // Pending connections of a socket, also of unknown peers; net.core.somaxconn may be less.
    static constexpr int most_waiting = 4096;

    HERRING_SETUP void listen(std::uint64_t random) {
        socket = listen_locally(name_of(all.local_rank(), random), most_waiting);
        if (socket.get() < 0)
            give_up_errno("an abstract unix socket", {"raise the limit of open files (ulimit -n), or check "
                                                      "that AF_UNIX sockets are allowed here"});
    }

    static constexpr std::size_t least_to_ask_for = std::size_t{1} << 20;

    HERRING_SETUP void create_and_send() {
        if (bytes == 0) return;
        std::string const needed = text({"this node's ranks need ", bytes_text(bytes), " of shared memory"});
        char const* const cure = "reduce a smaller layout, put fewer ranks on the node, or ";
        if (std::uint64_t const most = file_size_limit(); bytes > most || whole_pages * page_bytes() > most)
            give_up(errc::no_resources, -1,
                    {needed, ", the limit of file sizes is ", bytes_text(most), "; ", cure,
                     "raise it (ulimit -f)"});
        file = descriptor(::memfd_create("herring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (file.get() < 0)
            give_up_errno("memfd_create", {needed, "; raise the limit of open files (ulimit -n)"});
        int truncated = 0;
        do truncated = ::ftruncate(file.get(), static_cast<off_t>(whole_pages * page_bytes()));
        while (truncated != 0 && errno == EINTR);
        if (truncated != 0) give_up_errno("ftruncate", {needed, "; ", cure, "free memory"});
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        for (int local = 1; local < all.local_size(); ++local) send_to(local);
    }

    // Sends the file without waiting: the other end's queue takes connection and packet before `accept`.
    HERRING_SETUP void send_to(int local_rank) {
        int const peer = all.topology().rank_of(all.node(), local_rank);
        descriptor const to =
            dial_locally(name_of(local_rank, randoms[static_cast<std::size_t>(local_rank)]));
        if (to.get() < 0 && errno == ECONNREFUSED) // if the peer died, the following all_gather reports that
            give_up(errc::unreachable, peer,
                    {"nobody listens on the socket that it announced; ranks of one node must share a network "
                     "namespace: give ranks that do not different values of HERRING_NODE"});
        if (to.get() < 0 && errno == EAGAIN)
            give_up(errc::unreachable, peer,
                    {"could not hand it the shared memory: other processes have filled the queue of its "
                     "socket; look for one that connects to names like @herring. of /proc/net/unix"});
        if (to.get() >= 0 && !same_user(to.get()))
            give_up(errc::refused, peer,
                    {"a process of another user listens in its place, and gets no shared memory; ranks of a "
                     "node must run as one user"});
        std::array<std::uint64_t, 2> const known = token();
        if (to.get() < 0 || !send_packet(to.get(), std::as_bytes(std::span(known)), file.get()))
            give_up(errc::unreachable, peer,
                    {"could not hand it the shared memory: ", std::strerror(errno),
                     "; the limit of open files, or of descriptors in flight, may be reached (ulimit -n)"});
    }

    // Numbers that only ranks of this node know.
    std::array<std::uint64_t, 2> token() const noexcept { return {all.job(), randoms[0]}; }

    // Receives the file without waiting: the first rank has sent by now. Unknown peers may have connected.
    HERRING_SETUP void receive() {
        for (int i = 0; i <= most_waiting && file.get() < 0; ++i) {
            descriptor const from(
                forks::own(::accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
            if (from.get() < 0 && errno != EINTR) break;
            if (from.get() < 0 || !same_user(from.get())) continue;
            std::array<std::uint64_t, 2> said{};
            packet got = receive_packet(from.get(), std::as_writable_bytes(std::span(said)));
            if (got.bytes == sizeof said && said == token()) file = std::move(got.passed);
        }
        if (file.get() < 0) // the file was sent, but this process could not receive it
            give_up(errc::no_resources, -1,
                    {"the descriptor of the shared memory did not arrive; raise the limit of open files "
                     "(ulimit -n)"});
    }

    static constexpr std::size_t allocation = std::size_t{16} << 20;

    HERRING_SETUP mapped_pages map() {
        if (bytes == 0) return {};
        if (all.local_rank() != 0) receive();
        socket = descriptor();
        std::size_t const page = page_bytes();
        struct ::stat about {};
        if (::fstat(file.get(), &about) != 0 ||
            static_cast<std::uint64_t>(about.st_size) != whole_pages * page)
            give_up(errc::mismatch, first_rank(), {"the shared memory has another size than agreed"});
        // Allocates this rank's share of the pages, from its core.
        auto const local = static_cast<std::size_t>(all.local_rank());
        auto const ranks = static_cast<std::size_t>(all.local_size());
        std::size_t const begin = whole_pages * local / ranks * page,
                          end = whole_pages * (local + 1) / ranks * page;
        int allocated = 0;
        // In pieces: a signal makes a call start again, and a profiler sends a hundred a second.
        for (std::size_t at = begin; at < end && allocated == 0; at += std::min(end - at, allocation)) do
                allocated = ::fallocate(file.get(), 0, static_cast<off_t>(at),
                                        static_cast<off_t>(std::min(end - at, allocation)));
            while (allocated != 0 && errno == EINTR);
        if (allocated != 0 && errno != EOPNOTSUPP)
            give_up_errno("fallocate",
                          {"this node's ranks need ", bytes_text(bytes),
                           " of shared memory; reduce a smaller layout, put fewer ranks on the node, or "
                           "raise the memory limit of the machine's job, container or control group"});
        mapped_pages mapped(file.get(), whole_pages * page);
        if (mapped.data() == nullptr)
            give_up_errno("mmap",
                          {"this node's ranks need ", bytes_text(bytes),
                           " of address space; raise the limit (ulimit -v) or reduce a smaller layout"});
        return mapped;
    }
};

HERRING_SEPARABLE shared_mapping::shared_mapping(world& all, std::size_t bytes)
    : shared_mapping(all, bytes, all.default_timeout()) {}

HERRING_SEPARABLE shared_mapping::shared_mapping(world& all, std::size_t bytes,
                                                 std::chrono::milliseconds timeout) {
    building steps{all, timeout};
    steps.exchange_names(bytes);
    steps.agree([&] {
        if (all.local_rank() == 0) steps.create_and_send();
    });
    steps.agree([&] { mapping_ = steps.map(); });
    bytes_ = steps.bytes;
}

HERRING_SEPARABLE void shared_mapping::prefault(std::size_t offset, std::size_t size) const noexcept {
    if (offset >= bytes_) return;
    if (size > bytes_ - offset) size = bytes_ - offset;
    if (mapping_.prefault(offset, size, true)) return;
    std::size_t const page = page_bytes();
    // Writes without changing anything: other ranks may use the memory.
    for (std::size_t at = offset / page * page; at < offset + size; at += page)
        __atomic_fetch_or(reinterpret_cast<unsigned char*>(mapping_.data() + at),
                          static_cast<unsigned char>(0), __ATOMIC_RELAXED);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_INTRA_NODE_SHARED_MAPPING_IMPL_HPP
