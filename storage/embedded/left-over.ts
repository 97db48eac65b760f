/** Ends a server of an earlier version, whose servers held no lock (stores-lock.ts): it is identified by its pid and start. */
import type { Log } from './clickhouse/part.ts';
import { processStart } from './process-start.ts';

/** A process and its start time as the system prints it: the pid alone may belong to another process by now. */
type ProcessMark = { readonly pid: number; readonly started: string };

export function readProcessMark(pid: number): ProcessMark {
  return { pid, started: processStart(pid) };
}

function isRunning({ pid, started }: ProcessMark): boolean {
  return started !== '' && processStart(pid) === started;
}

type TerminationPlan = {
  readonly name: string;
  /** Signals to send, each with the time until the next; after the last one, waits until the process ends. */
  readonly signals: readonly (readonly [signal: NodeJS.Signals, patience_ms: number])[];
  readonly log: Log;
};

const STILL_WAITING_MS = 10_000;

/** Ends a leftover process. After the last signal it waits without a limit, because a slow disk may delay the end. */
export async function endLeftOver(server: ProcessMark, { name, signals, log }: TerminationPlan): Promise<void> {
  log(`stopping the ${name} that an earlier run left behind (process ${server.pid})`);
  for (const [signal, patience_ms] of signals) {
    sendSignal(server, signal);
    if (await hasEnded(server, patience_ms)) return;
  }
  while (!(await hasEnded(server, STILL_WAITING_MS)))
    log(`waiting for the ${name} of an earlier run (process ${server.pid}), which does not end`);
}

/** Sends a signal; the process may have ended by itself just before. */
function sendSignal(server: ProcessMark, signal: NodeJS.Signals): void {
  if (!isRunning(server)) return;
  try {
    process.kill(server.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Waits for the end of a process by polling, because it is not our child. */
async function hasEnded(server: ProcessMark, patience_ms: number): Promise<boolean> {
  const until = performance.now() + patience_ms;
  while (isRunning(server)) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}
