/** Servers that outlived the process that started them: told by who they are and not by a number alone, ended, waited for. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { platform } from 'node:os';
import type { Log } from './clickhouse/part.ts';
import { processStart } from './data-dir.ts';

/** A process, and when it started in the system's own words: a number alone may be another's by now. */
export type ProcessMark = { readonly pid: number; readonly started: string };

export function markOf(pid: number): ProcessMark {
  return { pid, started: processStart(pid) };
}

function isRunning({ pid, started }: ProcessMark): boolean {
  return started !== '' && processStart(pid) === started;
}

/** Arguments by which a server says what it serves and for whom, where everybody can read them. */
export function ownArguments(dir: string, owner: ProcessMark): [dir: string, owner: string] {
  return [dir, Buffer.from(JSON.stringify(owner)).toString('base64url')];
}

/** The running processes of that program that say that they serve the directory, and who started them. */
export function serversOf(program: string, dir: string): { server: ProcessMark; owner: ProcessMark }[] {
  const ours = [program, dir, ''].join(BETWEEN_ARGUMENTS);
  return commands().flatMap(({ pid, command }) => {
    const at = command.indexOf(BETWEEN_ARGUMENTS + ours);
    const owner = at < 0 ? undefined : ownerIn(command.slice(at + 1 + ours.length));
    return owner ? [{ server: markOf(pid), owner }] : [];
  });
}

function ownerIn(argument: string): ProcessMark | undefined {
  try {
    return JSON.parse(Buffer.from(argument.replace('\0', ''), 'base64url').toString()) as ProcessMark;
  } catch {
    return undefined; // It has other arguments than ours.
  }
}

/** Elsewhere than on Linux the system shows a command line as one text. */
const BETWEEN_ARGUMENTS = platform() === 'linux' ? '\0' : ' ';

/** The command lines of all processes. */
function commands(): { pid: number; command: string }[] {
  if (platform() === 'linux') {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.map((pid) => ({ pid: Number(pid), command: commandOf(pid) }));
  }
  const listed = execFileSync('ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' });
  return listed.split('\n').map((line) => {
    const [, pid = '', command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? [];
    return { pid: Number(pid), command };
  });
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // It has ended since it was listed.
  }
}

export type Ending = {
  readonly name: string;
  /** What it is told, and how long it may take before it is told the next; after the last it is waited for. */
  readonly signals: readonly (readonly [signal: NodeJS.Signals, patience_ms: number])[];
  readonly log: Log;
};

const STILL_WAITING_MS = 10_000;

/** Ends a process that nobody needs any more. A disk that is slow to answer may hold it back however it is ended. */
export async function endLeftOver(server: ProcessMark, { name, signals, log }: Ending): Promise<void> {
  log(`stopping the ${name} that an earlier run left behind (process ${server.pid})`);
  for (const [signal, patience_ms] of signals) {
    tell(server, signal);
    if (await hasEnded(server, patience_ms)) return;
  }
  while (!(await hasEnded(server, STILL_WAITING_MS)))
    log(`waiting for the ${name} of an earlier run (process ${server.pid}), which does not end`);
}

/** It may end on its own just before it is told to. */
function tell(server: ProcessMark, signal: NodeJS.Signals): void {
  if (!isRunning(server)) return;
  try {
    process.kill(server.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** It is not our child, so the system tells us of its end only when asked. */
export async function hasEnded(server: ProcessMark, patience_ms: number): Promise<boolean> {
  const until = performance.now() + patience_ms;
  while (isRunning(server)) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}
