#!/usr/bin/env python3
# herring: the decisions of SelSync from norms, written from its mathematics alone; selective_test.cpp compares.
# SPDX-License-Identifier: Apache-2.0
#
#   selsync_reference.py FILE
#
# FILE: a line «window smoothing threshold ahead», then a line a step: the squared norm of each rank's gradient.
# Prints a line a step: 1, if the step exchanges, else 0.
#
# Source: Tyagi and Swany, "Accelerating Distributed ML Training via Selective Synchronization", CLUSTER 2023: a worker
# synchronises where |E[n_i] - E[n_(i-1)]| / E[n_(i-1)] >= delta, E being a smoothed mean over a window; all do where one does.
import sys


def smoothed(samples, smoothing):
    """Mean of the samples, oldest first: the k-th newest weighs (1 - s)^k."""
    weights = [(1.0 - smoothing) ** k for k in range(len(samples), 0, -1)]
    return sum(w * n for w, n in zip(weights, samples)) / sum(weights)


def flags(norms, window, smoothing, threshold):
    """What one worker wants, step by step."""
    wanted = []
    for step in range(len(norms)):
        if step < window:  # there are no two windows yet
            wanted.append(True)
            continue
        now = smoothed(norms[step - window + 1:step + 1], smoothing)
        before = smoothed(norms[step - window:step], smoothing)
        wanted.append(abs(now - before) / before >= threshold)
    return wanted


def main():
    with open(sys.argv[1]) as file:
        head = file.readline().split()
        window, smoothing, threshold, ahead = int(head[0]), float(head[1]), float(head[2]), int(head[3])
        steps = [[float(word) for word in line.split()] for line in file]
    workers = [flags(list(norms), window, smoothing, threshold) for norms in zip(*steps)]
    agreed = [any(wanted) for wanted in zip(*workers)]
    if ahead:  # a step does what the one before has agreed on; the first exchanges
        agreed = [True] + agreed[:-1]
    for flag in agreed:
        print(int(flag))


main()
