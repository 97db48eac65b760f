// Ends the brokers when the process that started them has ended, even after kill -9, which runs no exit handler.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';

export type Leash = { hold(pids: number[]): void; release(): Promise<void> };

// Each line replaces the list of process ids. The pipe closes when its writer ends; then the listed processes are
// killed.
const WATCH = 'pids=; while read -r line; do pids=$line; done; [ -z "$pids" ] || kill -9 $pids';

/** Starts a shell in its own session. The shell reads the other end of a pipe and outlives this process by a moment. */
export function newLeash(): Leash {
  const watcher = spawn('sh', ['-c', WATCH], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return {
    hold: (pids) => void watcher.stdin.write(`${pids.join(' ')}\n`),
    release: () => letGo(watcher),
  };
}

async function letGo(watcher: ChildProcess): Promise<void> {
  if (watcher.exitCode !== null || watcher.signalCode !== null) return;
  watcher.ref();
  const gone = once(watcher, 'exit');
  watcher.stdin?.end('\n');
  await gone;
}
