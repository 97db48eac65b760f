/**
 * Starts localstripe, an independent stateful fake of an older Stripe API. It is a Python package on PYTHONPATH, which
 * `.ci/run` installs; nothing of it is in this repository.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export type LocalStripe = {
  readonly url: URL;
  /** Sends every later event to this address. */
  sendWebhooks(url: string, secret: string): Promise<void>;
  stop(): void;
};

export async function startLocalStripe(): Promise<LocalStripe> {
  const child = spawn('python3', ['-u', '-m', 'localstripe', '--from-scratch', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await readAddress(child);
  const sendWebhooks = async (to: string, secret: string) => {
    const body = JSON.stringify({ url: to, secret });
    const headers = { 'content-type': 'application/json' };
    const { status } = await fetch(new URL('/_config/webhooks/ours', url), { method: 'POST', headers, body });
    if (status !== 200) throw new Error(`localstripe answered ${status} to the address for webhooks`);
  };
  return { url, sendWebhooks, stop: () => void child.kill() };
}

/** Reads the address that the process prints, because it chooses its own port. */
async function readAddress(child: ChildProcess): Promise<URL> {
  for await (const text of createInterface({ input: child.stdout! })) {
    const port = /Running on .*:(\d+)/.exec(text)?.[1];
    if (port !== undefined && port !== '0') return new URL(`http://127.0.0.1:${port}`);
  }
  throw new Error('localstripe ended before it listened');
}
