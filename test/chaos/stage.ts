/** Where chaos plays: everything in one process tree on the embedded stores, or processes around a Kafka. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectClickHouse } from '../../storage/clickhouse.ts';
import { readAddresses } from '../../storage/embedded/addresses.ts';
import { connectPostgres } from '../../storage/postgres.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Chance } from '../support/seeds.ts';
import { type ServiceProcess, startServiceProcess, stillAlive, temporaryDirectory } from '../support/service.ts';
import type { Ask } from './client.ts';

export type Stage = {
  ask: Ask;
  /** One disturbance; resolves when it is over and says what it was. */
  disturb(chance: Chance): Promise<string>;
  /** With everything running: the stores, looked at from beside. */
  withStores<T>(look: (stores: Pick<Stores, 'postgres' | 'clickhouse'>) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
};

/** Small slices, so that a kill meets one of them half done; few exact ids, so that files are made of the older ones. */
export const PIPELINE_SETTINGS = {
  SLICE_EVENTS_MAX: '1000',
  SLICE_WAIT_MS: '20',
  IDENTITY_HOT_IDS: '500',
  BILLING_INTERVAL_SECONDS: '1',
  // The events are of March: their day rows are asked for on the way.
  DAY_ROWS_AFTER_DAYS: '100000',
};

const ANSWER_WITHIN_MS = 20_000;
const STOPPED_WITHIN_MS = 30_000;

export async function embeddedStage(): Promise<Stage> {
  const directory = temporaryDirectory();
  const DATA_DIR = join(directory.path, 'data');
  const settings = { DATA_DIR, BOOTSTRAP_API_KEY: 'sk_test_chaos', LOG_PARTITIONS: '3', ...PIPELINE_SETTINGS };
  const start = () => startServiceProcess(settings);
  let running: Promise<ServiceProcess> = start();
  await running;

  const kill = async (chance: Chance) => {
    const service = await running;
    const victim = chance.oneOf(['main', 'main', 'postgres', 'clickhouse'] as const);
    process.kill(pidOf(service, victim), 'SIGKILL');
    await service.ended; // Until then clients go on with what still answers.
    running = start();
    await running;
    return `kill -9 ${victim}`;
  };
  const freeze = async (chance: Chance) => {
    const service = await running;
    const victim = chance.oneOf(['main', 'postgres', 'clickhouse'] as const);
    const ms = chance.whole(50, 3_000);
    const pid = pidOf(service, victim);
    process.kill(pid, 'SIGSTOP');
    await pause(ms);
    process.kill(pid, 'SIGCONT');
    return `SIGSTOP ${victim} for ${ms} ms`;
  };
  return {
    ask: async (method, path, body) => {
      const service = await running;
      const asking = service.request(method, path, { body });
      return withinTime(asking, ANSWER_WITHIN_MS);
    },
    disturb: (chance) => (chance.next() < 0.6 ? kill(chance) : freeze(chance)),
    withStores: async (look) => {
      await running;
      const addresses = readAddresses(DATA_DIR);
      if (!addresses) throw new Error('the service does not say where its stores are');
      const postgres = connectPostgres(addresses.postgres_url);
      const clickhouse = connectClickHouse(addresses.clickhouse_url);
      try {
        return await look({ postgres, clickhouse });
      } finally {
        await postgres.destroy();
        await clickhouse.close();
      }
    },
    stop: async () => {
      const service = await running.catch(() => undefined);
      try {
        if (service) await stopWhole(service);
      } finally {
        directory.remove();
      }
    },
  };
}

/** Also what was stopped by a signal; whoever is still there after that is killed, and it is said. */
async function stopWhole(service: ServiceProcess): Promise<void> {
  const all = [{ pid: service.pid, parent: 0, command: 'the service' }, ...service.processes()];
  for (const { pid } of all) signalTo(pid, 'SIGCONT');
  void service.stop();
  const left = await stillAlive(all, STOPPED_WITHIN_MS);
  for (const { pid } of left) signalTo(pid, 'SIGKILL');
  if (left.length > 0) throw new Error(`these did not stop: ${left.map(({ command }) => command).join(', ')}`);
}

/** To a process that may have ended. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function pidOf(service: ServiceProcess, victim: 'main' | 'postgres' | 'clickhouse'): number {
  return victim === 'main' ? service.pid : service.store(victim);
}

/** A request to a process that is stopped hangs: its client gives up, and does not know what became of it. */
function withinTime<T>(work: Promise<T>, ms: number): Promise<T> {
  work.catch(() => {});
  const late = pause(ms, undefined, { ref: false }).then(() => {
    throw Object.assign(new Error('no answer in time'), { name: 'TimeoutError' });
  });
  return Promise.race([work, late]);
}
