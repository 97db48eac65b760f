/** Loads the definition and version that count a query, and whether bucket rows exist for it. */
import { FarthingError } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { Stores } from '../foundation/stores.ts';
import { type CountingMoment, loadCountingMoment } from '../progress/counting-moment.ts';
import { loadBarriers } from '../progress/meter-versions.ts';
import { type PartitionProgress } from '../progress/partition-progress.ts';
import { loadSharedProgress } from '../progress/slices.ts';
import type { MeterUsageQuery } from './usage-query.ts';

type UsageCounter = {
  readonly definition: MeterDefinition;
  /** Version of the meter; 0 for a definition that the query supplies. */
  readonly version: number;
  readonly has_buckets: boolean;
  /** The offset at which each partition stopped counting; only for a stopped meter. */
  readonly stop: ReadonlyMap<number, bigint> | undefined;
};

/** The counter and the progress are of one moment, but the stop offsets of a stopped meter are read afterwards. */
export type CurrentCounting = {
  readonly counter: UsageCounter;
  readonly progress: readonly PartitionProgress[];
  /** False if no event of the environment was corrected until then. */
  readonly has_corrections: boolean;
};

export async function loadCurrentCounting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { definition, meter }: Pick<MeterUsageQuery, 'definition' | 'meter'>,
): Promise<CurrentCounting> {
  if (definition) {
    const counter = { definition, version: 0, has_buckets: false, stop: undefined };
    return { counter, progress: await loadSharedProgress(postgres), has_corrections: true };
  }
  const { progress, versions, has_corrections } = await loadCountingMoment(postgres, scope, meter.id);
  if (!versions) throw new FarthingError('internal_error', `meter ${meter.id} has no version to count by`);
  return { counter: await loadCounter(postgres, versions), progress, has_corrections };
}

async function loadCounter(
  postgres: Stores['postgres'],
  { newest, counting }: NonNullable<CountingMoment['versions']>,
): Promise<UsageCounter> {
  return {
    definition: counting.definition!,
    version: counting.version,
    has_buckets: counting.state === 'live',
    stop: newest === counting ? undefined : await loadBarriers(postgres, newest),
  };
}

/**
 * Whether the counter has not changed between `a` and `b`. Versions never repeat, so a counter with an equal version was not replaced in
 * between.
 */
export function isSameCounter(a: UsageCounter, b: UsageCounter): boolean {
  return a.version === b.version && a.has_buckets === b.has_buckets && isSameStop(a.stop, b.stop);
}

/** Compares the stop offsets: they change if a partition reaches the final barrier of a stopped meter during the read. */
function isSameStop(a: UsageCounter['stop'], b: UsageCounter['stop']): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.size === b.size && [...a].every(([partition, offset]) => b.get(partition) === offset);
}
