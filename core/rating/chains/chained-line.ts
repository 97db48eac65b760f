/** Charges a line its share of the chain and records the inputs (docs/rules/invoices.md, "What a line was computed from"). */
import type { Decimal } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { formatMs, toInstant } from '../../foundation/time/instant.ts';
import type { ComputedFrom } from '../computed-from.ts';
import type { Chain } from './chain.ts';
import type { LineCost } from './chain-costs.ts';

export type ChainedLine = {
  readonly chain: Chain<{ readonly id: string }>;
  readonly cost: LineCost;
  /**
   * Unrounded charge of the preceding lines with their commitments. If no line has a commitment, it is absent, and `cost.until_begin` is
   * used.
   */
  readonly charged_before?: Decimal | undefined;
};

/** Version of the chain rules; a line without a version was computed before chains existed. */
export const CHAIN_VERSION = 1;

/** Rounded cost of the chain until the line's end, less the rounded cost until its start. */
export function chainedAmount({ cost, charged_before }: ChainedLine, charge: Decimal, currency: string): Decimal {
  const before = charged_before ?? cost.until_begin;
  const after = charged_before ? charged_before.plus(charge) : cost.until_end;
  return roundMoney(after, currency).minus(roundMoney(before, currency));
}

export function chainText({ chain, cost }: ChainedLine): NonNullable<ComputedFrom['chain']> {
  const { rule, lines, whole, level_since, begins } = chain;
  return {
    version: CHAIN_VERSION,
    rule,
    whole_start: formatMs(whole.start),
    whole_end: formatMs(whole.end),
    begins: formatMs(begins),
    ...(rule === 'integral' ? { level_since: formatMs(level_since) } : {}),
    lines: lines.map(({ item, service }) => ({
      line_item_id: item.id,
      start: formatMs(service.start),
      end: formatMs(service.end),
    })),
    until_begin: cost.until_begin.toFixed(),
    until_end: cost.until_end.toFixed(),
  };
}

type RecordedChainInput<Item> = {
  /** Items by the id of their line. */
  readonly items: ReadonlyMap<string, Item>;
  readonly windows: Chain['windows'];
};

/** Restores the chain recorded on a line: late events are charged by the recorded lines and rule. Null if a line no longer exists. */
export function recordedChain<Item>(
  text: NonNullable<ComputedFrom['chain']>,
  { items, windows }: RecordedChainInput<Item>,
): Chain<Item> | null {
  const lines = text.lines.flatMap(({ line_item_id, start, end }) => {
    const item = items.get(line_item_id);
    return item ? [{ item, service: { start: toInstant(start), end: toInstant(end) } }] : [];
  });
  if (lines.length < text.lines.length) return null;
  return {
    rule: text.rule,
    lines,
    whole: { start: toInstant(text.whole_start), end: toInstant(text.whole_end) },
    begins: toInstant(text.begins),
    level_since: toInstant(text.level_since ?? text.begins),
    windows,
  };
}
