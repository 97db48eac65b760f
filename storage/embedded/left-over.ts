/** Ends a server of a version whose servers held no lock (stores-lock.ts): it is known by its pid and start. */
import type { Log } from './clickhouse/part.ts';
import { processStart } from './process-start.ts';

/** A process, and when it started in the system's own words: a number alone may be another's by now. */
export type ProcessMark = { readonly pid: number; readonly started: string };

export function readProcessMark(pid: number): ProcessMark {
  return { pid, started: processStart(pid) };
}

function isRunning({ pid, started }: ProcessMark): boolean {
  return started !== '' && processStart(pid) === started;
}

export type TerminationPlan = {
  readonly name: string;
  /** What it is told, and how long it may take before it is told the next; after the last it is waited for. */
  readonly signals: readonly (readonly [signal: NodeJS.Signals, patience_ms: number])[];
  readonly log: Log;
};

const STILL_WAITING_MS = 10_000;

/** Ends a process that nobody needs any more. A disk that is slow to answer may hold it back however it is ended. */
export async function endLeftOver(server: ProcessMark, { name, signals, log }: TerminationPlan): Promise<void> {
  log(`stopping the ${name} that an earlier run left behind (process ${server.pid})`);
  for (const [signal, patience_ms] of signals) {
    sendSignal(server, signal);
    if (await hasEnded(server, patience_ms)) return;
  }
  while (!(await hasEnded(server, STILL_WAITING_MS)))
    log(`waiting for the ${name} of an earlier run (process ${server.pid}), which does not end`);
}

/** It may end on its own just before it is told to. */
function sendSignal(server: ProcessMark, signal: NodeJS.Signals): void {
  if (!isRunning(server)) return;
  try {
    process.kill(server.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** It is not our child, so the system tells us of its end only when asked. */
async function hasEnded(server: ProcessMark, patience_ms: number): Promise<boolean> {
  const until = performance.now() + patience_ms;
  while (isRunning(server)) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}
