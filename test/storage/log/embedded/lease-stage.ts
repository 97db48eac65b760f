/**
 * A process that holds all partitions of an embedded log (`reading-process.ts`), and a rival here that gets them when the leases of that process
 * are over.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type EmbeddedLog, openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import type { LogConsumer } from '../../../../storage/log/log.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';
import { Reader } from '../contract.ts';

type HolderOptions = { readonly alive_ms: number; readonly consumers?: number; readonly lease_ms: number };
type PartitionLease = { readonly owner: string; readonly holds: boolean };

export class LeaseStage {
  readonly database: FreshDatabase;
  readonly rival = new Reader();
  readonly log: EmbeddedLog;
  readonly child: ChildProcess;
  /** Words that the process has written. */
  readonly said: string[] = [];
  #consumer: LogConsumer | undefined;

  private constructor(database: FreshDatabase, log: EmbeddedLog, child: ChildProcess) {
    this.database = database;
    this.log = log;
    this.child = child;
    child.stdout!.setEncoding('utf8').on('data', (text: string) => this.said.push(...text.trim().split('\n')));
  }

  static async start({ alive_ms, consumers = 1, lease_ms }: HolderOptions): Promise<LeaseStage> {
    const database = await freshDatabase();
    const options = { append_timeout_ms: 5_000, linger_ms: 0, lease_ms, partition_count: consumers };
    const log = await openEmbeddedLog(database.postgres, options);
    const file = fileURLToPath(new URL('./reading-process.ts', import.meta.url));
    const numbers = [lease_ms, alive_ms, consumers].map(String);
    const args = ['--import', './process/typescript.mjs', file, database.postgres_url, ...numbers];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const stage = new LeaseStage(database, log, child);
    try {
      // Not before: a partition that the first consumer has given back would go to the rival.
      await stage.hears('shared');
      stage.#consumer = await log.consume(stage.rival);
      return stage;
    } catch (error) {
      await stage.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.#consumer?.stop();
    await this.log.close();
    await this.database.close();
  }

  heard(word: string): number {
    return this.said.filter((each) => each === word).length;
  }

  hears(word: string, times = 1): Promise<boolean> {
    return until(`it says ${word}`, async () => this.heard(word) >= times);
  }

  async listLeases(): Promise<PartitionLease[]> {
    const { rows } = await this.database.postgres.raw(
      `select owner, lease_until > now() as holds from log_partitions order by partition`,
    );
    return rows;
  }

  /** Waits until the leases of these partitions are renewed. */
  async waitForRenewal(partitions: readonly number[]): Promise<void> {
    await waitForRenewal(this.database, partitions);
  }
}

export async function waitForRenewal({ postgres }: FreshDatabase, partitions: readonly number[]): Promise<void> {
  const listEnds = async () => {
    const { rows } = await postgres.raw(`select lease_until from log_partitions order by partition`);
    return partitions.map((partition) => Date.parse(rows[partition].lease_until));
  };
  const before = await listEnds();
  await until('all of them are renewed', async () => (await listEnds()).every((end, index) => end > before[index]!));
}
