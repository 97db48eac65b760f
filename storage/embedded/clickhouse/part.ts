import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Receives the output of a part's server: one call per line, without the line ending. */
export type Log = (line: string) => void;

interface PartExit {
  /** True if `stop()` requested the end of the process. */
  expected: boolean;
  /** One line for people: how it ended, and its last output. */
  detail: string;
}

export interface PartOptions {
  dir: string;
  log: Log;
  /** The lock of the stores (stores-lock.ts), which the server and its children inherit. */
  lock_fd?: number | undefined;
}

/** A child process that serves a store; product code reaches it by its URL only. */
export interface ChildServer {
  url: string;
  pid: number;
  stop(): Promise<void>;
  /** Calls the listener once when the process has ended; at once if it has ended already. */
  onExit(listener: (exit: PartExit) => void): void;
  /** Lets our process end without stopping the part first; the part then notices and stops by itself. */
  unref(): void;
}

export interface Child {
  process: ChildProcess;
  pid: number;
  hasExited(): boolean;
  /** Returns the latest lines of both outputs. */
  lastLines(): readonly string[];
  /** Marks the coming exit as expected. */
  expectExit(): void;
  onExit(listener: (exit: PartExit) => void): void;
  unref(): void;
  /** Resolves when the process has ended; rejects after `timeout_ms`. */
  waitForExit(timeout_ms: number): Promise<void>;
  /** Resolves with the first matching line; rejects with the last lines if the process ends or the time runs out. */
  waitForLine(pattern: RegExp, timeout_ms: number): Promise<string>;
}

interface ChildOptions {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string | undefined>;
  log: Log;
  uid?: number;
  gid?: number;
  /** A descriptor that the process inherits as descriptor 3. */
  lock_fd?: number | undefined;
}

/** Returns three pipes and, if there is one, the descriptor of the lock on the directory. */
export function buildStdio(lock_fd: number | undefined): ('pipe' | number)[] {
  return ['pipe', 'pipe', 'pipe', ...(lock_fd === undefined ? [] : [lock_fd])];
}

const RETAINED_LINES = 20;

/**
 * Starts a server process in its own process group, so that Ctrl-C in the terminal reaches only us and we can drain before the
 * stores stop.
 */
export function startChild({ name, command, args, env, log, lock_fd, ...user }: ChildOptions): Child {
  const stdio = buildStdio(lock_fd);
  const child = spawn(command, args, {
    cwd: '/',
    env,
    detached: true,
    stdio,
    ...user,
  }) as ChildProcessWithoutNullStreams;
  const lines: string[] = [];
  const line_listeners = new Set<(line: string) => void>();
  const exit_listeners = new Set<(exit: PartExit) => void>();
  let expected = false;
  let exit: PartExit | undefined;

  const ended = (how: string) => {
    if (exit) return;
    exit = { expected, detail: lines.length ? `${name} ${how}; it said: ${lines.at(-1)}` : `${name} ${how}` };
    for (const listener of exit_listeners) listener(exit);
  };
  child.on('error', (error) => ended(`could not be started: ${error.message}`));
  child.on('close', (code, signal) => ended(signal ? `was ended by ${signal}` : `ended with code ${code}`));
  child.stdin.on('error', () => {}); // The process may end before it has read all of our input; 'close' reports it.
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      if (lines.length > RETAINED_LINES) lines.shift();
      log(line);
      for (const listener of line_listeners) listener(line);
    });
  }

  const onExit = (listener: (exit: PartExit) => void) => {
    if (exit) listener(exit);
    else exit_listeners.add(listener);
  };
  const withTimeout = <Value>(timeout_ms: number, work: (ok: (value: Value) => void, no: (e: Error) => void) => void) =>
    new Promise<Value>((resolve, reject) => {
      const fail = (why: string) =>
        reject(new Error(`${name} ${why}${lines.length ? `:\n  ${lines.join('\n  ')}` : ''}`));
      const timer = setTimeout(() => fail(`did not answer within ${timeout_ms} ms`), timeout_ms);
      work(
        (value) => (clearTimeout(timer), resolve(value)),
        (error) => (clearTimeout(timer), fail(error.message)),
      );
    });

  return {
    process: child,
    // A process that failed to start has no pid, and any number could be that of another process.
    get pid(): number {
      if (child.pid === undefined) throw new Error(`${name} could not be started`);
      return child.pid;
    },
    hasExited: () => exit !== undefined,
    lastLines: () => lines,
    expectExit: () => {
      expected = true;
    },
    onExit,
    unref: () => {
      child.unref();
      for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as Socket).unref();
    },
    waitForExit: (timeout_ms) => withTimeout<void>(timeout_ms, (ok) => onExit(() => ok())),
    waitForLine: (pattern, timeout_ms) =>
      withTimeout<string>(timeout_ms, (ok, no) => {
        line_listeners.add((line) => pattern.test(line) && ok(line));
        onExit((how) => no(new Error(how.detail.replace(`${name} `, ''))));
        const ready_line = lines.find((line) => pattern.test(line));
        if (ready_line !== undefined) ok(ready_line);
      }),
  };
}
