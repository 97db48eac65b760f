/** Whether what is held of a wallet can be kept, whoever uses theirs first (docs/rules/reservations.md, "Credits"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { computeMovement } from '../../../../core/credits/wallet/movement.ts';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import { deductFromLots, type Lot, sumUsableCredits, takeFromLots } from '../../../../core/rating/wallet/lots.ts';
import { canKeepPromises, computeFreeCredits, type PromisedCredits } from '../../../../core/rating/wallet/promises.ts';
import { samples } from '../../../support/samples.ts';

const lot = (id: string, available: string, { priority = null, expiry_ms = null }: Partial<Lot> = {}): Lot => ({
  id,
  credit_amount: new Decimal(available),
  available: new Decimal(available),
  priority,
  expiry_ms,
  created_ms: 0,
  pays_after_tax: false,
});

describe('what a wallet has promised', () => {
  const lasting = lot('lasting', '50', { priority: 1 });
  const first = lot('first', '50', { priority: 0, expiry_ms: 10 });
  const last = lot('last', '50', { priority: 2, expiry_ms: 10 });
  for (const [name, lots, promised, is] of [
    ['nothing', [], [], true],
    ['one for which it is there', [lasting], [[60, 50]], true],
    ['one for which it is gone by then', [last], [[11, 50]], false],
    ['up to the instant of the expiry', [last], [[10, 50]], true],
    [
      'what is used first is gone before',
      [lasting, first],
      [
        [1, 50],
        [60, 50],
      ],
      true,
    ],
    [
      'what lasts is used first',
      [lasting, last],
      [
        [1, 50],
        [60, 50],
      ],
      false,
    ],
    [
      'what lasts is enough for both',
      [lot('more', '100', { priority: 1 }), last],
      [
        [1, 50],
        [60, 50],
      ],
      true,
    ],
    [
      'what was promised is promised no more',
      [lasting, last],
      [
        [1, 50],
        [60, 50],
        [1, -50],
      ],
      true,
    ],
  ] as [string, Lot[], [number, number][], boolean][])
    it(name, () => {
      const all = promised.map(([until, credits]) => ({ until, credits: new Decimal(String(credits)) }));
      expect(canKeepPromises(lots, all)).to.equal(is);
    });
});

/** By a debit: what of the lots, and what is owed. */
function spent(
  lots: readonly Lot[],
  terms: { credits: Decimal; promised: readonly PromisedCredits[]; allow_negative?: boolean },
) {
  const holding = { conversion_rate: '1', credit_balance: ZERO, owed: ZERO, lots };
  const movement = {
    kind: 'spend',
    id: 'debit',
    transaction_reason: 'MANUAL_BALANCE_DEBIT',
    at_ms: 0,
    ...terms,
  } as const;
  const { parts, holding: after } = computeMovement(holding, movement);
  return { parts: sumDecimals(parts.map(({ credits }) => credits)), lacking: after.owed };
}

describe('what can be used of a wallet beside what it has promised', () => {
  const promise = (until: number, credits: number) => ({ until, credits: new Decimal(String(credits)) });
  const lasting = lot('lasting', '50', { priority: 1 });
  const last = lot('last', '50', { priority: 2, expiry_ms: 10 });
  for (const [name, promised, free] of [
    ['nothing promised: all', [], '100'],
    ['the rest', [promise(1, 30)], '70'],
    ['what the order of use leaves of it', [promise(60, 30)], '20'],
    ['nothing where the promise is broken', [promise(60, 70)], '0'],
    ['more was promised than there is', [promise(1, 120)], '0'],
  ] as const)
    it(name, () => expect(computeFreeCredits([lasting, last], 1, promised).toFixed()).to.equal(free));

  it('is the most that keeps them', () => {
    const few = fc.nat(6);
    const anyLot = fc.record({ available: few, priority: fc.option(fc.nat(2)), expiry_ms: fc.option(fc.nat(8)) });
    const anyPromise = fc.record({ until: fc.nat(9), credits: few });
    fc.assert(
      fc.property(fc.array(anyLot, { maxLength: 4 }), fc.array(anyPromise, { maxLength: 3 }), (drawn, promises) => {
        const lots = drawn.map(({ available, ...terms }, index) => lot(`lot ${index}`, String(available), terms));
        const promised = promises.map(({ until, credits }) => promise(until, credits));
        const free = computeFreeCredits(lots, 0, promised);
        const keeps = (credits: Decimal) =>
          canKeepPromises(deductFromLots(lots, takeFromLots(lots, credits, 0).parts), promised);
        const held = promises.reduce((sum, { credits }) => sum + credits, 0);
        const usable = sumUsableCredits(lots, 0);
        const whole = Array.from({ length: 30 }, (_, credits) => new Decimal(String(credits)));
        const most = whole.filter((credits) => credits.plus(String(held)).lte(usable) && keeps(credits)).pop();
        expect(free.toFixed()).to.equal((most ?? new Decimal(0)).toFixed());
        // A debit that may owe takes that of its own, and one that may not is done just where it takes no more.
        for (const credits of [new Decimal('5'), new Decimal('12')]) {
          const { parts, lacking } = spent(lots, { credits, promised, allow_negative: true });
          expect(parts.toFixed()).to.equal(Decimal.min(credits, free).toFixed());
          expect(lacking.toFixed()).to.equal(credits.minus(parts).toFixed());
          if (credits.gt(free)) expect(() => spent(lots, { credits, promised })).to.throw(/credits/);
          else expect(spent(lots, { credits, promised }).parts.toFixed()).to.equal(credits.toFixed());
        }
      }),
      { numRuns: samples(1000) },
    );
  });
});
