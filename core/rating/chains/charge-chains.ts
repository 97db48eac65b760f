/**
 * Charges of chains for an invoice (docs/rules/proration.md, "Usage over a change"): the usage that has to be read for them, and the share
 * of each line in the cost of its chain.
 */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import { FarthingError } from '../../foundation/error.ts';
import type { Period } from '../../foundation/time/period.ts';
import type { LineAmount, MeasuredUsage, PricedItem } from '../line-amount.ts';
import { type Chain, type ChainLine, computeChainUsageWindow } from './chain.ts';
import { chainCosts, type LineCost } from './chain-costs.ts';
import type { ChainedLine } from './chained-line.ts';

/** The line item and its exact service period identify a charge. */
export function chargeKey(lineItemId: string, service: Period): string {
  return `${lineItemId}/${service.start}/${service.end}`;
}

type ChainableCharge<Item> = ChainLine<Item> & { readonly usage_window: Period | null; readonly chain?: Chain<Item> };

/** A usage query, and the keys of the charges that use its result. */
type UsageToRead<Item> = ChainLine<Item> & {
  readonly window: Period;
  readonly chain: Chain<Item> | undefined;
  readonly keys: readonly string[];
};

/**
 * Lists the usage to read for the charges, including that of the other lines of their chains, which may be on other invoices. Usage that
 * all lines of a chain share is read once.
 */
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
    window: computeChainUsageWindow(chain, line.service),
    chain,
    keys: [chargeKey(line.item.id, line.service)],
  }));
  const [first] = reads;
  if (chain.rule !== 'shared' || !first) return reads;
  return [{ ...first, keys: reads.flatMap(({ keys }) => keys) }];
}

/** Whether the line has begun. While the period runs, a line that begins later has no measured usage. */
function hasBegun({ measured_until }: Pick<Chain, 'measured_until'>, { service }: ChainLine<unknown>): boolean {
  return measured_until === undefined || service.start < measured_until;
}

/** Charges the lines of one invoice, or one query, by their chains. Lines of a chain are priced in order of time. */
export class ChainCharges<Item extends PricedItem> {
  readonly #usage: ReadonlyMap<string, MeasuredUsage>;
  readonly #costs = new Map<Chain<Item>, readonly LineCost[]>();
  readonly #charged = new Map<Chain<Item>, Decimal>();

  /** `usage` contains the result of each query of `usageToRead`, by `chargeKey`. */
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
    // A line with a commitment does not add exactly the cost of its usage. So the sum of the committed charges is
    // carried from line to line.
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

/**
 * While the period runs, the current line pays all of the chain's cost that the lines before it do not pay. Otherwise, without any new
 * usage, the shares of the lines would change as time passes.
 */
function withPlanned<Item>(chain: Chain<Item>, costs: readonly LineCost[]): readonly LineCost[] {
  const running = chain.lines.findLastIndex((line) => hasBegun(chain, line));
  const until_end = costs.at(-1)!.until_end;
  return costs.map((cost, index) => (index === running ? { ...cost, until_end } : cost));
}
