/**
 * carbon-layer: a third-party program that sends storms of webhooks, which it builds and signs as Stripe and Razorpay do. It is a Python
 * package on PYTHONPATH, which `.ci/run` installs; nothing of it is in this repository.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** A record at the provider; an event of the storm reports its state. */
export type ReportedRecord = {
  readonly entity_type: 'payment' | 'refund' | 'dispute';
  readonly state: 'authorized' | 'captured' | 'failed' | 'processed' | 'open';
  readonly remote_id: string;
  /** Metadata of the record in the event. */
  readonly metadata?: object;
};

export type StormTarget = { readonly url: string; readonly secret: string; readonly provider: 'stripe' | 'razorpay' };
export type Storm = StormTarget & {
  readonly records: readonly ReportedRecord[];
  /** Deliveries of each event; 1 if absent. */
  readonly repeat?: number;
  readonly order?: 'sequence' | 'reverse' | 'random';
  readonly signature_mode?: 'valid' | 'missing' | 'corrupted' | 'wrong_secret';
};
type SentStorm = {
  readonly run_id: string;
  /** `status_code` is null without an answer; `payload` is the body. */
  readonly deliveries: readonly { event_type: string; status_code: number | null; payload: string }[];
};

export class CarbonLayer {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async open(): Promise<CarbonLayer> {
    return new CarbonLayer(await mkdtemp(join(tmpdir(), 'carbon-layer-')));
  }

  async close(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Up to 25 deliveries are on their way at once. */
  send({ records, ...storm }: Storm): Promise<SentStorm> {
    const named = records.map((record, index) => ({ local_id: `record_${index}`, ...record }));
    return this.#run({ ...storm, records: named });
  }

  /** Delivers the events of an earlier storm again, each as often as in that storm. */
  replay(run_id: string, target: StormTarget): Promise<SentStorm> {
    return this.#run({ ...target, run_id });
  }

  async #run(input: object): Promise<SentStorm> {
    const child = spawn('python3', [join(import.meta.dirname, 'carbon_layer_storm.py')], {
      stdio: ['pipe', 'pipe', 'inherit'],
      // The program reads a file .env in its working directory.
      cwd: this.#directory,
      env: { ...process.env, DATABASE_URL: `sqlite:///${join(this.#directory, 'storms.db')}` },
    });
    child.stdin.end(JSON.stringify(input));
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code !== 0) throw new Error(`carbon-layer ended with ${code}`);
    return JSON.parse(output);
  }
}
