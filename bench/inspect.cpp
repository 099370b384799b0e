// herring: reads a folder of recorder files: the program of bench/inspect.
// SPDX-License-Identifier: Apache-2.0
#include "timeline_inspect.hpp"
#include "timeline_links.hpp"

#include <herring/trace/perfetto.hpp>
#include <herring/trace/timeline_report.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

struct wanted {
    std::string folder, perfetto;
    bool report = false, links = false;
    std::uint64_t job = 0, reducer = 0; // 0: any
};

using key = std::pair<std::uint64_t, std::uint32_t>; // job and reducer

int usage() {
    std::fprintf(stderr,
                 "usage: inspect DIR [--report] [--links] [--perfetto FILE] [--job HEX] [--reducer N]\n");
    return 2;
}

/// When a reducer's newest file was written last.
using stamp = std::filesystem::file_time_type;

int inspect(wanted const& what) {
    namespace fs = std::filesystem;
    std::map<key, std::vector<herring::timeline_data>> found;
    std::map<key, stamp> newest;
    std::error_code problem;
    for (fs::directory_iterator at(what.folder, problem), end; !problem && at != end; at.increment(problem)) {
        if (at->path().extension() != ".timeline") continue;
        try {
            herring::timeline_data one = bench::read_timeline_file(at->path().string());
            key const of{one.job, one.reducer};
            if ((what.job != 0 && what.job != one.job) || (what.reducer != 0 && what.reducer != one.reducer))
                continue;
            stamp const written = at->last_write_time(problem);
            stamp& last = newest.try_emplace(of, written).first->second;
            last = std::max(last, written);
            found[of].push_back(std::move(one));
        } catch (std::exception const& why) { // also where memory runs out
            std::fprintf(stderr, "left out: %s: %s\n", at->path().filename().c_str(), why.what());
        }
    }
    if (problem) std::fprintf(stderr, "inspect: %s: %s\n", what.folder.c_str(), problem.message().c_str());
    if (found.empty()) {
        std::fprintf(stderr,
                     "inspect: no timeline in %s; was HERRING_TIMELINE_DIR set for a reducer with "
                     "trace::timeline?\n",
                     what.folder.c_str());
        return EXIT_FAILURE;
    }
    key last = found.begin()->first;
    for (auto const& [of, ranks] : found) {
        if (newest[of] > newest[last]) last = of;
        std::printf("job %016llx, reducer %u: %d ranks, %zu files; version %s, plan %016llx\n",
                    static_cast<unsigned long long>(of.first), of.second, ranks[0].ranks, ranks.size(),
                    ranks[0].version.c_str(), static_cast<unsigned long long>(ranks[0].digest));
        std::printf("%s", bench::timeline_inspection(ranks).text().c_str());
        if (what.report)
            for (auto const& one : ranks) std::printf("%s", herring::timeline_report(one).text().c_str());
        if (what.links) std::printf("%s", bench::timeline_links(ranks).text().c_str());
    }
    std::vector<herring::timeline_data>& shown = found[last];
    std::sort(shown.begin(), shown.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    bool const good = what.perfetto.empty() || herring::write_perfetto(what.perfetto, shown);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
    wanted what;
    for (int i = 1; i < argc; ++i) {
        std::string const word = argv[i];
        bool const has_more = i + 1 < argc;
        if (word == "--report")
            what.report = true;
        else if (word == "--links")
            what.links = true;
        else if (word == "--perfetto" && has_more)
            what.perfetto = argv[++i];
        else if (word == "--job" && has_more)
            what.job = std::strtoull(argv[++i], nullptr, 16);
        else if (word == "--reducer" && has_more)
            what.reducer = std::strtoull(argv[++i], nullptr, 10);
        else if (what.folder.empty() && !word.starts_with("--"))
            what.folder = word;
        else
            return usage();
    }
    return what.folder.empty() ? usage() : inspect(what);
}
