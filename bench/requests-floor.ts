/** Starts bare Express (express-floor.ts) on the Postgres of a service. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithBenchmark } from './children.ts';
import { cpuOfTree } from './cpu.ts';
import type { Service as Target } from './due-requests.ts';
import type { OutsideService } from './outside-service.ts';
import { NODE, NODE_FLAGS } from './processes.ts';

export type Floor = Target & { cpu(): number; stop(): void };

export async function startFloor({ database_url }: OutsideService): Promise<Floor> {
  const child = endWithBenchmark(
    fork(fileURLToPath(new URL('./express-floor.ts', import.meta.url)), [database_url], {
      execPath: NODE,
      execArgv: NODE_FLAGS,
    }),
  );
  const { url } = await new Promise<{ url: string }>((resolve) => child.once('message', resolve as never));
  return { url, api_key: '', cpu: () => cpuOfTree([child.pid!]), stop: () => child.disconnect() };
}
