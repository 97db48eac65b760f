/** Child processes of a benchmark. None outlives it, also if it throws or is interrupted. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

const running = new Set<ChildProcess>();
let isWatching = false;

/** Ends the child with this process. SIGTERM lets a service stop its stores. */
export function endWithBenchmark<Child extends ChildProcess>(child: Child): Child {
  if (!isWatching) watchEnd();
  isWatching = true;
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

function watchEnd(): void {
  process.once('exit', () => {
    for (const child of running) child.kill('SIGTERM');
  });
  // The default of a signal ends the process without the event `exit`.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
