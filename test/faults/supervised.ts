/** The service of one data directory, started again whenever it ends by itself or is killed, as a supervisor does. */
import { setTimeout as pause } from 'node:timers/promises';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { readAddresses } from '../../storage/embedded/addresses.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { type ServiceProcess, signalTo, startServiceProcess, stillAlive } from '../support/service.ts';

type Victim = 'main' | 'postgres' | 'clickhouse';
type Settings = Record<string, string> & { DATA_DIR: string };

const ANSWER_WITHIN_MS = 20_000;
const STOPPED_WITHIN_MS = 30_000;

export class SupervisedService {
  readonly #beforeStart: () => Promise<void> | void;
  #settings: Settings;
  #running: Promise<ServiceProcess>;
  #stopping = false;
  starts = 0;

  /** `beforeStart` is called whenever it has ended, before it is started again: what was at fault may be mended there. */
  constructor(settings: Settings, beforeStart: () => Promise<void> | void = () => {}) {
    this.#settings = settings;
    this.#beforeStart = beforeStart;
    this.#running = this.#start();
    this.#running.catch(() => {});
  }

  /** Waits while it is being started again. */
  current(): Promise<ServiceProcess> {
    return this.#running;
  }

  /** From the next start on. */
  moveTo(DATA_DIR: string): void {
    this.#settings = { ...this.#settings, DATA_DIR };
  }

  /** Of a command beside it. */
  get settings(): Record<string, string> {
    const { DATA_DIR, DATABASE_URL = '', CLICKHOUSE_URL = '' } = this.#settings;
    // With a store of its own it says itself where both are.
    return DATABASE_URL && CLICKHOUSE_URL ? { DATA_DIR, DATABASE_URL, CLICKHOUSE_URL } : { DATA_DIR };
  }

  get data_dir(): string {
    return this.#settings.DATA_DIR;
  }

  async ask<Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) {
    const service = await this.#running;
    return withinTime(service.request(method, path, { body }), ANSWER_WITHIN_MS);
  }

  /** kill -9; resolves when it is started again. */
  async kill(victim: Victim): Promise<void> {
    const service = await this.#running;
    process.kill(await this.pidOf(victim), 'SIGKILL');
    await service.ended; // Until then clients go on with what still answers.
    await this.#running;
  }

  async freeze(victim: Victim, ms: number): Promise<void> {
    const pid = await this.pidOf(victim);
    process.kill(pid, 'SIGSTOP');
    await pause(ms);
    process.kill(pid, 'SIGCONT');
  }

  async pidOf(victim: Victim): Promise<number> {
    const service = await this.#running;
    return victim === 'main' ? service.pid : service.store(victim);
  }

  /** The stores that it runs on, from beside. */
  async withStores<T>(look: (stores: Pick<Stores, 'postgres' | 'clickhouse'>) => Promise<T>): Promise<T> {
    await this.#running;
    const { DATABASE_URL: postgres_url, CLICKHOUSE_URL: clickhouse_url } = this.#settings;
    const own = postgres_url && clickhouse_url ? { postgres_url, clickhouse_url } : undefined;
    const addresses = own ?? readAddresses(this.data_dir);
    if (!addresses) throw new Error('the service does not say where its stores are');
    const postgres = connectPostgres(addresses.postgres_url);
    const clickhouse = connectClickHouse(addresses.clickhouse_url);
    try {
      return await look({ postgres, clickhouse });
    } finally {
      await postgres.destroy();
      await clickhouse.close();
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const service = await this.#running.catch(() => undefined);
    if (service) await stopWhole(service);
  }

  async #start(): Promise<ServiceProcess> {
    this.starts++;
    const service = await startServiceProcess(this.#settings);
    void service.ended.then(() => {
      if (this.#stopping) return;
      this.#running = this.#startAgain(service);
      this.#running.catch(() => {});
    });
    return service;
  }

  async #startAgain(before: ServiceProcess): Promise<ServiceProcess> {
    // What an end without a farewell leaves: the stores end by themselves when their parent is gone.
    await stillAlive(before.processes(), STOPPED_WITHIN_MS);
    await this.#beforeStart();
    return this.#start();
  }
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

/** A request to a process that is stopped hangs: its client gives up, and does not know what became of it. */
function withinTime<T>(work: Promise<T>, ms: number): Promise<T> {
  work.catch(() => {});
  const late = pause(ms, undefined, { ref: false }).then(() => {
    throw Object.assign(new Error('no answer in time'), { name: 'TimeoutError' });
  });
  return Promise.race([work, late]);
}
