/**
 * Movements against a plain ledger: a list of lots with a number each, and a number that is owed. Whatever is done in whatever order, both
 * say the same; no lot is below 0 or above what was put in, and every movement adds up to 0.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumOf, ZERO } from '../../../core/decimal.ts';
import { FarthingError } from '../../../core/error.ts';
import { type Holding, type Movement, move } from '../../../core/wallet/movement.ts';

type PlainLot = {
  id: string;
  put_in: number;
  left: number;
  priority: number | null;
  expiry: number | null;
  at: number;
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
  putBack(lot: PlainLot, credits: number) {
    const repaid = Math.min(this.owed, credits);
    this.owed -= repaid;
    lot.left += credits - repaid;
  }
  /** Null when there is not enough. */
  spend(credits: number, now: number, mayOwe: boolean): Map<string, number> | null {
    const usable = this.lots.filter(({ left, expiry }) => left > 0 && (expiry === null || expiry >= now));
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
  const key = (lot: PlainLot) => [lot.priority ?? last, lot.expiry ?? last, -lot.put_in, lot.at];
  const [first, second] = [key(a), key(b)];
  const at = first.findIndex((value, index) => value !== second[index]);
  return at === -1 ? a.id < b.id : first[at]! < second[at]!;
}

const maybe = (max: number) => fc.option(fc.integer({ min: 0, max }), { nil: null });
const deeds = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('credit' as const),
      n: fc.integer({ min: 1, max: 9 }),
      priority: maybe(3),
      expiry: maybe(40),
    }),
    fc.record({ kind: fc.constant('spend' as const), n: fc.integer({ min: 1, max: 12 }), owing: fc.boolean() }),
    fc.record({ kind: fc.constant('take' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('put_back' as const), which: fc.nat(20) }),
  ),
  { maxLength: 40 },
);

const EMPTY: Holding = { conversion_rate: '1', credit_balance: ZERO, owed: ZERO, lots: [] };

describe('movements of credits', () => {
  it('say what a plain ledger says', () => {
    fc.assert(
      fc.property(deeds, (all) => {
        const plain = new Plain();
        let holding = EMPTY;
        for (const [now, deed] of all.entries()) {
          const id = `lot-${now}`;
          const told = { id, transaction_reason: 'MANUAL_BALANCE_DEBIT' as const };
          let movement: Movement;
          let expected: Map<string, number> | null = new Map();
          if (deed.kind === 'credit') {
            const { n, priority, expiry } = deed;
            plain.credit({ id, put_in: n, left: n, priority, expiry, at: now });
            movement = {
              ...told,
              transaction_reason: 'FREE_CREDIT_GRANT',
              kind: 'credit',
              credits: new Decimal(n),
              priority,
              expiry_ms: expiry,
              created_ms: now,
            };
          } else if (deed.kind === 'spend') {
            expected = plain.spend(deed.n, now, deed.owing);
            movement = { ...told, kind: 'spend', credits: new Decimal(deed.n), at_ms: now, allow_negative: deed.owing };
          } else {
            const lot = plain.lots[deed.which % Math.max(1, plain.lots.length)];
            const n = lot ? (deed.kind === 'take' ? lot.left : lot.put_in - lot.left) : 0;
            if (!lot || n === 0) continue;
            if (deed.kind === 'take') lot.left -= n;
            else plain.putBack(lot, n);
            movement = { ...told, kind: deed.kind, parts: [{ lot_id: lot.id, credits: new Decimal(n) }] };
            if (deed.kind === 'take') expected.set(lot.id, n);
          }
          if (expected === null) {
            expect(() => move(holding, movement)).to.throw(FarthingError);
            continue;
          }
          const decided = move(holding, movement);
          expect(sumOf(decided.postings.map(({ credits }) => credits)).toFixed()).to.equal('0');
          if (deed.kind === 'spend' || deed.kind === 'take')
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
      { numRuns: 500 },
    );
  });

  it('a lot that expires at an instant can be used at it, and not after it', () => {
    const lot = { kind: 'credit' as const, credits: new Decimal(5), priority: null, expiry_ms: 1000, created_ms: 0 };
    const { holding } = move(EMPTY, { ...lot, id: 'a', transaction_reason: 'FREE_CREDIT_GRANT' });
    const spend = { id: 'b', transaction_reason: 'MANUAL_BALANCE_DEBIT' as const, kind: 'spend' as const };
    const credits = new Decimal(2);
    expect(move(holding, { ...spend, credits, at_ms: 1000 }).holding.credit_balance.toFixed()).to.equal('3');
    expect(() => move(holding, { ...spend, credits, at_ms: 1001 })).to.throw('does not have so many credits');
  });
});
