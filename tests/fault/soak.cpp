// herring: runs the soak for as long as wanted: soak --seconds 3600 --seed 1. Its summary ends with «passed» or «FAILED».
// SPDX-License-Identifier: Apache-2.0
#include "soak.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int count, char** words) {
    fault::soak::options o;
    auto const number = [&](int i) { return i + 1 < count ? std::atof(words[i + 1]) : 0; };
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(words[i], "--seconds") == 0) {
            o.seconds = number(i++);
        } else if (std::strcmp(words[i], "--seed") == 0) {
            o.seed = i + 1 < count ? std::strtoull(words[i + 1], nullptr, 10) : 0;
            ++i;
        } else if (std::strcmp(words[i], "--cores") == 0) {
            o.cores = number(i++);
        } else if (std::strcmp(words[i], "--life") == 0) {
            o.longest_life = number(i++);
        } else if (std::strcmp(words[i], "--only") == 0 && i + 1 < count) {
            o.disturbances = 0;
            for (int k = 0; k < fault::soak::nuisances; ++k)
                if (std::strstr(words[i + 1], fault::soak::words_of_nuisances[k]) != nullptr)
                    o.disturbances |= 1u << k;
            ++i;
        } else if (std::strcmp(words[i], "--hosts") == 0) {
            o.hosts = number(i++) == 4 ? 4 : 3;
        } else if (std::strcmp(words[i], "--loss") == 0) {
            o.loss = number(i++);
        } else if (std::strcmp(words[i], "--deadline") == 0) {
            o.deadline = number(i++);
        } else if (std::strcmp(words[i], "--no-network") == 0) {
            o.network = false;
        } else if (std::strcmp(words[i], "--no-steady") == 0) {
            o.steady = false;
        } else {
            std::puts("soak [--seconds 60] [--seed 1] [--cores 0.7] [--life 20] [--only stop,junk,...] "
                      "[--hosts 3] [--loss 0] [--deadline 20] [--no-network] [--no-steady]\n"
                      "  --cores       of the machine, on average; ranks pause between calls\n"
                      "  --life        of a world, at most, in seconds\n"
                      "  --only        what disturbs: stop,junk,hogs,loss,outage,slow; all, or none\n"
                      "  --hosts       3 or 4\n"
                      "  --loss        percent of all packets between hosts that are dropped, all the time\n"
                      "  --deadline    of a call, in seconds\n"
                      "  --no-network  one host, without network namespaces\n"
                      "  --no-steady   without the world that lives all the time");
            return 2;
        }
    }
    return fault::soak::run(o);
}
