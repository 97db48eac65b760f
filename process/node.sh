#!/bin/sh
# Node as every process that takes in events runs it: `npm start`, the containers and the measurements go through here.
# It becomes node and leaves no process between, so Ctrl-C, signals and exit codes are node's own. V8 takes these flags when
# it starts and not later, and NODE_OPTIONS refuses the second of them, so nothing in JavaScript could set them.
#
# A larger young generation: what a slice of events allocates lives until it is written, and in the 16 MiB that node begins
# with it would be copied again and again by the garbage collector, which then took a quarter of the CPU.
# One thread collects what is young, the one that allocates: a hundredth of it survives, and helpers for that are waited for longer than
# they work, on cores that the stores need. A pause of 7 ms became one of 3 (docs/decisions/0007-cached-answers.md).
# A heap that may grow by half before it is looked through: bodies of requests are large and short-lived.
# The young generation begins at 16 MiB, not at 1: loading the modules would be interrupted fifty times to collect it.
exec "${npm_node_execpath:-node}" --min-semi-space-size=16 --max-semi-space-size=64 --no-parallel-scavenge --heap-growing-percent=150 "$@"
