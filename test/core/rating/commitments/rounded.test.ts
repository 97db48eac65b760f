/** Parts of a committed charge in whole minor units (docs/rules/commitments.md, "What is paid"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import { roundMoney } from '../../../../core/foundation/money.ts';
import { applyCommitment } from '../../../../core/rating/commitments/pool.ts';
import { roundedAddition, roundedCharge, roundParts } from '../../../../core/rating/commitments/rounded.ts';

const thousandths = (max: number) => fc.integer({ min: 0, max }).map((n) => new Decimal(n).dividedBy(1000));
const whole = (max: number) => fc.integer({ min: 0, max }).map((n) => new Decimal(n));
const factor = fc.constantFrom('1', '1.5', '2').map((text) => new Decimal(text));

describe('rounded parts of a commitment', () => {
  const ROWS: [name: string, usage: string, committed: [string, string, boolean], parts: string][] = [
    // 8,500.5 is 8,501; what lacks is 10,000 less that, and not the rounded 1,499.5
    ['the true-up is the commitment less the rounded use', '8500.5', ['10000', '1', true], '8501 + 0 + 1499 = 10000'],
    ['without a true-up the use alone', '8500.5', ['10000', '1', false], '8501 + 0 + 0 = 8501'],
    ['above it after the factor', '10000.5', ['10000', '1.5', true], '10000 + 1 + 0 = 10001'], // 10,000.75
    ['nothing used', '0', ['10000', '1', true], '0 + 0 + 10000 = 10000'],
  ];
  for (const [name, usage, [amount, overage_factor, true_up], parts] of ROWS) {
    it(name, () => {
      const committed = { amount: new Decimal(amount), overage_factor: new Decimal(overage_factor), true_up };
      expect(said(roundedCharge(new Decimal(usage), committed, { used: ZERO, currency: 'jpy' }))).to.equal(parts);
    });
  }

  it('the periods of a term pay the commitment, no more: 33.5, 33.4 and nothing of 100', () => {
    const committed = { amount: new Decimal(100), overage_factor: new Decimal(1), true_up: false };
    const period = (usage: string, used: string, true_up: boolean) =>
      said(roundedCharge(new Decimal(usage), { ...committed, true_up }, { used: new Decimal(used), currency: 'jpy' }));
    expect(period('33.5', '0', false)).to.equal('34 + 0 + 0 = 34');
    expect(period('33.4', '33.5', false)).to.equal('33 + 0 + 0 = 33'); // 66.9 is 67
    expect(period('0', '66.9', true)).to.equal('0 + 0 + 33 = 33');
  });

  it('parts add up to the rounded charge', () =>
    fc.assert(
      fc.property(thousandths(200_000), whole(200), factor, fc.boolean(), (usage, amount, overage_factor, true_up) => {
        const exact = applyCommitment(usage, { amount, overage_factor, true_up });
        const { charge, utilized, overage, true_up: lacking } = roundParts(exact, 'jpy');
        expect(charge.toFixed()).to.equal(roundMoney(exact.charge, 'jpy').toFixed());
        expect(utilized.plus(overage).plus(lacking).toFixed()).to.equal(charge.toFixed());
        for (const part of [utilized, overage, lacking]) expect(part.gte(0)).to.equal(true);
        if (true_up && usage.lte(amount)) expect(utilized.plus(lacking).toFixed()).to.equal(amount.toFixed());
      }),
    ));

  it('periods and late events of a term add up to its rounded charge', () =>
    fc.assert(
      fc.property(
        fc.array(thousandths(60_000), { minLength: 1, maxLength: 6 }),
        thousandths(30_000),
        whole(200),
        factor,
        (periods, late, amount, overage_factor) => {
          const terms = { amount, overage_factor };
          let used = ZERO;
          const charges = periods.map((usage) => {
            const { charge } = roundedCharge(usage, { ...terms, true_up: false }, { used, currency: 'jpy' });
            used = used.plus(usage);
            return charge;
          });
          charges.push(roundedAddition({ ...terms, used, is_trued_up: false }, late, 'jpy'));
          const all = applyCommitment(used.plus(late), { ...terms, true_up: false }).charge;
          expect(sumDecimals(charges).toFixed()).to.equal(roundMoney(all, 'jpy').toFixed());
        },
      ),
    ));
});

function said({ utilized, overage, true_up, charge }: ReturnType<typeof roundParts>): string {
  return `${[utilized, overage, true_up].map((part) => part.toFixed()).join(' + ')} = ${charge.toFixed()}`;
}
