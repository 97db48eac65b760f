/**
 * What was made of usage in its order up to an instant, kept so that who asks again reads what came later alone. It holds while the usage before that instant is what
 * it was: the rows say how many events there are, and what they come to, and no raw event was corrected since.
 */
import { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import type { Milliseconds } from '../../core/time/instant.ts';
import { rebuildsOf } from '../progress/slice-state.ts';
import { sharedProgress } from '../progress/slices.ts';
import type { Database, Stores } from '../stores.ts';
import { readUsage, type UsageQuestion } from './usage.ts';
import { readUsageInOrder, type UsageInOrder } from './usage-in-order.ts';

/** `made` is of all usage before `at`. */
export type Until<Made> = {
  readonly at: Milliseconds;
  readonly event_count: number;
  readonly quantity: Decimal;
  readonly made: Made;
};
type Kept = Until<unknown> & { readonly meter_version: number; readonly rebuilds: bigint };

/** Usage behind what is known of it, or all of it. */
export type UsageBehind<Made> = {
  readonly read: UsageInOrder;
  readonly known: Until<Made> | null;
  /** Keeps what was made of it, where nothing was corrected meanwhile. */
  keep(until: Until<Made>): void;
};

const KEPT_MAX = 10_000;
const histories = new WeakMap<Database, Map<string, Kept>>();

/** `key` names what is made of the question, with everything else that it goes by. */
export async function readUsageBehind<Made>(
  stores: Stores,
  scope: Scope,
  { key, question }: { key: string; question: UsageQuestion },
): Promise<UsageBehind<Made>> {
  const own = JSON.stringify([scope.tenant_id, scope.environment_id, key]);
  const rebuilds = await rebuildsNow(stores);
  const behind = await behindKept(stores, scope, { own, question, rebuilds });
  const read = behind?.read ?? (await readUsageInOrder(stores, scope, question));
  const isSame = rebuilds !== null && (await rebuildsNow(stores)) === rebuilds;
  return {
    read,
    known: (behind?.known ?? null) as Until<Made> | null,
    keep(until) {
      if (isSame) keep(stores.postgres, own, { ...until, meter_version: read.meter_version, rebuilds });
    },
  };
}

type Asking = { readonly own: string; readonly question: UsageQuestion; readonly rebuilds: bigint | null };

/** What came late shows in the rows, which are asked behind the events: an event that came between is in them. */
async function behindKept(stores: Stores, scope: Scope, { own, question, rebuilds }: Asking) {
  const known = histories.get(stores.postgres)?.get(own);
  if (known === undefined || known.rebuilds !== rebuilds || known.at > (question.now_ms ?? 0)) return null;
  const read = await readUsageInOrder(stores, scope, { ...question, start_ms: known.at });
  const before = await readUsage(stores, scope, { ...question, end_ms: known.at });
  const versions = [read.meter_version, before.meter_version];
  const isThat = before.event_count === known.event_count && before.quantity.eq(known.quantity);
  const isSame = isThat && versions.every((version) => version === known.meter_version);
  return isSame && (await rebuildsNow(stores)) === rebuilds ? { read, known } : null;
}

function keep(postgres: Database, own: string, kept: Kept): void {
  let all = histories.get(postgres);
  if (all === undefined) histories.set(postgres, (all = new Map()));
  all.delete(own);
  all.set(own, kept);
  if (all.size > KEPT_MAX) all.delete(all.keys().next().value!);
}

/** Null while rows are rebuilt: raw events count otherwise soon. */
async function rebuildsNow({ postgres }: Stores): Promise<bigint | null> {
  const progress = await sharedProgress(postgres);
  return progress.some(({ gate }) => gate !== null) ? null : rebuildsOf(progress);
}
