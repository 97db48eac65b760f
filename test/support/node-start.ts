/** Starts node in several ways, and reads how it was started. */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service.ts';

/** The flags in process/node.sh. */
export const NODE_FLAGS = /^exec .*?node\}" (.*) "\$@"$/m
  .exec(readFileSync(join(ROOT, 'process/node.sh'), 'utf8'))![1]!
  .split(' ');

export type NodeStart = {
  /** Process id of the started process, and of the one that answered. */
  readonly started: number;
  readonly pid: number;
  readonly execArgv: readonly string[];
  readonly heap_size_limit: number;
};

export async function nodeStart(options: { execPath?: string; execArgv: string[] }): Promise<NodeStart> {
  const child = fork(join(ROOT, 'test/support/node-start-child.mjs'), options);
  const said = await new Promise<Omit<NodeStart, 'started'>>((resolve, reject) => {
    child.once('message', (message) => resolve(message as NodeStart));
    child.once('exit', (code) => reject(new Error(`node ended with ${code}`)));
  });
  return { started: child.pid!, ...said };
}
