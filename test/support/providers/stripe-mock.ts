/**
 * Starts stripe-mock, Stripe's own stateless mock, which checks the shape of requests against Stripe's OpenAPI
 * document.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

export type StripeMock = { readonly url: URL; stop(): void };

/** Finds the executable; null if it is not installed: `go install github.com/stripe/stripe-mock@latest`. */
export function findStripeMock(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  try {
    folders.push(join(execFileSync('go', ['env', 'GOPATH'], { encoding: 'utf8' }).trim(), 'bin'));
  } catch {
    // Without Go, the executable can only be on PATH.
  }
  return folders.map((folder) => join(folder, 'stripe-mock')).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export async function startStripeMock(path: string): Promise<StripeMock> {
  const child = spawn(path, ['-http-addr', '127.0.0.1:'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const url = await readAddress(child);
  return { url, stop: () => void child.kill() };
}

/** Reads the address that the process prints, because it chooses its own port. */
async function readAddress(child: ChildProcess): Promise<URL> {
  for await (const text of createInterface({ input: child.stdout! })) {
    const port = /address: .*:(\d+)$/.exec(text)?.[1];
    if (port !== undefined) return new URL(`http://127.0.0.1:${port}`);
  }
  throw new Error('stripe-mock ended before it listened');
}
