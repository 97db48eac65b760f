/** Where chaos plays: everything in one process tree, with or without stores of its own, or processes around a Kafka. */
import type { Stores } from '../../storage/foundation/stores.ts';
import type { Chance } from '../support/seeds.ts';
import type { Ask } from './client.ts';

export type Stage = {
  ask: Ask;
  /** One disturbance; resolves when it is over and says what it was. */
  disturb(chance: Chance): Promise<string>;
  /** With everything running: the stores, looked at from beside. */
  withStores<T>(look: (stores: Pick<Stores, 'postgres' | 'clickhouse'>) => Promise<T>): Promise<T>;
  /** What `npm run audit` says beside it: `green`, or what it finds. */
  audit(args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
};

/** Small slices, so that a kill meets one of them half done; few exact ids, so that files are made of the older ones. */
export const PIPELINE_SETTINGS = {
  SLICE_EVENTS_MAX: '1000',
  SLICE_WAIT_MS: '20',
  IDENTITY_HOT_IDS: '500',
  BILLING_INTERVAL_SECONDS: '1',
  // The events are of March: their daily rollups are asked for on the way.
  DAY_ROWS_AFTER_DAYS: '100000',
};

export type Disturbance = {
  /** How often it is drawn, against the others. */
  readonly weight: number;
  /** What it was: what comes behind " for " or " of " is detail, and not counted apart. */
  play(chance: Chance): Promise<string>;
};

export function drawn(disturbances: readonly Disturbance[], chance: Chance): Disturbance {
  const all = disturbances.reduce((sum, { weight }) => sum + weight, 0);
  let at = chance.next() * all;
  return disturbances.find(({ weight }) => (at -= weight) < 0) ?? disturbances.at(-1)!;
}
