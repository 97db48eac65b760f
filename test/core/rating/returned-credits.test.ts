/** Prepaid credits that a credited charge returns: which charges of the same invoice they pay (docs/rules/invoices.md, "What is given back"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { type AdjustableLine, applyLineAdjustments, computeNetTotal } from '../../../core/rating/line-adjustments.ts';
import type { PrepaidWallet } from '../../../core/rating/prepaid.ts';
import { usageNet } from '../../../core/rating/usage-net.ts';
import { buildPrepaidWallet } from '../../support/lots.ts';
import { samples } from '../../support/samples.ts';

type Charge = { type: string; amount: number };
/** `returned` of the credited amount had been paid by prepaid credits. */
type Credit = Charge & { returned: number };
type Wallet = { types: string; balance: number };
type Case = { charges: readonly Charge[]; credits: readonly Credit[]; wallets: readonly Wallet[] };

const UNTAXED = { line_item_discount: ZERO, invoice_level_discount: ZERO, taxes: [] };

function linesOfCase({ charges, credits }: Case): AdjustableLine[] {
  const line = ({ type, amount }: Charge) => ({
    amount: new Decimal(amount),
    price_type: type,
    key: null,
    charged_ms: null,
  });
  return [
    ...charges.map(line),
    ...credits.map(({ returned, ...credit }) => ({
      ...line({ ...credit, amount: -credit.amount }),
      credit_adjustments: { ...UNTAXED, prepaid_credits_applied: new Decimal(-returned) },
    })),
  ];
}

function prepaidOfCase({ wallets }: Case): PrepaidWallet[] {
  return wallets.map(({ types, balance }) =>
    buildPrepaidWallet({ balance: new Decimal(balance), price_types: [types] }),
  );
}

function settleCase(one: Case) {
  const settled = applyLineAdjustments(linesOfCase(one), { currency: 'usd', prepaid: prepaidOfCase(one) });
  const used = sumDecimals(settled.prepaid_used);
  return { settled, used, returned: used.minus(settled.total_prepaid_credits_applied) };
}

const USAGE_WALLET = { types: 'USAGE', balance: 0 };
const seat = (amount: number) => ({ type: 'FIXED', amount });
const usage = (amount: number) => ({ type: 'USAGE', amount });

// charges · credits · wallets → to pay, paid by wallets, returned to the lots
const CASES: [string, Case, [number, number, number]][] = [
  [
    'credits of a wallet for usage do not pay a seat',
    { charges: [seat(100)], credits: [{ ...usage(50), returned: 50 }], wallets: [USAGE_WALLET] },
    [100, 0, 50],
  ],
  [
    'credits of a wallet for all prices do',
    { charges: [seat(100)], credits: [{ ...usage(50), returned: 50 }], wallets: [{ types: 'ALL', balance: 0 }] },
    [50, 0, 0],
  ],
  [
    'they pay usage first, and the wallet pays none of it',
    {
      charges: [seat(100), usage(30)],
      credits: [{ ...usage(50), returned: 50 }],
      wallets: [{ types: 'USAGE', balance: 500 }],
    },
    [100, 0, 20],
  ],
  [
    'what was paid in money pays the seat',
    { charges: [seat(100)], credits: [{ ...usage(200), returned: 50 }], wallets: [USAGE_WALLET] },
    [0, 0, 50],
  ],
  [
    'a seat that another wallet pays is netted, and that wallet pays so much less',
    {
      charges: [seat(100)],
      credits: [{ ...usage(50), returned: 50 }],
      wallets: [USAGE_WALLET, { types: 'FIXED', balance: 100 }],
    },
    [0, 50, 0],
  ],
  [
    'credits whose wallet is closed pay whatever is charged',
    { charges: [seat(100)], credits: [{ ...usage(50), returned: 50 }], wallets: [] },
    [50, 0, 0],
  ],
  [
    'each kind pays its own',
    {
      charges: [seat(30), usage(20)],
      credits: [
        { ...usage(50), returned: 50 },
        { ...seat(20), returned: 20 },
      ],
      wallets: [USAGE_WALLET, { types: 'FIXED', balance: 0 }],
    },
    [10, 0, 30],
  ],
];

const type = fc.constantFrom('USAGE', 'FIXED');
const amount = fc.integer({ min: 1, max: 200 });
const charge = fc.record({ type, amount });
const credit = fc
  .tuple(charge, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([credited, share]) => ({ ...credited, returned: Math.floor(credited.amount * share) }));
const wallet = fc.record({ types: fc.constantFrom('USAGE', 'FIXED', 'ALL'), balance: fc.constantFrom(0, 20, 500) });
const anyCase = fc.record({
  charges: fc.array(charge, { maxLength: 3 }),
  credits: fc.array(credit, { minLength: 1, maxLength: 3 }),
  wallets: fc.array(wallet, { maxLength: 3 }),
});

describe('prepaid credits that a credited charge returns', () => {
  for (const [name, one, [due, used, returned]] of CASES)
    it(name, () => {
      const made = settleCase(one);
      expect([made.settled.amount_remaining, made.used, made.returned].map(Number)).to.eql([due, used, returned]);
    });

  it('on a draft they pay their own kind alone', () => {
    const { charges, credits } = CASES[2]![1];
    const settled = applyLineAdjustments(linesOfCase({ charges, credits, wallets: [] }), { currency: 'usd' });
    expect([settled.total, settled.total_prepaid_credits_applied].map(Number)).to.eql([100, -20]);
  });

  it('are returned to lots only if no wallet pays of the same invoice, and nobody gets more than was credited', () => {
    let returns = 0;
    fc.assert(
      fc.property(anyCase, (one) => {
        const { settled, used, returned } = settleCase(one);
        if (returned.gt(0)) returns++;
        expect(used.gt(0) && returned.gt(0)).to.equal(false);
        expect(returned.gte(0)).to.equal(true);
        expect(returned.lte(sumDecimals(one.credits.map((credited) => new Decimal(credited.returned))))).to.equal(true);
        const charged = sumDecimals(
          [...one.charges.map((c) => c.amount), ...one.credits.map((c) => -c.amount)].map((n) => new Decimal(n)),
        );
        expect(computeNetTotal(settled).plus(used).minus(returned).toFixed()).to.equal(charged.toFixed());
      }),
      // The first case returns some; a few random ones may all return none.
      { numRuns: samples(2000), examples: [[CASES[0]![1]]] },
    );
    expect(returns).to.be.above(samples(20) - 1);
  });

  it('are in the balance in real time of a wallet for usage: it takes off what the wallet will pay', () => {
    fc.assert(
      fc.property(anyCase, ({ charges, credits: drawn }) => {
        // Such a wallet had paid usage alone.
        const credits = drawn.map((one) => (one.type === 'USAGE' ? one : { ...one, returned: 0 }));
        const one = { charges, credits, wallets: [{ types: 'USAGE', balance: 100_000 }] };
        const lines = linesOfCase(one).map((line) => ({
          ...line,
          item: { price_type: line.price_type },
          is_true_up: false,
        }));
        const adjustments = lines.map(() => UNTAXED);
        const net = usageNet({ lines, adjustments } as unknown as Parameters<typeof usageNet>[0]);
        const { used } = settleCase(one);
        expect(net.toFixed()).to.equal(used.toFixed());
      }),
      { numRuns: samples(2000) },
    );
  });
});
