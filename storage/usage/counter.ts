/** By what a question is counted, and whether rows of it are there. */
import { FarthingError } from '../../core/error.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { Scope } from '../../core/scope.ts';
import { type CountingMoment, countingMoment } from '../progress/counting-moment.ts';
import { barriersOf } from '../progress/meter-versions.ts';
import { type SliceState } from '../progress/slice-state.ts';
import { sharedProgress } from '../progress/slices.ts';
import type { Stores } from '../stores.ts';
import type { UsageAsked } from './usage-asked.ts';

export type Counter = {
  readonly definition: MeterDefinition;
  /** 0 for a definition of the question's own. */
  readonly version: number;
  readonly has_buckets: boolean;
  /** Where each partition stopped counting, of a meter that was stopped. */
  readonly stop: ReadonlyMap<number, bigint> | undefined;
};

/** Both are of one moment; but for a stopped meter, where it stopped is read afterwards. */
export type Counting = { readonly counter: Counter; readonly progress: readonly SliceState[] };

export async function countingNow(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { definition, meter }: Pick<UsageAsked, 'definition' | 'meter'>,
): Promise<Counting> {
  if (definition) {
    const counter = { definition, version: 0, has_buckets: false, stop: undefined };
    return { counter, progress: await sharedProgress(postgres) };
  }
  const { progress, versions } = await countingMoment(postgres, scope, meter.id);
  if (!versions) throw new FarthingError('internal_error', `meter ${meter.id} has no version to count by`);
  return { counter: await counterOf(postgres, versions), progress };
}

async function counterOf(
  postgres: Stores['postgres'],
  { newest, counting }: NonNullable<CountingMoment['versions']>,
): Promise<Counter> {
  return {
    definition: counting.definition!,
    version: counting.version,
    has_buckets: counting.state === 'live',
    stop: newest === counting ? undefined : await barriersOf(postgres, newest),
  };
}

/** Versions only follow one another, so what is the same before and after was so in between. */
export function isSameCounter(a: Counter, b: Counter): boolean {
  return a.version === b.version && a.has_buckets === b.has_buckets && isSameStop(a.stop, b.stop);
}

/** A partition that meets the barrier of a meter meanwhile counts nothing behind it. */
function isSameStop(a: Counter['stop'], b: Counter['stop']): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.size === b.size && [...a].every(([partition, offset]) => b.get(partition) === offset);
}
