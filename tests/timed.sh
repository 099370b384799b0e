#!/usr/bin/env bash
# herring: runs a command of the tests, and adds what it took to the file that HERRING_TEST_TIMES names, if any.
# SPDX-License-Identifier: Apache-2.0
#
#   tests/timed.sh KIND BUILD[/WHAT] COMMAND ...     adds «KIND  BUILD  WHAT  seconds  seconds of CPU», with tabs between
#
# KIND is compile, link, run or header; WHAT, if it is not said, the file behind -o in the command. tests/times.sh reads that.
kind=$1 build=${2%%/*} what=${2#*/}
shift 2
[ -n "${HERRING_TEST_TIMES-}" ] || exec "$@"
for ((i = 1; i < $#; ++i)); do [ "${!i}" != -o ] || { i=$((i + 1)); [ "$what" != "$build" ] || what=${!i}; }; done
TIMEFORMAT='%R %U %S'
{ took=$({ time "$@" 2>&3 >&4; } 2>&1); status=$?; } 3>&2 4>&1
read -r seconds user system <<<"$took"
printf '%s\t%s\t%s\t%s\t%s\n' "$kind" "$build" "$what" "$seconds" "$(awk -v a="$user" -v b="$system" 'BEGIN { print a + b }')" >>"$HERRING_TEST_TIMES"
exit $status
