// herring: random scripts in virtual time for ensemble/request_table.hpp, compared with the reference after every event.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_ENSEMBLE_TABLE_SCRIPTS_HPP
#define HERRING_TESTS_UNIT_ENSEMBLE_TABLE_SCRIPTS_HPP

#include "unit/ensemble/table_reference.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace herring::conformance::ensembles {

/// One script: what is wrong first, or nothing.
class table_script {
  public:
    table_script(table_options const& options, std::uint64_t seed, bool traced = false)
        : o_(options), state_(seed * 0x9e3779b97f4a7c15u | 1), table_(options), reference_(options),
          traced_(traced) {
        if (o_.credits == 0) o_.credits = o_.in_flight;
    }

    /// What the script has met, so that a test sees that it met everything.
    struct seen {
        std::uint64_t outcomes[herring::outcomes] = {}, whys[misses] = {}, arrivals[6] = {}, hedges = 0,
                      later = 0, withdrawn = 0, probations = 0;
    };

    std::string run(int events, seen& met) {
        for (peer_index p = 0; p < o_.members * o_.replicas; ++p)
            if (die(8) != 0) admit(p);
        for (int i = 0; i < events && wrong_.empty(); ++i) {
            event();
            look(met);
        }
        if (wrong_.empty()) finish();
        for (int i = 0; i < herring::outcomes; ++i) met.outcomes[i] += table_.totals().ended[i];
        for (int i = 0; i < 6; ++i) met.arrivals[i] += arrivals_[i];
        return wrong_.empty() ? std::string() : trace_ + wrong_;
    }

  private:
    using arrival = request_table::arrival;
    struct live_request {
        slot_index slot;
        std::size_t at; // in the reference
        bool told = false;
    };

    std::uint64_t random() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return state_ >> 33;
    }
    std::size_t die(std::size_t sides) { return static_cast<std::size_t>(random() % sides); }

    // `what` may be a function that returns the words: words cost more than all else.
    template <class Words> void expect(bool holds, Words const& what) {
        if (holds || !wrong_.empty()) return;
        if constexpr (std::is_invocable_v<Words const&>)
            wrong_ = "WRONG: " + what();
        else
            wrong_ = std::string("WRONG: ") + what;
    }
    template <class... Pieces> void note(Pieces const&... pieces) {
        if (!traced_) return;
        trace_ += std::to_string(now_);
        (trace_.append(" ").append(word(pieces)), ...);
        trace_ += "\n";
    }
    static std::string word(char const* piece) { return piece; }
    template <std::integral Number> static std::string word(Number piece) { return std::to_string(piece); }

    void admit(peer_index p) {
        note("admit", p);
        incarnation_.resize(std::max<std::size_t>(incarnation_.size(), p + 1));
        incarnation_[p] = ++last_incarnation_;
        table_.admitted(p, last_incarnation_, now_);
        reference_.admitted(p, last_incarnation_, now_);
    }
    void event() {
        // Times meet often: grains of 50 µs, and steps of a nanosecond about them.
        static constexpr std::int64_t steps[] = {0, 0, 0, 1, -1, 50'000, 50'000, 100'000, 200'000};
        now_ = std::max(now_, now_ + steps[die(9)]);
        std::size_t const what = die(100);
        peer_index const p = static_cast<peer_index>(die(o_.members * o_.replicas));
        if (what < 25)
            begin();
        else if (what < 70)
            answer(p, what < 64);
        else if (what < 73)
            admit(p);
        else if (what < 75) {
            note("lost", p);
            table_.lost(p, now_);
            reference_.lost(p, now_);
        } else if (what < 76) {
            note("draining", p);
            table_.draining(p);
            reference_.draining(p);
        } else if (what < 86) {
            note("advance");
            table_.advance(now_);
            reference_.advance(now_);
        } else if (what < 88 && !live_.empty()) {
            live_request const& r = live_[die(live_.size())];
            note("cancel", r.at);
            bool const open = !reference_.all[r.at].how;
            expect(table_.cancel(r.slot, reference_.all[r.at].id) == open, "cancel");
            if (open) reference_.cancel(reference_.all[r.at]);
        } else if (what < 98) {
            release();
        } else if (what == 98 && o_.members < 7) {
            note("add_member");
            ++o_.members;
            table_.add_member();
            reference_.add_member();
        } else if (die(20) == 0) {
            note("close");
            table_.close(now_);
            reference_.close(now_);
        }
    }
    void begin() {
        request_table::request q;
        q.entered = now_ - static_cast<std::int64_t>(die(2) * 10'000);
        q.deadline = now_ + static_cast<std::int64_t>(die(12)) * 100'000;
        if (die(3) == 0) q.k = die(o_.members + 2);
        member_set among;
        if (die(4) == 0) {
            for (std::size_t m = 0; m < o_.members; ++m)
                if (die(2) == 0) among.insert(m);
            q.among = &among;
        }
        if (die(6) == 0) {
            q.expect = true;
            q.expected_id = die(3) == 0 ? die(6) : early_id();
            first_early_ += die(2);
        }
        auto const b = table_.begin(q, now_);
        outcome why = outcome::full;
        std::ptrdiff_t const at = reference_.begin(q, b.id, now_, why);
        note("begin", at, "deadline", q.deadline, "k", q.k);
        expect(b.refused == why, "begin is refused otherwise");
        if (at < 0 || b.refused != outcome::full) return;
        live_.push_back({b.slot, static_cast<std::size_t>(at)});
        ids_.push_back(reference_.all[static_cast<std::size_t>(at)].id);
        expect(b.id == ids_.back(), "id");
        std::vector<peer_index> peers;
        for (auto const& each : reference_.all[static_cast<std::size_t>(at)].parts)
            if (!each.to.empty()) peers.push_back(each.to.front().peer);
        auto const asked = table_.asked(b.slot);
        expect(std::vector<peer_index>(asked.begin(), asked.end()) == peers, "others are asked");
        for (peer_index const p : peers) sent(p, b.id);
    }
    // A request is sent to a peer, or there is no room in its lane.
    void sent(peer_index p, std::uint64_t id) {
        if (die(12) != 0) return;
        note("unsent", p, "of", id & 0xffff);
        table_.unsent(p, incarnation_[p], id, now_);
        reference_.unsent(p, incarnation_[p], id, now_);
    }
    void answer(peer_index p, bool row) {
        if (ids_.empty()) return;
        std::uint64_t const id = die(25) == 0 ? random()
                                 : row && die(5) == 0
                                     ? early_id()
                                     : ids_[ids_.size() - 1 - die(std::min<std::size_t>(ids_.size(), 6))];
        incarnation_.resize(std::max<std::size_t>(incarnation_.size(), p + 1));
        std::uint64_t const from = die(30) == 0 ? random() % 8 : incarnation_[p];
        note(row ? "row" : "decline", p, "of", id & 0xffff);
        if (!row) {
            decline const why = static_cast<decline>(die(declines));
            table_.declined(p, from, id, why, now_);
            reference_.declined(p, from, id, why, now_);
            return;
        }
        row_check const check =
            die(12) == 0 ? static_cast<row_check>(1 + die(row_checks - 1)) : row_check::good;
        place_index const place = static_cast<place_index>(random());
        arrival const a = table_.row(p, from, id, place, check, now_);
        arrival const b = reference_.row(p, from, id, place, check, now_);
        ++arrivals_[static_cast<std::size_t>(a)];
        expect(a == b, [&] {
            return "arrival " + std::to_string(static_cast<int>(a)) + ", by the history " +
                   std::to_string(static_cast<int>(b));
        });
    }
    void release() {
        for (std::size_t i = 0; i < live_.size(); ++i) {
            live_request const r = live_[i];
            if (!reference_.all[r.at].how || die(2) == 0) continue;
            note("release", r.at);
            std::vector<contribution> rows;
            for (auto const& each : reference_.all[r.at].parts)
                if (each.row) rows.push_back(*each.row);
            std::size_t given = 0;
            table_.release(r.slot, [&](peer_index p, place_index place) {
                expect(given < rows.size() && rows[given].peer == p && rows[given].place == place,
                       "another place is given back");
                ++given;
            });
            expect(given == rows.size(), "places are not given back");
            reference_.release(reference_.all[r.at]);
            live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
            return;
        }
    }

    // Of one of the next requests that are expected, or of the last ones.
    std::uint64_t early_id() { return first_early_ + die(6); }
    void look_at_returned() {
        std::vector<early_row> all;
        for (early_row row; table_.next_returned(row);) all.push_back(row);
        auto& due = reference_.returned;
        auto const same = [](early_row const& a, early_row const& b) {
            return a.peer == b.peer && a.place == b.place && a.incarnation == b.incarnation && a.id == b.id;
        };
        expect(std::is_permutation(all.begin(), all.end(), due.begin(), due.end(), same), [&] {
            std::string words = "early rows that are given back:";
            for (early_row const& row : all)
                words += " " + std::to_string(row.id) + " of " + std::to_string(row.peer);
            words += ", by the history:";
            for (early_row const& row : due)
                words += " " + std::to_string(row.id) + " of " + std::to_string(row.peer);
            return words;
        });
        due.clear();
    }

    void look(seen& met) {
        look_at_returned();
        if (die(4) != 0) { // the caller may be late
            auto const hedges = reference_.take_hedges();
            slot_index slot = 0;
            peer_index to = 0;
            std::size_t i = 0;
            for (; table_.next_hedge(slot, to); ++i)
                expect(i < hedges.size() && hedges[i].to == to && hedges[i].id == table_.id(slot),
                       "another hedge");
            expect(i == hedges.size(), "a hedge less");
            met.hedges += i;
            for (auto const& due : hedges) sent(due.to, due.id);
            auto const asks = reference_.take_asks();
            for (i = 0; table_.next_ask(slot, to); ++i)
                expect(i < asks.size() && asks[i].to == to && asks[i].id == table_.id(slot),
                       "another one is asked later");
            expect(i == asks.size(), "one less is asked later");
            met.later += i;
            for (auto const& due : asks) sent(due.to, due.id);
        }
        slot_index slot = 0;
        while (table_.next_decided(slot)) {
            bool known = false;
            for (live_request& r : live_)
                if (r.slot == slot) {
                    expect(!r.told, "decided twice");
                    known = r.told = true;
                }
            expect(known, "decided, and not in flight");
        }
        for (live_request const& r : live_) {
            auto const& known = reference_.all[r.at];
            auto const name = [&] { return "request " + std::to_string(r.at) + ": "; };
            expect(table_.is_decided(r.slot) == known.how.has_value(),
                   [&] { return name() + "decided or not"; });
            if (!known.how || !wrong_.empty()) continue;
            expect(r.told, [&] { return name() + "its decision was not told"; });
            expect(table_.result(r.slot) == *known.how, [&] {
                return name() + to_string(table_.result(r.slot)) + ", by the history " +
                       to_string(*known.how);
            });
            expect(table_.decided_ns(r.slot) == known.decided - known.entered,
                   [&] { return name() + "time of its decision"; });
            std::size_t rows = 0;
            for (std::size_t m = 0; m < known.parts.size(); ++m) {
                auto const& each = known.parts[m];
                auto const who = [&, m] { return name() + "member " + std::to_string(m) + ": "; };
                expect(table_.why(r.slot, m) == each.why, [&] {
                    return who() + to_string(table_.why(r.slot, m)) + ", by the history " +
                           to_string(each.why);
                });
                expect(table_.latency_ns(r.slot, m) == each.latency, [&] { return who() + "latency"; });
                expect(table_.contributors(r.slot).contains(m) == each.row.has_value(),
                       [&] { return who() + "contributor or not"; });
                ++met.whys[static_cast<std::size_t>(each.why)];
                if (!each.row) continue;
                auto const all = table_.contributions(r.slot);
                expect(rows < all.size() && all[rows].member == m && all[rows].peer == each.row->peer &&
                           all[rows].place == each.row->place &&
                           all[rows].incarnation == each.row->incarnation,
                       [&] { return who() + "its row"; });
                ++rows;
            }
            expect(table_.contributors(r.slot).count() == rows && table_.contributions(r.slot).size() == rows,
                   [&] { return name() + "more contributors"; });
        }
        expect(table_.next_event() == reference_.next_event(), "the next event");
        expect(table_.in_flight() == live_.size() && reference_.in_flight() == live_.size(),
               "requests in flight");
        for (peer_index p = 0; p < o_.members * o_.replicas; ++p)
            expect(table_.unanswered_by(p) == reference_.owed_by(p),
                   [&] { return "credits of peer " + std::to_string(p); });
        for (std::size_t m = 0; m < o_.members; ++m) {
            expect(table_.on_probation(m) == reference_.on_probation(m),
                   [&] { return "probation of member " + std::to_string(m); });
            met.probations += table_.on_probation(m) ? 1 : 0;
        }
    }
    void finish() {
        (void)reference_.take_hedges();
        slot_index slot = 0;
        for (peer_index to = 0; table_.next_hedge(slot, to);) {
        }
        for (std::size_t m = 0; m < o_.members; ++m)
            expect(table_.counters(m) == reference_.counters(m),
                   [&] { return "counters of member " + std::to_string(m); });
        for (int i = 0; i < herring::outcomes; ++i)
            expect(table_.totals().ended[i] == reference_.ended_as(static_cast<outcome>(i)),
                   [&] { return std::string("how many ended as ") + to_string(static_cast<outcome>(i)); });
    }

    table_options o_;
    std::uint64_t state_;
    request_table table_;
    table_reference reference_;
    bool traced_;
    std::int64_t now_ = 1'000'000;
    std::uint64_t last_incarnation_ = 0;
    std::vector<std::uint64_t> incarnation_; // by peer
    std::vector<std::uint64_t> ids_;
    std::vector<live_request> live_;
    std::uint64_t first_early_ = 100;
    std::uint64_t arrivals_[6] = {};
    std::string trace_, wrong_;
};

/// What is wrong with a script, and what happened in it; empty if nothing is.
inline std::string wrong_in(table_options const& options, std::uint64_t seed, int events,
                            table_script::seen& met) {
    if (table_script(options, seed).run(events, met).empty()) return {};
    return table_script(options, seed, true).run(events, met);
}

/// Options of a random table, given the quorum's.
inline table_options random_options(std::uint64_t seed, quorum_tuning const& quorum, std::size_t k) {
    std::uint64_t state = seed * 0x2545f4914f6cdd1du | 1;
    auto const die = [&](std::size_t sides) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>((state >> 33) % sides);
    };
    table_options o;
    o.members = std::max<std::size_t>(1 + die(5), k > 0 ? k : 1);
    o.replicas = 1 + die(2);
    o.in_flight = 1 + die(5);
    o.credits = die(4);
    o.k = k > 0 ? k : 1 + die(o.members);
    o.quorum = quorum;
    static constexpr std::int64_t ages[] = {0, 150'000, 3'000'000};
    o.early_ns = ages[die(3)];
    static constexpr std::uint32_t percents[] = {0, 5, 50, 100};
    o.hedging = {.percent = percents[die(4)],
                 .floor_us = static_cast<std::uint32_t>(die(3) * 50),
                 .samples = static_cast<std::uint32_t>(1 + die(4)),
                 .burst = static_cast<std::uint32_t>(die(4))};
    return o;
}

} // namespace herring::conformance::ensembles

#endif // HERRING_TESTS_UNIT_ENSEMBLE_TABLE_SCRIPTS_HPP
