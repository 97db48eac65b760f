/**
 * The charges of chains on their way to an invoice (docs/rules/proration.md, "Usage over a change"): which usage has to be read for them,
 * and what each line has of what its chain costs.
 */
import { type Decimal, ZERO } from '../../decimal.ts';
import { FarthingError } from '../../error.ts';
import type { Period } from '../../time/period.ts';
import type { LineAmount, MeasuredUsage, PricedItem } from '../line-amount.ts';
import { type Chain, type ChainLine, usageWindowIn } from './chain.ts';
import { chainCosts, type LineCost } from './chain-costs.ts';
import type { ChainedLine } from './chained-line.ts';

/** A charge is known by its line item and its exact service period. */
export function chargeKey(lineItemId: string, service: Period): string {
  return `${lineItemId}/${service.start}/${service.end}`;
}

type ChainableCharge<Item> = ChainLine<Item> & { readonly usage_window: Period | null; readonly chain?: Chain<Item> };

/** One question to the reader of usage, and the charges that its answer is for. */
export type UsageToRead<Item> = ChainLine<Item> & {
  readonly window: Period;
  readonly chain: Chain<Item> | undefined;
  readonly keys: readonly string[];
};

/** With those of the other lines of their chains, which may stand on other invoices. What all lines of a chain share is read once. */
export function usageToRead<Item extends { readonly id: string }>(
  charges: readonly ChainableCharge<Item>[],
): UsageToRead<Item>[] {
  const chains = new Set(charges.flatMap(({ chain }) => chain ?? []));
  const alone = charges.flatMap(({ item, service, usage_window, chain }) =>
    usage_window === null || chain
      ? []
      : [{ item, service, window: usage_window, chain: undefined, keys: [chargeKey(item.id, service)] }],
  );
  return [...alone, ...[...chains].flatMap(chainToRead)];
}

function chainToRead<Item extends { readonly id: string }>(chain: Chain<Item>): UsageToRead<Item>[] {
  const begun = chain.lines.filter((line) => hasBegun(chain, line));
  const reads = begun.map((line) => ({
    ...line,
    window: usageWindowIn(chain, line.service),
    chain,
    keys: [chargeKey(line.item.id, line.service)],
  }));
  const [first] = reads;
  if (chain.rule !== 'shared' || !first) return reads;
  return [{ ...first, keys: reads.flatMap(({ keys }) => keys) }];
}

/** While the period runs, nothing is measured of a planned line. */
function hasBegun({ measured_until }: Pick<Chain, 'measured_until'>, { service }: ChainLine<unknown>): boolean {
  return measured_until === undefined || service.start < measured_until;
}

/** Charges the lines of one invoice, or one answer, by their chains. Lines of a chain are priced in order of time. */
export class ChainCharges<Item extends PricedItem> {
  readonly #usage: ReadonlyMap<string, MeasuredUsage>;
  readonly #costs = new Map<Chain<Item>, readonly LineCost[]>();
  readonly #charged = new Map<Chain<Item>, Decimal>();

  /** By `chargeKey`, one answer for each of `usageToRead`. */
  constructor(usage: ReadonlyMap<string, MeasuredUsage>) {
    this.#usage = usage;
  }

  price(
    { item, service, chain }: Omit<ChainableCharge<Item>, 'usage_window'>,
    priceLine: (chained: ChainedLine | undefined) => LineAmount,
  ): LineAmount {
    if (!chain) return priceLine(undefined);
    const isIn = (line: ChainLine<Item>) => line.item.id === item.id && line.service.start === service.start;
    const cost = this.#ensureCosts(chain)[chain.lines.findIndex(isIn)];
    if (!cost) throw new FarthingError('system_error', `line item ${item.id} is not in its chain`);
    if (!chain.lines.some((line) => line.item.commitment)) return priceLine({ chain, cost });
    // A commitment makes of what a line adds something else: what is rounded is the sum of that.
    const charged_before = this.#charged.get(chain) ?? cost.until_begin;
    const line = priceLine({ chain, cost, charged_before });
    this.#charged.set(chain, charged_before.plus(line.exact ?? ZERO));
    return line;
  }

  #ensureCosts(chain: Chain<Item>): readonly LineCost[] {
    const known = this.#costs.get(chain);
    if (known) return known;
    const costs = withPlanned(
      chain,
      chainCosts(chain, (line) => this.#measured(chain, line)),
    );
    this.#costs.set(chain, costs);
    return costs;
  }

  /** A failed usage read is an error (docs/rules/usage.md, "Never a quiet zero"). */
  #measured(chain: Chain<Item>, line: ChainLine<Item>): MeasuredUsage | null {
    if (!hasBegun(chain, line)) return null;
    const measured = this.#usage.get(chargeKey(line.item.id, line.service));
    if (measured) return measured;
    throw new FarthingError('system_error', `no usage was read for line item ${line.item.id}`);
  }
}

/** While the period runs the line in force has what its chain costs in all, so that no time that passes changes that. */
function withPlanned<Item>(chain: Chain<Item>, costs: readonly LineCost[]): readonly LineCost[] {
  const running = chain.lines.findLastIndex((line) => hasBegun(chain, line));
  const until_end = costs.at(-1)!.until_end;
  return costs.map((cost, index) => (index === running ? { ...cost, until_end } : cost));
}
