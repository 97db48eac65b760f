/**
 * Movements against a plain ledger: a list of lots with a number each, and a number that is owed. Whatever is done in whatever order, both
 * say the same; no lot is below 0 or above what was put in, and every movement adds up to 0.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { computeMovement, type Movement, type WalletHolding } from '../../../../core/credits/wallet/movement.ts';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import { FarthingError } from '../../../../core/foundation/error.ts';
import type { LotKind } from '../../../../core/rating/wallet/lots.ts';
import { samples } from '../../../support/samples.ts';

type PlainLot = {
  id: string;
  put_in: number;
  left: number;
  priority: number | null;
  expiry: number | null;
  at: number;
  isAfterTax: boolean;
};

/** Whole numbers, one credit after the other, each from the best lot by a full comparison. */
class Plain {
  lots: PlainLot[] = [];
  owed = 0;
  get balance() {
    return this.lots.reduce((sum, { left }) => sum + left, 0) - this.owed;
  }
  credit(lot: PlainLot) {
    this.lots.push(lot);
    while (this.owed > 0 && lot.left > 0) {
      this.owed--;
      lot.left--;
    }
  }
  /** What comes back to these lots pays what is owed out of the last of them first, which was used first. */
  putBack(parts: readonly { lot: PlainLot; n: number }[]) {
    for (const { lot, n } of parts.toReversed()) {
      const repaid = Math.min(this.owed, n);
      this.owed -= repaid;
      lot.left += n - repaid;
    }
  }
  /** Null when there is not enough. */
  spend(credits: number, now: number, { mayOwe, kind }: { mayOwe: boolean; kind?: LotKind | undefined }) {
    const usable = this.lots.filter(
      ({ left, expiry, isAfterTax }) =>
        left > 0 && (expiry === null || expiry >= now) && (!kind || isAfterTax === (kind === 'after_tax')),
    );
    if (!mayOwe && usable.reduce((sum, { left }) => sum + left, 0) < credits) return null;
    const taken = new Map<string, number>();
    for (let n = 0; n < credits; n++) {
      const best = usable
        .filter(({ left }) => left > 0)
        .reduce<PlainLot | null>((a, b) => (a && comes(a, b) ? a : b), null);
      if (!best) this.owed++;
      else {
        best.left--;
        taken.set(best.id, (taken.get(best.id) ?? 0) + 1);
      }
    }
    return taken;
  }
}

function comes(a: PlainLot, b: PlainLot): boolean {
  const last = Number.POSITIVE_INFINITY;
  const key = (lot: PlainLot) => [
    Number(lot.isAfterTax),
    lot.priority ?? last,
    lot.expiry ?? last,
    -lot.put_in,
    lot.at,
  ];
  const [first, second] = [key(a), key(b)];
  const at = first.findIndex((value, index) => value !== second[index]);
  return at === -1 ? a.id < b.id : first[at]! < second[at]!;
}

/** So few values that lots are often alike but for their age. */
const perhaps = (...values: number[]) => fc.constantFrom(null, null, ...values);
const deeds = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('credit' as const),
      n: fc.constantFrom(1, 4, 4, 9),
      priority: perhaps(0, 1),
      expiry: perhaps(5, 20, 30),
      isAfterTax: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('spend' as const), n: fc.integer({ min: 1, max: 12 }), owing: fc.boolean() }),
    fc.record({
      kind: fc.constant('spend_kind' as const),
      n: fc.integer({ min: 1, max: 6 }),
      of_kind: fc.constantFrom('before_tax' as const, 'after_tax' as const),
    }),
    fc.record({ kind: fc.constant('take' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('put_back' as const), which: fc.nat(20), many: fc.integer({ min: 1, max: 3 }) }),
  ),
  { maxLength: 40 },
);

const EMPTY: WalletHolding = { conversion_rate: '1', credit_balance: ZERO, owed: ZERO, lots: [] };

describe('movements of credits', () => {
  it('say what a plain ledger says', () => {
    fc.assert(
      fc.property(deeds, (all) => {
        const plain = new Plain();
        let holding = EMPTY;
        for (const [now, deed] of all.entries()) {
          // Ids that are not made in the order of age: the older lot comes first by its age, and by its id only where both are as old.
          const id = `lot-${String(99 - now).padStart(2, '0')}`;
          const created_ms = now >> 1;
          const told = { id, transaction_reason: 'MANUAL_BALANCE_DEBIT' as const };
          let movement: Movement;
          let expected: Map<string, number> | null = new Map();
          if (deed.kind === 'credit') {
            const { n, priority, expiry, isAfterTax } = deed;
            plain.credit({ id, put_in: n, left: n, priority, expiry, at: created_ms, isAfterTax });
            movement = {
              ...told,
              transaction_reason: 'FREE_CREDIT_GRANT',
              kind: 'credit',
              credits: new Decimal(n),
              priority,
              expiry_ms: expiry,
              created_ms,
              pays_after_tax: isAfterTax,
            };
          } else if (deed.kind === 'spend') {
            expected = plain.spend(deed.n, now, { mayOwe: deed.owing });
            movement = { ...told, kind: 'spend', credits: new Decimal(deed.n), at_ms: now, allow_negative: deed.owing };
          } else if (deed.kind === 'spend_kind') {
            const { n, of_kind } = deed;
            expected = plain.spend(n, now, { mayOwe: false, kind: of_kind });
            movement = { ...told, kind: 'spend', credits: new Decimal(n), at_ms: now, of_kind };
          } else {
            const lots = Array.from(plain.lots.keys(), (n) => plain.lots[(deed.which + n) % plain.lots.length]!);
            const movable = lots.map((lot) => ({ lot, n: deed.kind === 'take' ? lot.left : lot.put_in - lot.left }));
            const parts = movable.filter(({ n }) => n > 0).slice(0, deed.kind === 'take' ? 1 : deed.many);
            if (parts.length === 0) continue;
            if (deed.kind === 'put_back') plain.putBack(parts);
            else
              for (const { lot, n } of parts) {
                lot.left -= n;
                expected.set(lot.id, n);
              }
            movement = {
              ...told,
              kind: deed.kind,
              parts: parts.map(({ lot, n }) => ({ lot_id: lot.id, credits: new Decimal(n) })),
            };
          }
          if (expected === null) {
            expect(() => computeMovement(holding, movement)).to.throw(FarthingError);
            continue;
          }
          const decided = computeMovement(holding, movement);
          expect(sumDecimals(decided.postings.map(({ credits }) => credits)).toFixed()).to.equal('0');
          if (deed.kind !== 'credit' && deed.kind !== 'put_back')
            expect(decided.parts.map(({ lot_id, credits }) => [lot_id, credits.toNumber()])).to.deep.equal([
              ...expected,
            ]);
          holding = decided.holding;
          expect(holding.credit_balance.toFixed()).to.equal(String(plain.balance));
          expect(holding.owed.toFixed()).to.equal(String(plain.owed));
          expect(holding.lots.map(({ available }) => available.toNumber())).to.deep.equal(
            plain.lots.map(({ left }) => left),
          );
        }
      }),
      { numRuns: samples(500) },
    );
  });

  it('of lots that are alike the older is used first, whatever their ids, and the lower id of those that are as old', () => {
    const lot = {
      kind: 'credit' as const,
      credits: new Decimal(5),
      priority: null,
      expiry_ms: null,
      pays_after_tax: false,
    };
    let holding = EMPTY;
    for (const [id, created_ms] of [
      ['b', 2],
      ['a', 2],
      ['c', 1],
    ] as const)
      ({ holding } = computeMovement(holding, { ...lot, id, created_ms, transaction_reason: 'FREE_CREDIT_GRANT' }));
    const spend = { id: 'd', transaction_reason: 'MANUAL_BALANCE_DEBIT' as const, kind: 'spend' as const };
    const { parts } = computeMovement(holding, { ...spend, credits: new Decimal(12), at_ms: 3 });
    expect(parts.map(({ lot_id, credits }) => `${lot_id} ${credits}`)).to.deep.equal(['c 5', 'a 5', 'b 2']);
  });

  it('a lot that expires at an instant can be used at it, and not after it', () => {
    const lot = {
      kind: 'credit' as const,
      credits: new Decimal(5),
      priority: null,
      expiry_ms: 1000,
      created_ms: 0,
      pays_after_tax: false,
    };
    const { holding } = computeMovement(EMPTY, { ...lot, id: 'a', transaction_reason: 'FREE_CREDIT_GRANT' });
    const spend = { id: 'b', transaction_reason: 'MANUAL_BALANCE_DEBIT' as const, kind: 'spend' as const };
    const credits = new Decimal(2);
    expect(computeMovement(holding, { ...spend, credits, at_ms: 1000 }).holding.credit_balance.toFixed()).to.equal('3');
    expect(() => computeMovement(holding, { ...spend, credits, at_ms: 1001 })).to.throw(
      'does not have so many credits',
    );
  });
});
