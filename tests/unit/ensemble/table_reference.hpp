// herring: an ensemble's rules once more, from the history alone, for comparing with ensemble/request_table.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_ENSEMBLE_TABLE_REFERENCE_HPP
#define HERRING_TESTS_UNIT_ENSEMBLE_TABLE_REFERENCE_HPP

#include "herring/ensemble/request_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <vector>

/// Keeps everything that ever happened, and finds each answer by reading it all again: no counters, no queues, no slots.
namespace herring::conformance::ensembles {

using namespace herring::detail::ensembles;

class table_reference {
  public:
    /// A request sent to a peer.
    struct sent {
        peer_index peer;
        std::uint64_t incarnation;
        std::int64_t at;
        bool hedge;
        bool answered = false, lost = false, withdrawn = false;
        bool owed() const { return !answered && !lost && !withdrawn; }
    };
    /// A member in a request.
    struct part {
        bool asked = false, slow = false, heard = false, judged = false, waiting = false;
        miss not_asked = miss::not_asked, gone = miss::none, why = miss::none;
        std::vector<sent> to;
        std::optional<contribution> row;
        std::int64_t row_at = -1, latency = -1, hedge_at = never_ns;
        peer_index heard_from = no_peer;
        bool open() const { return asked && !row && gone == miss::none; }
        bool owed() const {
            return std::any_of(to.begin(), to.end(), [](sent const& s) { return s.owed(); });
        }
    };
    struct request {
        std::uint64_t id = 0;
        bool expected = false;
        std::int64_t entered = 0, deadline = 0;
        std::size_t k = 0, target = 0;
        std::vector<part> parts;
        std::optional<outcome> how;
        std::int64_t decided = 0;
        bool by_time = false, released = false;
    };

    explicit table_reference(table_options const& options) : o(options) {
        if (o.credits == 0) o.credits = o.in_flight;
        for (std::size_t m = 0; m < options.members; ++m) add_member();
    }
    void add_member() {
        ++members;
        peers.resize(members * o.replicas);
        history.resize(members);
    }

    void admitted(peer_index p, std::uint64_t incarnation, std::int64_t now) {
        lost(p, now);
        peers[p] = {true, false, incarnation};
        if (o.replicas == 1) history[p].verdicts.clear(); // and nothing is awaited: it was lost
    }
    void draining(peer_index p) {
        if (!peers[p].connected) return;
        peers[p].draining = true;
        for (request& r : all) never_asked(r, p / o.replicas, miss::absent, clock);
    }
    void lost(peer_index p, std::int64_t now) {
        run_until(now);
        if (!peers[p].connected) return;
        peers[p] = {};
        ++history[p / o.replicas].lost;
        history[p / o.replicas].awaited.reset();
        drop_early(now, [&](early_row const& each) { return each.peer == p; });
        bool reachable = false;
        for (peer_index q = 0; q < peers.size(); ++q)
            reachable |= q / o.replicas == p / o.replicas && peers[q].connected;
        for (request& r : all) { // in the order of their beginning
            if (p / o.replicas >= r.parts.size()) continue;
            never_asked(r, p / o.replicas, miss::lost, now);
            part& m = r.parts[p / o.replicas];
            bool affected = r.expected && !reachable;
            for (sent& s : m.to)
                if (s.peer == p && s.owed()) affected = s.lost = true;
            if (!affected || r.how || !m.open() || m.owed()) continue;
            if (waits_for(r, m) && hedge(r, m, p / o.replicas, now)) continue;
            m.gone = miss::lost;
            settle(r, now);
        }
    }

    // Its index in `all`; −1: refused, as `why`.
    std::ptrdiff_t begin(request_table::request const& q, std::uint64_t id, std::int64_t now, outcome& why) {
        run_until(now);
        why = outcome::full;
        if (closed)
            why = outcome::closed;
        else if (q.expect && (q.expected_id >> 63 != 0 || live(q.expected_id) != nullptr))
            why = outcome::failed;
        else if (in_flight() == o.in_flight)
            why = outcome::busy;
        if (why != outcome::full) {
            if (why != outcome::failed) refusals.push_back(why);
            return -1;
        }
        request r;
        r.id = q.expect ? q.expected_id : id;
        r.expected = q.expect;
        r.entered = q.entered;
        r.deadline = q.deadline;
        r.k = q.k > 0 ? q.k : o.k;
        r.parts.resize(members);
        std::size_t can = 0;
        for (std::size_t m = 0; m < members; ++m) {
            part& each = r.parts[m];
            if (q.among != nullptr && !q.among->contains(m)) continue;
            ++r.target;
            bool there = false;
            peer_index const to = choose(m, no_peer, there);
            if (!there)
                each.not_asked = miss::absent;
            else if ((to == no_peer || others_wait_for(m)) && !q.expect) {
                each.not_asked = miss::no_credit;
                each.waiting = true;
                each.slow = on_probation(m);
                ++can;
            } else {
                each.asked = true;
                ++can;
            }
        }
        bool const hopeless = can < r.k || now >= r.deadline;
        for (std::size_t m = 0; m < members; ++m) {
            part& each = r.parts[m];
            if (hopeless) each.waiting = false;
            if (!each.asked) continue;
            if (hopeless) {
                each.asked = false;
                each.not_asked = now >= r.deadline ? miss::expired : miss::not_asked;
                continue;
            }
            each.slow = on_probation(m);
            if (q.expect) continue;
            bool there = false;
            peer_index const to = choose(m, no_peer, there);
            each.to.push_back({to, peers[to].incarnation, now, false});
            std::int64_t const delay = hedge_delay_of(m);
            if (delay != never_ns) each.hedge_at = now + delay;
            accrue();
        }
        all.push_back(r);
        std::ptrdiff_t const at = static_cast<std::ptrdiff_t>(all.size()) - 1;
        if (hopeless) decide(all.back(), outcome::failed, now, false);
        if (!q.expect) return at;
        std::vector<early_row> came; // in this order
        std::copy_if(early.begin(), early.end(), std::back_inserter(came),
                     [&](early_row const& each) { return each.id == q.expected_id; });
        std::erase_if(early, [&](early_row const& each) { return each.id == q.expected_id; });
        for (early_row const& each : came) {
            events& h = history[each.peer / o.replicas];
            if (now - each.came >= o.early_ns)
                ++h.early_expired;
            else if (row(each.peer, each.incarnation, each.id, each.place, each.check, now) ==
                     request_table::arrival::counted) {
                ++h.early_answered;
                continue;
            }
            returned.push_back(each);
        }
        return at;
    }
    void release(request& r) {
        r.released = true;
        for (part const& each : r.parts)
            if (each.row) peers[each.row->peer].full = false;
        if (r.expected) ended.push_back(r.id);
    }

    request_table::arrival row(peer_index p, std::uint64_t incarnation, std::uint64_t id, place_index place,
                               row_check check, std::int64_t now) {
        using arrival = request_table::arrival;
        run_until(now);
        bool const here = p < peers.size() && peers[p].connected && peers[p].incarnation == incarnation;
        if (here) peers[p].full = false;
        if (o.early_ns > 0 && !closed && here && id != 0 && id >> 63 == 0 && live(id) == nullptr)
            return keep({id, incarnation, now, p, place, check, 0});
        found const f = find(p, incarnation, id);
        if (f.is != arrival::counted) return f.is;
        std::size_t const member = p / o.replicas;
        request& r = *f.of;
        part& m = r.parts[member];
        std::optional<std::int64_t> const awaited = take_awaited(member, id);
        if (check != row_check::good) {
            ++history[member].refused[static_cast<std::size_t>(check)];
            answered_badly(r, m, miss::refused_row, now);
            return arrival::refused;
        }
        history[member].latencies.push_back(now - f.since);
        if (!r.how && m.open()) {
            m.row = contribution{static_cast<std::uint32_t>(member), p, place, incarnation};
            m.row_at = now;
            m.latency = now - r.entered;
            verdict(member, true);
            settle(r, now);
            return arrival::counted;
        }
        ++history[member].late;
        // On probation, not waited for, and the request ended before its time.
        if (r.how && m.why == miss::probation && !r.by_time && *r.how == outcome::partial)
            verdict(member, now < late_from(r));
        else if (awaited)
            verdict(member, now < *awaited);
        if (!r.released && m.latency < 0) m.latency = now - r.entered;
        return arrival::late;
    }
    void declined(peer_index p, std::uint64_t incarnation, std::uint64_t id, decline why, std::int64_t now) {
        run_until(now);
        found const f = find(p, incarnation, id);
        if (f.is != request_table::arrival::counted) return;
        (void)take_awaited(p / o.replicas, id);
        ++history[p / o.replicas].declined[static_cast<std::size_t>(why)];
        answered_badly(*f.of, f.of->parts[p / o.replicas],
                       why == decline::bad_row ? miss::refused_row : miss::declined, now);
    }

    void unsent(peer_index p, std::uint64_t incarnation, std::uint64_t id, std::int64_t now) {
        run_until(now);
        found const f = find(p, incarnation, id);
        if (f.is != request_table::arrival::counted) return;
        peers[p].full = true;
        if (!f.hedge) tokens -= std::min<std::uint64_t>(tokens, o.hedging.percent);
        part& m = f.of->parts[p / o.replicas];
        if (f.of->how || !m.open() || m.owed()) return;
        if (static_cast<std::size_t>(std::count_if(f.of->parts.begin(), f.of->parts.end(),
                                                   [](part const& each) { return each.row.has_value(); })) >=
            f.of->k)
            return answered_badly(*f.of, m, miss::no_credit, now);
        m.asked = false;
        m.waiting = true;
        m.not_asked = miss::no_credit;
        m.hedge_at = never_ns;
        for (sent& s : m.to) s.lost = true; // none is owed
    }
    void advance(std::int64_t now) { run_until(now); }
    std::int64_t next_event() const {
        std::int64_t first = never_ns;
        for (request const& r : all)
            if (!r.how) first = std::min(first, due(r));
        return first;
    }
    void cancel(request& r) { decide(r, outcome::cancelled, clock, false); }
    void close(std::int64_t now) {
        run_until(now);
        closed = true;
        for (request& r : all)
            if (!r.how) decide(r, outcome::closed, now, false);
    }
    // Hedges to be sent, in order; those that have become pointless are withdrawn.
    struct second {
        std::uint64_t id;
        peer_index to;
    };
    // Members that are asked now, for they have a credit again.
    std::vector<second> take_asks() {
        std::vector<second> out;
        for (std::size_t m = 0; m < members; ++m)
            for (request& r : all) {
                bool there = false;
                peer_index const to = choose(m, no_peer, there);
                if (to == no_peer) break;
                if (m >= r.parts.size() || !r.parts[m].waiting) continue;
                part& each = r.parts[m];
                each.waiting = false;
                each.asked = true;
                each.not_asked = miss::not_asked;
                each.to.push_back({to, peers[to].incarnation, clock, false});
                std::int64_t const delay = hedge_delay_of(m);
                if (delay != never_ns) each.hedge_at = clock + delay;
                accrue();
                out.push_back({r.id, to});
            }
        return out;
    }
    std::vector<second> take_hedges() {
        std::vector<second> out;
        for (auto const& [request_at, member, sent_at] : hedges) {
            request& r = all[request_at];
            part& m = r.parts[member];
            sent& s = m.to[sent_at];
            if (!s.owed()) continue;
            if (!r.how && m.open()) {
                out.push_back({r.id, s.peer});
                continue;
            }
            s.withdrawn = true;
            tokens += 100;
        }
        hedges.clear();
        return out;
    }

    bool on_probation(std::size_t m) const {
        bool on = false;
        std::uint32_t late = 0, in_time = 0;
        for (bool const good : history[m].verdicts) {
            late = good ? 0 : late + 1;
            in_time = good ? in_time + 1 : 0;
            if (!on && o.quorum.probation_after > 0 && late >= o.quorum.probation_after) {
                on = true;
                in_time = 0;
            } else if (on && in_time >= o.quorum.probation_left_after) {
                on = false;
                late = 0;
            } else if (on) {
                late = 0;
            }
        }
        return on;
    }
    std::size_t owed_by(peer_index p) const {
        std::size_t n = 0;
        if (p / o.replicas >= members) return 0;
        for (request const& r : all)
            if (p / o.replicas < r.parts.size())
                for (sent const& s : r.parts[p / o.replicas].to) n += s.peer == p && s.owed() ? 1 : 0;
        return n;
    }
    std::size_t in_flight() const {
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [](request const& r) { return !r.released; }));
    }
    std::int64_t ends(request const& r) const {
        std::vector<std::int64_t> rows;
        for (part const& m : r.parts)
            if (m.row) rows.push_back(m.row_at);
        if (rows.size() < r.k || o.quorum.grace_percent == quorum_tuning::to_the_deadline) return r.deadline;
        std::sort(rows.begin(), rows.end());
        std::int64_t const t_k = rows[r.k - 1] - r.entered;
        std::int64_t const grace = std::max<std::int64_t>(t_k * o.quorum.grace_percent / 100,
                                                          std::int64_t{o.quorum.least_grace_us} * 1000);
        return std::min(r.deadline, rows[r.k - 1] + grace);
    }
    // Until when a row is in time for probation.
    std::int64_t late_from(request const& r) const {
        std::int64_t const end = ends(r);
        std::vector<std::int64_t> rows;
        for (part const& m : r.parts)
            if (m.row) rows.push_back(m.row_at);
        if (rows.size() < r.k) return end;
        std::sort(rows.begin(), rows.end());
        return std::max(end,
                        std::min(r.deadline, rows[r.k - 1] + std::int64_t{o.quorum.late_after_us} * 1000));
    }
    void verdict(std::size_t m, bool in_time) {
        history[m].verdicts.push_back(in_time);
        history[m].awaited.reset();
    }
    // Of the one request whose row is still awaited: until when.
    std::optional<std::int64_t> take_awaited(std::size_t m, std::uint64_t id) {
        auto& awaited = history[m].awaited;
        if (!awaited || awaited->first != id) return {};
        std::int64_t const until = awaited->second;
        awaited.reset();
        return until;
    }
    void missed(std::size_t m, std::uint64_t id, std::int64_t until, std::int64_t now) {
        auto& awaited = history[m].awaited;
        if (until <= now || (awaited && awaited->second <= now)) verdict(m, false);
        if (until > now && !awaited) awaited = {id, until};
    }
    // What the history says of a member, as the table counts it.
    member_counters counters(std::size_t m) const {
        member_counters c;
        for (request const& r : all) {
            if (m >= r.parts.size()) continue;
            part const& each = r.parts[m];
            c.asked += each.asked ? 1 : 0;
            for (sent const& s : each.to) c.hedged += s.hedge && !s.withdrawn ? 1 : 0;
            if (!r.how) continue;
            c.answered += each.row ? 1 : 0;
            c.missed += each.asked && !each.row ? 1 : 0;
            ++c.missing[static_cast<std::size_t>(each.why)];
        }
        events const& h = history[m];
        c.late = h.late;
        c.stale = h.stale;
        c.duplicate = h.duplicate;
        c.lost = h.lost;
        c.early = h.early;
        c.early_answered = h.early_answered;
        c.early_evicted = h.early_evicted;
        c.early_expired = h.early_expired;
        std::copy(std::begin(h.declined), std::end(h.declined), c.declined);
        std::copy(std::begin(h.refused), std::end(h.refused), c.refused_rows);
        return c;
    }
    std::uint64_t ended_as(outcome how) const {
        std::uint64_t n = 0;
        for (request const& r : all) n += r.how == how ? 1 : 0;
        for (outcome const each : refusals) n += each == how ? 1 : 0;
        return n;
    }

    std::deque<request> all;      // in the order of their beginning
    std::vector<early_row> early; // kept, in the order in which they came
    std::vector<early_row> returned;

  private:
    struct connection {
        bool connected = false, draining = false;
        std::uint64_t incarnation = 0;
        bool full = false; // a request could not be sent; nothing has been answered or given back since
    };
    struct events {
        std::vector<bool> verdicts;                                    // in time or late
        std::optional<std::pair<std::uint64_t, std::int64_t>> awaited; // a request that is no verdict yet
        std::vector<std::int64_t> latencies;
        std::uint64_t early = 0, early_answered = 0, early_evicted = 0, early_expired = 0;
        std::uint64_t late = 0, stale = 0, duplicate = 0, lost = 0, declined[declines] = {},
                      refused[row_checks] = {};
    };
    struct found {
        request_table::arrival is;
        request* of = nullptr;
        std::int64_t since = 0;
        bool hedge = false;
    };
    struct pending {
        std::size_t request_at, member, sent_at;
    };

    // Those that are too old expire, whatever becomes of them else.
    template <class Which> void drop_early(std::int64_t now, Which&& which) {
        for (early_row const& each : early)
            if (which(each)) {
                history[each.peer / o.replicas].early_expired += now - each.came >= o.early_ns ? 1 : 0;
                returned.push_back(each);
            }
        std::erase_if(early, which);
    }
    request_table::arrival keep(early_row const& row) {
        using arrival = request_table::arrival;
        events& h = history[row.peer / o.replicas];
        auto const of_peer = [&](early_row const& each) { return each.peer == row.peer; };
        drop_early(row.came, [&](early_row const& each) {
            return of_peer(each) && row.came - each.came >= o.early_ns;
        });
        std::size_t const first = ended.size() > early_rows::recent ? ended.size() - early_rows::recent : 0;
        if (std::find(ended.begin() + static_cast<std::ptrdiff_t>(first), ended.end(), row.id) !=
            ended.end()) {
            ++h.stale;
            return arrival::stale;
        }
        for (early_row const& each : early)
            if (of_peer(each) && each.id == row.id) {
                ++h.duplicate;
                return arrival::duplicate;
            }
        if (std::count_if(early.begin(), early.end(), of_peer) == early_places) {
            auto const oldest = std::find_if(early.begin(), early.end(), of_peer);
            returned.push_back(*oldest);
            early.erase(oldest);
            ++h.early_evicted;
        }
        early.push_back(row);
        ++h.early;
        return arrival::early;
    }
    request* live(std::uint64_t id) {
        for (request& r : all)
            if (r.id == id && !r.released) return &r;
        return nullptr;
    }
    peer_index choose(std::size_t m, peer_index other, bool& there) const {
        peer_index best = no_peer;
        there = false;
        for (peer_index p = 0; p < peers.size(); ++p) {
            if (p / o.replicas != m || p == other || !peers[p].connected || peers[p].draining) continue;
            there = true;
            if (owed_by(p) < o.credits && !peers[p].full && (best == no_peer || owed_by(p) < owed_by(best)))
                best = p;
        }
        return best;
    }
    // In requests that were there before.
    bool others_wait_for(std::size_t m) const {
        return std::any_of(all.begin(), all.end(),
                           [&](request const& r) { return m < r.parts.size() && r.parts[m].waiting; });
    }
    found find(peer_index p, std::uint64_t incarnation, std::uint64_t id) {
        using arrival = request_table::arrival;
        if (p >= peers.size()) return {arrival::stale};
        std::size_t const member = p / o.replicas;
        events& h = history[member];
        if (!peers[p].connected || peers[p].incarnation != incarnation) {
            ++h.stale;
            return {arrival::stale};
        }
        peers[p].full = false;
        for (request& r : all)
            if (r.id == id && member < r.parts.size())
                for (sent& s : r.parts[member].to)
                    if (s.peer == p && s.owed()) {
                        s.answered = true;
                        return {arrival::counted, &r, s.at, s.hedge};
                    }
        if (request* const r = live(id); r != nullptr && member < r->parts.size()) {
            part& m = r->parts[member];
            if (r->expected && m.heard) {
                ++(m.heard_from == p ? h.duplicate : h.late);
                return {m.heard_from == p ? arrival::duplicate : arrival::late};
            }
            if (r->expected && m.asked) {
                m.heard = true;
                m.heard_from = p;
                return {arrival::counted, r, r->entered};
            }
            for (sent const& s : m.to)
                if (s.peer == p && !s.lost) {
                    ++h.duplicate;
                    return {arrival::duplicate};
                }
        }
        ++h.stale;
        return {arrival::stale};
    }
    void answered_badly(request& r, part& m, miss why, std::int64_t now) {
        if (r.how || !m.open() || m.owed()) return;
        m.gone = why;
        settle(r, now);
    }

    // Members on probation are waited for where fewer than k others have come or may come.
    static bool waits_for_slow(request const& r) {
        std::size_t others = 0;
        for (part const& m : r.parts) others += !m.slow && (m.row || m.open()) ? 1 : 0;
        return others < r.k;
    }
    static bool waits_for(request const& r, part const& m) {
        return m.open() && (!m.slow || waits_for_slow(r));
    }
    // A member without credit has no replica any more that is asked.
    void never_asked(request& r, std::size_t m, miss why, std::int64_t now) {
        bool there = false;
        if (m >= r.parts.size() || !r.parts[m].waiting) return;
        (void)choose(m, no_peer, there);
        if (there) return;
        r.parts[m].waiting = false;
        r.parts[m].not_asked = why;
        settle(r, now);
    }
    void settle(request& r, std::int64_t now) {
        std::size_t rows = 0, open = 0, waited_for = 0;
        for (part const& m : r.parts) rows += m.row ? 1 : 0;
        for (part& m : r.parts) {
            if (rows >= r.k) m.waiting = false;
            open += m.open() || m.waiting ? 1 : 0;
            waited_for += waits_for(r, m) ? 1 : 0;
        }
        if (rows == r.target)
            decide(r, outcome::full, now, false);
        else if (rows + open < r.k)
            decide(r, outcome::failed, now, false);
        else if (rows >= r.k && waited_for == 0)
            decide(r, outcome::partial, now, false);
    }
    void decide(request& r, outcome how, std::int64_t at, bool by_time) {
        bool const at_deadline = by_time && at == r.deadline;
        bool const slow_too = waits_for_slow(r);
        for (std::size_t i = 0; i < r.parts.size(); ++i) {
            part& m = r.parts[i];
            m.waiting = false;
            if (m.row)
                m.why = miss::none;
            else if (!m.asked)
                m.why = m.not_asked;
            else if (m.gone != miss::none)
                m.why = m.gone;
            else {
                m.why = m.slow && !slow_too ? miss::probation : at_deadline ? miss::expired : miss::late;
                if (by_time) missed(i, r.id, late_from(r), at);
            }
        }
        r.how = how;
        r.decided = at;
        r.by_time = by_time;
    }
    std::int64_t due(request const& r) const {
        std::int64_t first = ends(r);
        for (part const& m : r.parts) first = std::min(first, m.hedge_at);
        return first;
    }
    void run_until(std::int64_t now) {
        clock = std::max(clock, now);
        for (;;) {
            request* next = nullptr;
            for (request& r : all)
                if (!r.how && due(r) <= now && (next == nullptr || due(r) < due(*next))) next = &r;
            if (next == nullptr) return;
            std::int64_t const time = due(*next);
            if (time >= ends(*next)) {
                std::size_t rows = 0;
                for (part const& m : next->parts) rows += m.row ? 1 : 0;
                decide(*next, rows >= next->k ? outcome::partial : outcome::failed, time, true);
                continue;
            }
            for (std::size_t m = 0; m < next->parts.size(); ++m)
                if (part& each = next->parts[m]; each.hedge_at <= time) {
                    each.hedge_at = never_ns;
                    if (waits_for(*next, each) && now < ends(*next)) (void)hedge(*next, each, m, now);
                }
        }
    }

    std::int64_t hedge_delay_of(std::size_t m) const {
        std::vector<std::int64_t> const& known = history[m].latencies;
        std::size_t const first = std::max<std::size_t>(o.hedging.samples, 1);
        if (o.replicas == 1 || o.hedging.percent == 0 || known.size() < first) return never_ns;
        std::size_t const seen = first + (known.size() - first) / 32 * 32;
        std::vector<std::int64_t> last(known.begin() +
                                           static_cast<std::ptrdiff_t>(seen > 1024 ? seen - 1024 : 0),
                                       known.begin() + static_cast<std::ptrdiff_t>(seen));
        std::sort(last.begin(), last.end());
        std::size_t const rank = (last.size() * 95 + 99) / 100;
        return std::max(time_window::rounded(last[rank - 1]), std::int64_t{o.hedging.floor_us} * 1000);
    }
    void accrue() {
        tokens = std::min<std::uint64_t>(tokens + o.hedging.percent, std::uint64_t{o.hedging.burst} * 100);
    }
    bool hedge(request& r, part& m, std::size_t member, std::int64_t now) {
        if (o.replicas == 1 || o.hedging.percent == 0 || r.expected) return false;
        peer_index first = no_peer;
        for (sent const& s : m.to) {
            if (s.hedge && !s.lost) return false;
            if (!s.hedge && !s.lost) first = s.peer;
        }
        bool there = false;
        peer_index const to = choose(member, first, there);
        if (to == no_peer || tokens < 100) return false;
        tokens -= 100;
        m.to.push_back({to, peers[to].incarnation, now, true});
        hedges.push_back({static_cast<std::size_t>(&r == &all.back() ? all.size() - 1 : index_of(r)), member,
                          m.to.size() - 1});
        return true;
    }
    std::size_t index_of(request const& r) const {
        for (std::size_t i = 0; i < all.size(); ++i)
            if (&all[i] == &r) return i;
        return 0;
    }

    table_options o;
    std::size_t members = 0;
    std::vector<connection> peers;
    std::vector<events> history;
    std::vector<pending> hedges;
    std::vector<std::uint64_t> ended; // ids of expected requests that were released
    std::vector<outcome> refusals;
    std::uint64_t tokens = 0; // hundredths of a hedge
    std::int64_t clock = 0;
    bool closed = false;
};

} // namespace herring::conformance::ensembles

#endif // HERRING_TESTS_UNIT_ENSEMBLE_TABLE_REFERENCE_HPP
