/**
 * The real command `node run.mjs start` as a child process, as a person or a supervisor starts it: `const service =
 * await startServiceProcess({ DATA_DIR: dir })`, then `await service.request('GET', '/meters')`.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStart } from '../../storage/embedded/process-start.ts';
import type { Requester, TestAnswer } from './api.ts';

export const ROOT = join(import.meta.dirname, '../..');
const START_MS = 120_000;

export type Exit = { code: number | null; signal: NodeJS.Signals | null };
export type Command = {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves at the exit and the end of both outputs. */
  readonly ended: Promise<Exit>;
};

export type Settings = Record<string, string>;
export type RunAs = { uid: number; gid: number };

/**
 * `npm`: the service is started through npm, which gets the signals; the script runs below it. `apart`: the service has
 * its own namespaces for process ids and shared memory, like another container on the same volume; `unshare` runs above
 * it.
 */
export type RunOptions = { user?: RunAs | undefined; npm?: boolean | undefined; apart?: Apart | undefined };

/** `network`: the ports of other services are unreachable, too. */
export type Apart = 'processes' | 'network';

/** Environment of a person's terminal, with these settings and none of the developer's own. */
export function environmentWith(settings: Settings): Settings {
  return { ...withoutSettings(), ...settings };
}

/** Runs `node run.mjs <name> …` with these settings and none of the developer's own. */
export function runScript(
  name: string,
  args: string[] = [],
  settings: Settings = {},
  { user, npm = false, apart }: RunOptions = {},
): Command {
  const [command, ...first] = [...unshareCommand(apart), ...(npm ? NPM_RUN : NODE_RUN), name, ...(npm ? ['--'] : [])];
  const child = spawn(command!, [...first, ...args], {
    cwd: ROOT,
    env: environmentWith(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  });
  running.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Exit>((resolve) => {
    child.on('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
  return { child, pid: child.pid ?? -1, stdout: () => stdout, stderr: () => stderr, ended };
}

const NPM_RUN = ['npm', 'run'];
const NODE_RUN = [process.execPath, 'run.mjs'];

/** Needs root. Without permission the command fails, and so does the test that uses it. */
export function unshareCommand(apart: Apart | undefined): string[] {
  if (apart === undefined) return [];
  const network = apart === 'network' ? ['--net'] : [];
  return ['unshare', '--pid', '--ipc', ...network, '--fork', '--kill-child', '--mount-proc'];
}

/** Processes that a failed test left running are killed at exit. */
const running = new Set<ChildProcess>();
const directories = new Set<string>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGTERM');
  for (const path of directories) removeDirectory(path);
});

/** An empty value counts as unset, and hides the value in the developer's .env. */
function withoutSettings(): Settings {
  const names = [...readFileSync(join(ROOT, '.env.example'), 'utf8').matchAll(/^(?:# )?([A-Z][A-Z_]*)=/gm)];
  const inherited = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    ...Object.fromEntries(inherited),
    ...Object.fromEntries(names.map(([, name]) => [name!, ''])),
    FARTHING_URL: '',
    FARTHING_API_KEY: '',
    LOG_LEVEL: 'fatal',
    PORT: '0',
  };
}

export type ServiceProcess = Command & {
  /** `http://host:port`. */
  readonly url: string;
  readonly api_key: string;
  readonly ready_ms: number;
  /** `path` is relative to /v1. A request without an answer throws. */
  request: Requester<{ body?: unknown; headers?: Record<string, string> }>;
  /** Every process below the main one. */
  processes(): Process[];
  /** The server process of a store. */
  store(name: 'postgres' | 'clickhouse'): number;
  stop(signal?: NodeJS.Signals): Promise<Exit>;
};

/** Resolves when the service is ready; rejects with its output if it ends before. */
export async function startServiceProcess(
  settings: Settings & { DATA_DIR: string },
  { api_key, ...options }: RunOptions & { api_key?: string } = {},
): Promise<ServiceProcess> {
  const began = performance.now();
  const command = runScript('start', [], settings, options);
  await ready(command);
  const main = options.apart ? childOf(command.pid) : command.pid;
  const ready_ms = Math.round(performance.now() - began);
  const url = /^farthing is ready at (\S+)$/m.exec(command.stdout())![1]!;
  const key =
    api_key ?? settings.BOOTSTRAP_API_KEY ?? /^API key\s+(\S+)\s+\(shown once\)$/m.exec(command.stdout())?.[1] ?? '';
  return {
    ...command,
    pid: main,
    url,
    api_key: key,
    ready_ms,
    request: (method: string, path: string, options = {}) => request(url, key, { method, path, ...options }),
    processes: () => processesBelow(main),
    store: (name) => storeOf(main, name),
    stop: async (signal = 'SIGTERM') => {
      if (options.apart) process.kill(main, signal);
      else command.child.kill(signal);
      return command.ended;
    },
  };
}

function ready(command: Command): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the service ${why}:\n${command.stdout()}${command.stderr()}`));
    const timer = setTimeout(() => fail('is not ready in time'), START_MS);
    const look = () => {
      if (!/^farthing is ready at \S+$/m.test(command.stdout())) return;
      clearTimeout(timer);
      resolve();
    };
    command.child.stdout!.on('data', look);
    void command.ended.then(({ code, signal }) => {
      clearTimeout(timer);
      fail(`ended with ${code ?? signal} before it was ready`);
    });
  });
}

async function request(
  url: string,
  key: string,
  {
    method,
    path,
    body,
    headers = {},
  }: { method: string; path: string; body?: unknown; headers?: Record<string, string> },
): Promise<TestAnswer<never>> {
  const response = await fetch(`${url}/v1${path}`, {
    method,
    headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    status: response.status,
    headers: response.headers,
    body: (isJson ? JSON.parse(text) : text) as never,
    text,
  };
}

export type Process = { pid: number; parent: number; command: string };

export function processesBelow(pid: number): Process[] {
  const all = allProcesses();
  const below = (parent: number): Process[] =>
    all.filter((each) => each.parent === parent).flatMap((each) => [each, ...below(each.pid)]);
  return below(pid);
}

function allProcesses(): Process[] {
  if (platform() === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => processOf(Number(name)) ?? []);
  }
  const lines = execFileSync('ps', ['-axo', 'pid=,ppid=,command='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)!;
    return { pid: Number(pid), parent: Number(parent), command: command! };
  });
}

function processOf(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return { pid, parent, command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() };
  } catch {
    return undefined; // The process has ended since it was listed.
  }
}

function childOf(pid: number): number {
  const [child] = processesBelow(pid);
  if (!child) throw new Error(`no process below ${pid}`);
  return child.pid;
}

function storeOf(main: number, name: 'postgres' | 'clickhouse'): number {
  const pattern = name === 'postgres' ? /bin\/postgres -D / : /clickhouse-server\.ts/;
  const found = processesBelow(main).find(({ parent, command }) => parent === main && pattern.test(command));
  if (!found) throw new Error(`no ${name} below process ${main}`);
  return found.pid;
}

export function isAlive(pid: number): boolean {
  return processStart(pid) !== '';
}

/** Signals a process, which may have ended. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Resolves to the processes that are still alive after the time, or to [] as soon as all have ended. */
export async function stillAlive(processes: readonly Process[], patience_ms = 10_000): Promise<Process[]> {
  const until = performance.now() + patience_ms;
  for (;;) {
    const alive = processes.filter(({ pid }) => isAlive(pid));
    if (alive.length === 0 || performance.now() > until) return alive;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Creates a directory, which `remove` or the exit of this process deletes. With a user, it belongs to that user. */
export function temporaryDirectory(user?: RunAs): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'farthing-start-'));
  if (user) chownSync(path, user.uid, user.gid);
  directories.add(path);
  const remove = () => {
    removeDirectory(path);
    directories.delete(path);
  };
  return { path, remove };
}

function removeDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
