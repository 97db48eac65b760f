/**
 * The console that a process serves. `npm start` builds a missing or stale one in a child process, beside the start of the stores; neither
 * the start nor a request waits for it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Logger } from 'pino';
import { canWriteBuild, findConsoleFolder, hasConsoleSources, isConsoleCurrent, ROOT } from './console-files.ts';

export type ConsoleSource = {
  /** Folder of the finished build, or why there is none. `absent`: this process does not build. */
  find(): { readonly folder: string } | { readonly folder?: undefined; readonly why: 'building' | 'failed' | 'absent' };
};

/** The finished build, if there is one: for a process that does not build. */
export function findBuiltConsole(root: string = ROOT): ConsoleSource {
  return {
    find: () => {
      const folder = findConsoleFolder(root);
      return folder === undefined ? { why: 'absent' } : { folder };
    },
  };
}

export type StartedConsole = ConsoleSource & { stop(): Promise<void> };
type BuildOptions = {
  readonly logger: Pick<Logger, 'error'>;
  readonly root?: string;
  /** Script of the child process. */
  readonly script?: string;
};

/** The build does not slow down the service. */
const NICE = 10;
const STOP_WITHIN_MS = 2_000;

export function startConsoleBuild({ logger, root = ROOT, script = SCRIPT }: BuildOptions): StartedConsole {
  const built = { ...findBuiltConsole(root), stop: async () => {} };
  const onFailure = (reason: string) => logger.error({ reason }, 'the console could not be built: run npm run console');
  if (!hasConsoleSources(root) || isConsoleCurrent(root)) return built;
  if (!canWriteBuild(root)) {
    // A read-only installation has the build of its image.
    if (built.find().folder !== undefined) return built;
    onFailure('console-dist cannot be written');
    return { ...built, find: () => ({ why: 'failed' }) };
  }
  const child = fork(script, {
    cwd: root,
    execArgv: ['--import', LOADER],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  return watchBuild(child, { built, onFailure });
}

const SCRIPT = join(import.meta.dirname, 'console-build.ts');
const LOADER = new URL('typescript.mjs', import.meta.url).href;

function watchBuild(
  child: ChildProcess,
  { built, onFailure }: { built: ConsoleSource; onFailure: (reason: string) => void },
): StartedConsole {
  let why: 'building' | 'failed' | undefined = 'building';
  let isStopped = false;
  let output = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-10_000)));
  const ended = new Promise<void>((resolve) => {
    const end = (reason: string | undefined) => {
      // A child that could not be started may emit both events.
      if (why === 'building' && reason !== undefined && !isStopped) onFailure(reason);
      if (why === 'building') why = reason === undefined ? undefined : 'failed';
      resolve();
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) =>
      end(code === 0 ? undefined : readReason(output) || `it ended with ${signal ?? code}`),
    );
  });
  lowerPriority(child);
  return {
    find: () => (why === undefined ? built.find() : { why }),
    stop: async () => {
      isStopped = true;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

const REASON_MAX = 500;

/** One line of the log is enough: `npm run console` shows all of them. */
function readReason(output: string): string {
  return stripVTControlCharacters(output).replace(/\s+/g, ' ').trim().slice(0, REASON_MAX);
}

function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, NICE);
  } catch {
    // It is built with the usual priority.
  }
}
