#!/usr/bin/env bash
# herring: no header reads a clock that can be set: deadlines, signs of life and waits hold when the time of day jumps.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/headers/clocks.sh [FOLDER]      default: include
#
# ensemble/admission_roster.hpp alone reads the time of day: the number by which the newer of two processes is known, across boots.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=${1:-include}

# Code without comments, one line a line: FILE:LINE:CODE.
code() {
    find "$folder" -type f | sort | while IFS= read -r file; do
        sed -E 's|//.*||' "$file" | grep -nE "$1" | sed "s|^|$file:|"
    done
}
status=0
report() { # what is wrong, lines
    [ -n "$2" ] || return
    printf 'FAILED: %s:\n%s\n' "$1" "$2"
    status=1
}
report "a clock that can be set; take herring::clock, which is steady" \
    "$(code '\b(system_clock|high_resolution_clock|utc_clock|file_clock|CLOCK_REALTIME|FUTEX_CLOCK_REALTIME|CLOCK_TAI)\b|\b(gettimeofday|ftime|localtime|gmtime|strftime)\b|(^|[^A-Za-z0-9_.>])(std::|::)time\(|[^A-Za-z0-9_:.>]time\((0|NULL|nullptr|&)' | grep -v '/ensemble/admission_roster.hpp:')"
report "a wait that takes the time of day; take machine/monitor.hpp or a futex" \
    "$(code '\b(sem_timedwait|pthread_mutex_timedlock|pthread_rwlock_timed[a-z]*|mq_timed[a-z]*|TFD_TIMER_CANCEL_ON_SET)\b')"
# A condition variable of POSIX takes the time of day unless it is told otherwise.
report "a condition variable that is not told to take CLOCK_MONOTONIC in its file" \
    "$(find "$folder" -type f -exec grep -lE '\bpthread_cond_timedwait\b' {} + | xargs -r grep -LE 'pthread_condattr_setclock\(.*CLOCK_MONOTONIC')"
[ $status != 0 ] || echo "clocks: $(find "$folder" -type f | wc -l) headers read steady clocks only"
exit $status
