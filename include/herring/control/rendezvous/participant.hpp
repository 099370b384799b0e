// herring: every other rank's end of a star: finds rank 0, joins, asks it for each collective.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP
#define HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/link.hpp"
#include "herring/control/rendezvous/registration.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::star {

/// A rank other than 0. It has one connection, to rank 0, and until it is welcomed makes a new one whenever
/// that ends.
class member final : public star_end {
  public:
    HERRING_SETUP explicit member(settings&& from) : star_end(std::move(from)) {}
    ~member() { stop(); }

  private:
    friend class star_end;

    static constexpr std::chrono::seconds connect_time{2};
    static constexpr std::chrono::milliseconds longest_backoff{500};

    void begin() noexcept {}

    /// Rank 0 did not welcome this rank in time.
    HERRING_SETUP void give_up() {
        if (greeted_)
            wait_while_joining(is_.deadline + answer_time); // rank 0 may be about to say who is missing
        if (stage_ != stage::joining) return;
        stage_ = stage::refused;
        why_not_ = greeted_ && !missing_.empty()
                       ? failure::make(errc::timeout, is_.rank, missing_rank_, "join",
                                       admission::not_joined(missing_, is_.hub_text, is_.timeout))
                       : failure::make(errc::timeout, is_.rank, 0, "join", no_answer());
    }

    HERRING_SETUP std::string no_answer() const {
        if (!foreign_.empty())
            return text({"what answers on ", is_.hub_text, " is not Herring: it sent ", foreign_,
                         "; another program has that port: choose another one, the same on every rank"});
        if (greeted_)
            return text({"what listens on ", is_.hub_text, " takes connections and does not answer within ",
                         duration_text(is_.timeout),
                         "; see which program has that port (ss -ltnp on its machine): if it is rank 0, it "
                         "is stopped"});
        return text({"no answer from rank 0 on ", is_.hub_text, " within ", duration_text(is_.timeout),
                     last_trouble_.empty() ? "" : " (last: ", last_trouble_, last_trouble_.empty() ? "" : ")",
                     "; see whether rank 0 runs, whether the address is one of its machine and whether a "
                     "firewall is between"});
    }

    /// What is due at `now`; when something is due next.
    HERRING_SETUP time_point before_sleep(time_point now) {
        if (stage_ == stage::joined) return failed() ? time_point::max() : look_after_questions(now);
        if (stage_ != stage::joining || rank_0() != nullptr) return time_point::max();
        if (now >= retry_at_) connect();
        return rank_0() != nullptr ? rank_0()->until : retry_at_;
    }

    void overslept(clock::duration late) noexcept {
        if (accused_at_ != time_point{}) accused_at_ += late;
    }

    // ---- the connection -----------------------------------------------------------------------------------

    link* rank_0() noexcept { return links_.places()[0]; }

    bool occurred(std::uint64_t) noexcept { return false; } // nobody connects here

    HERRING_SETUP void connect() {
        endpoint const& to = is_.hub[next_hub_++ % is_.hub.size()];
        int const socket = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = socket < 0 ? -1 : 0;
        if (rc == 0) {
            tune(socket, is_.times.dead);
            rc = ::connect(socket, to.get(), to.size);
        }
        if (rc != 0 && errno != EINPROGRESS) {
            last_trouble_ = text({to.text(), ": ", std::strerror(errno)});
            if (socket >= 0) ::close(socket);
            bool const tried_all = next_hub_ % is_.hub.size() == 0;
            retry_in(tried_all ? backoff_ : std::chrono::milliseconds(0));
            return;
        }
        link& l = links_.open(socket, to.text(), EPOLLOUT);
        links_.places()[0] = &l;
        l.connecting = true;
        l.until = clock::now() + connect_time;
    }

    HERRING_SETUP void retry_in(std::chrono::milliseconds time) noexcept {
        retry_at_ = clock::now() + time;
        backoff_ = std::min(backoff_ * 3 / 2, longest_backoff);
    }

    /// Not over this connection; over another.
    HERRING_SETUP void give_up_on(link& l, std::initializer_list<text_part> trouble) noexcept {
        try {
            last_trouble_ = text(trouble);
        } catch (std::bad_alloc const&) {
            last_trouble_.clear(); // the deadline's error does without it
        }
        close_link(l);
        greeted_ = false;
        retry_in(backoff_);
    }

    HERRING_SETUP void connected(link& l) {
        int why = 0;
        socklen_t size = sizeof why;
        ::getsockopt(l.socket, SOL_SOCKET, SO_ERROR, &why, &size);
        endpoint const here = local_end(l.socket);
        // A socket that connects to its own port on loopback meets itself when nobody listens there.
        if (why == 0 && here.text() == l.from) why = ECONNREFUSED;
        if (why != 0) return give_up_on(l, {l.from, ": ", std::strerror(why)});
        l.connecting = false;
        l.until = time_point::max();
        l.rank = 0;
        local_address_ = here.address();
        thread_.rewatch(l.socket, links_.key_of(l), EPOLLIN);
        greeted_ = true;
        links_.send(l, message::hello, 0, own_hello().write());
    }

    HERRING_SETUP void stranger(link& l) {
        foreign_.clear();
        for (std::byte const b : l.in) {
            char const c = static_cast<char>(b);
            if (c < ' ' || c > '~' || foreign_.size() == 60) break;
            foreign_ += c;
        }
        foreign_ =
            foreign_.empty() ? std::string("bytes that are no control message") : text({"'", foreign_, "'"});
        give_up_on(l, {"what listens on ", l.from, " is not a Herring rank 0"});
    }
    void expired(link& l) { give_up_on(l, {"no answer from ", l.from}); }
    HERRING_SETUP void ended(link& l, int why) {
        if (stage_ == stage::joining)
            give_up_on(l, {l.from, " closed the connection", reason(why)});
        else
            lost(l, why);
    }

    // ---- what rank 0 says ---------------------------------------------------------------------------------

    HERRING_SETUP void heard(link& from, head const& h, std::span<std::byte const> body) {
        if (h.version != protocol_version && h.type != message::refuse)
            return nonsense(from, text({"version ", h.version, " of the protocol"}));
        reader in{body};
        switch (h.type) {
        case message::refuse:
            if (stage_ == stage::joining) refused(from, h.sequence == 1, body);
            return;
        case message::missing:
            missing_rank_ = static_cast<int>(in.number<std::uint32_t>());
            missing_ = in.text(in.rest.size());
            return;
        case message::welcome:
            if (stage_ == stage::joining) welcomed(from, in);
            return;
        case message::done:
            if (failed()) return;
            if (!asking_ || h.sequence != done_ + 1)
                return nonsense(from, "the end of a collective that this rank did not begin");
            result_.clear();
            result_.append(body);
            done_ = h.sequence;
            asking_ = false;
            lock_.notify_all();
            return;
        case message::fail:
            return heard_failure(from, body);
        case message::goodbye:
            left(from, 0);
            if (asking_) set_failure(gone(0, doing()));
            if (accused_at_ != time_point{}) set_failure(accused_); // there will be no verdict
            return;
        case message::alive:
            return;
        case message::ask:
            question_.store(static_cast<std::uint32_t>(h.sequence), std::memory_order_release);
            asked_ = true;
            answer();
            return;
        default:
            return nonsense(from, "a message that rank 0 never sends");
        }
    }

    HERRING_SETUP void refused(link& from, bool again, std::span<std::byte const> body) {
        if (!read_failure(body, why_not_))
            why_not_ = failure::make(errc::refused, is_.rank, 0, "join",
                                     "refused by rank 0, in words of another version");
        why_not_.reporter = is_.rank;
        if (again) return give_up_on(from, {why_not_.text});
        stage_ = stage::refused;
        lock_.notify_all();
    }

    HERRING_SETUP void welcomed(link& from, reader in) {
        if (in.rest.size() != most_body(message::welcome, at(is_.size)))
            return nonsense(from, "a welcome to a world of another size");
        job_ = in.number<std::uint64_t>();
        auto const time = [&in] {
            constexpr std::chrono::milliseconds most = never;
            return std::chrono::milliseconds(
                std::min(in.number<std::uint64_t>(), static_cast<std::uint64_t>(most.count())));
        };
        is_.asked.peer = time();
        is_.asked.call = time();
        if (is_.asked.peer < least_timeout || is_.asked.call < least_timeout)
            return nonsense(from, "times that no rank would choose");
        if (is_.asked.peer != is_.times.dead) is_.times = liveness::of(is_.asked.peer);
        tune(from.socket, is_.times.dead);
        node_ids_.clear();
        machine_ids_.clear();
        for (int r = 0; r < is_.size; ++r) {
            node_ids_.push_back(static_cast<int>(in.number<std::uint32_t>()));
            machine_ids_.push_back(static_cast<int>(in.number<std::uint32_t>()));
        }
        stage_ = stage::joined;
        lock_.notify_all();
    }

    // ---- collectives --------------------------------------------------------------------------------------

    HERRING_SETUP void take_part(message kind, std::uint64_t sequence, std::span<std::byte const> mine,
                                 time_point deadline) {
        if (left_[0]) return set_failure(gone(0, doing()));
        time_point const started = clock::now();
        asking_ = true;
        links_.send_all(kind, sequence, mine); // that is, to rank 0
        if (!wait_until_done(sequence, deadline)) {
            byte_buffer body;
            auto const late = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - started);
            append<std::uint64_t>(body, static_cast<std::uint64_t>(late.count()));
            links_.send_all(message::late, sequence, body);
            failure const silence = failure::make(errc::timeout, is_.rank, 0, doing(),
                                                  {"rank 0, which leads collectives, did not answer within ",
                                                   duration_text(clock::now() - started)});
            wait_for_verdict(silence);
            thread_.wake();
            if (!wait_until_done(sequence, clock::now() + is_.times.verdict)) set_failure(silence);
            if (!failed()) accused_at_ = {}; // it was done just in time
        }
        asking_ = false;
    }

    // ---- judgement ----------------------------------------------------------------------------------------

    HERRING_SETUP void accuse(failure const& why, bool certain) {
        if (rank_0() == nullptr || left_[0] || why.peer < 0)
            return set_failure(why); // nobody could tell more
        links_.send_all(message::accuse, certain ? 1 : 0, write_failure(why));
        wait_for_verdict(why);
    }

    HERRING_SETUP void stands(blocked_report const& mine) {
        links_.send_all(message::stands, 0, write_report(mine));
    }

    /// Rank 0 answers at once, with a question to everyone; if it does not, it is what is wrong.
    void wait_for_verdict(failure const& why) noexcept {
        if (accused_at_ != time_point{}) return;
        accused_ = why;
        accused_at_ = clock::now();
    }

    /// Answers what is asked, and looks whether rank 0 answers. When to do so again.
    time_point look_after_questions(time_point now) {
        time_point next = time_point::max();
        if (asked_) answer();
        if (asked_) next = now + std::chrono::milliseconds(10); // the caller answers by a word in memory
        if (accused_at_ == time_point{} || rank_0() == nullptr) return next;
        clock::duration const nothing = silent(*rank_0(), now);
        if (nothing >= is_.times.suspected || std::min(nothing, now - accused_at_) >= is_.times.answer) {
            set_failure(describe(accused_, {.rank = 0,
                                            .how = rank_state::silent,
                                            .before = accused_.peer == 0 ? -1 : is_.rank,
                                            .circle = false}));
            return next;
        }
        return std::min(next, now + is_.times.answer / 10);
    }

    void answer() {
        wait_report const said = own_wait_report();
        if (said.how == rank_state::unheard) return; // it looks around within 50 ms
        asked_ = false;
        links_.send_all(message::answer, question_.load(std::memory_order_relaxed), write_answer(said));
    }

    bool asking_ = false;  // a collective that this rank began is not done
    bool greeted_ = false; // rank 0 has this rank's hello
    bool asked_ = false;   // whom it waits for, and it has not answered
    failure accused_{};
    time_point accused_at_{}; // since when rank 0's word is awaited
    time_point retry_at_{};
    std::chrono::milliseconds backoff_{10};
    std::size_t next_hub_ = 0;
    std::string foreign_; // what somebody said who has rank 0's port and is not rank 0
    std::string missing_; // whom rank 0 waits for, as it said
    int missing_rank_ = -1;
};

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_RENDEZVOUS_PARTICIPANT_HPP
