/**
 * Charges of chains on final invoices (docs/rules/proration.md, "Usage over a change"). If events come late for one line, all lines of its
 * chain are measured again, as the chain was recorded. Tiers, shares and corrections continue from one line to the next.
 */

import { groupBy } from '../../core/foundation/group-by.ts';
import { recordedChain } from '../../core/rating/chains/chained-line.ts';
import { chargeKey, usageToRead } from '../../core/rating/chains/charge-chains.ts';
import type { ComputedFrom } from '../../core/rating/computed-from.ts';
import type { ClosedCharge } from '../../core/rating/late-events.ts';
import type { MeasuredUsage } from '../../core/rating/line-amount.ts';
import { mapConcurrently } from '../../storage/concurrency/batch-loader.ts';
import { type AllowanceWindows, computeLimitedSince } from './allowances/gather-allowances.ts';
import { type BillableItem, CHARGES_AT_ONCE } from './billable-items.ts';
import type { UsageMeasure } from './measure-usage.ts';

/** A charge that an invoice line recorded, with the limits that applied then. */
export type RecordedCharge = Omit<ClosedCharge<BillableItem>, 'measured'> & {
  readonly limited: readonly AllowanceWindows[];
};

/**
 * Whether a limit of the charge began before the charge. Usage before the charge, including late usage, has then used some of the free
 * units.
 */
export function hasEarlierUse({ limited, usage_window }: RecordedCharge): boolean {
  return computeLimitedSince(limited) < usage_window.start;
}

/** A charge with the chain that its line recorded. */
export type ChainedWindow = {
  readonly charge: RecordedCharge;
  readonly chain: NonNullable<ComputedFrom['chain']>;
  /** True if progressive billing invoiced an amount that later invoices could not fully offset. */
  readonly isCarrying: boolean;
  /** No late event can affect the charge. */
  readonly isSame: boolean;
};

type ClosedChainsInput = { readonly items: readonly BillableItem[]; readonly corrected: boolean };

export async function gatherClosedChains(
  windows: readonly ChainedWindow[],
  { items, corrected }: ClosedChainsInput,
  measure: UsageMeasure,
): Promise<ClosedCharge<BillableItem>[]> {
  const closed: ClosedCharge<BillableItem>[] = [];
  const itemsById = new Map(items.map((item) => [item.id, item]));
  for (const those of groupBy(windows, ({ chain }) => JSON.stringify([chain.rule, chain.lines])).values()) {
    if (those.every(({ isSame }) => isSame)) continue;
    const chain = recordedChain(those[0].chain, {
      items: itemsById,
      windows: those[0].charge.item.chain_terms?.windows ?? null,
    });
    // A line that no longer exists was never charged.
    if (chain === null) continue;
    const limits = new Map(those.map(({ charge }) => [chargeKey(charge.item.id, charge.service), charge.limited]));
    const usage = new Map<string, MeasuredUsage>();
    const reads = usageToRead(chain.lines.map((line) => ({ ...line, usage_window: line.service, chain })));
    await mapConcurrently(CHARGES_AT_ONCE, reads, async ({ item, window, service, keys }) => {
      const limited = keys.map((key) => limits.get(key)).find((one) => one !== undefined);
      const measured = await measure(item, window, { service, chain, ...(limited ? { limited } : {}) });
      for (const key of keys) usage.set(key, measured);
    });
    const charges = those.map(({ charge, isCarrying }) => {
      const measured = usage.get(chargeKey(charge.item.id, charge.service))!;
      const late = measured.event_count - charge.billed_event_count;
      return { charge: { ...charge, measured }, late, isOther: late !== 0 || hasEarlierUse(charge) || isCarrying };
    });
    if (!corrected && charges.every(({ isOther }) => !isOther)) continue;
    const late_count = countLate(chain.rule, charges);
    charges.sort((a, b) => a.charge.service.start - b.charge.service.start);
    closed.push(...charges.map(({ charge }) => ({ ...charge, chained: { chain, usage, late_count } })));
  }
  return closed;
}

/** Counts late events. If all lines of the chain count the same events, the largest count applies; otherwise the counts add up. */
function countLate(rule: string, charges: readonly { readonly late: number }[]): number {
  const lates = charges.map(({ late }) => late);
  return rule === 'additive' ? lates.reduce((sum, late) => sum + late, 0) : Math.max(...lates);
}
