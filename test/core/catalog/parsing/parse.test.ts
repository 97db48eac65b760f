/** Descriptions of prices, as people write them, read by rules alone. */
import { expect } from 'chai';
import fc from 'fast-check';
import { checkConfiguration } from '../../../../core/catalog/parsing/check.ts';
import { parsePricing } from '../../../../core/catalog/parsing/parse.ts';
import type { ParsedPricing } from '../../../../core/catalog/parsing/record.ts';
import { definePrice } from '../../../../core/catalog/price/define.ts';
import { createPriceShape } from '../../../../core/catalog/price/record.ts';
import { measureCpuMs } from '../../../support/cpu-time.ts';
import { samples } from '../../../support/samples.ts';

const parse = (description: string) => parsePricing(description, { currency: 'usd' });

/** Each price in a few words: what it is of, how it is charged, when. */
function said({ plans, prices, meters }: ParsedPricing): string[] {
  const name = (ref: string, of: readonly { ref: string; body: { name: string } }[]) =>
    of.find((each) => each.ref === ref)!.body.name;
  return prices.map(({ body }) => {
    const { tiers, amount, transform_quantity, tier_mode } = body;
    const charge = tiers
      ? `${tier_mode} ${tiers.map((tier) => `${tier.up_to ?? '∞'}:${tier.unit_amount}`).join(' ')}`
      : `${amount}${transform_quantity ? ` per ${transform_quantity.divide_by}` : ''}`;
    const what = body.meter_id ? name(body.meter_id, meters) : (body.display_name ?? '');
    const extra = [
      body.min_quantity && `min ${body.min_quantity}`,
      body.trial_period_days && `trial ${body.trial_period_days}`,
    ];
    const period = `${body.billing_period_count > 1 ? body.billing_period_count : ''}${body.billing_period}`;
    return [name(body.entity_id, plans), what, charge, body.currency, period, ...extra].filter(Boolean).join(' | ');
  });
}

const PHRASES: readonly [string, string[]][] = [
  [
    '$29 per month plus 2 cents per API call after 1,000 free',
    ['Plan | 29 | usd | MONTHLY', 'Plan | API calls | SLAB 1000:0 ∞:0.02 | usd | MONTHLY'],
  ],
  ['Pro: €49/mo', ['Pro | 49 | eur | MONTHLY']],
  ['The Team plan costs GBP 100 every 3 months', ['Team | 100 | gbp | 3MONTHLY']],
  ['Pro: $29 or €27 per month', ['Pro | 29 | usd | MONTHLY', 'Pro | 27 | eur | MONTHLY']],
  ['Pro: $29/month or $290/year', ['Pro | 29 | usd | MONTHLY', 'Pro Annual | 290 | usd | ANNUAL']],
  ['Pro: $29 per month ($290 per year)', ['Pro | 29 | usd | MONTHLY', 'Pro Annual | 290 | usd | ANNUAL']],
  ['Pro: $29 per month, billed annually', ['Pro | 348 | usd | ANNUAL']],
  [
    'Pro: $30 per month. Two months free when paid yearly.',
    ['Pro | 30 | usd | MONTHLY', 'Pro Annual | 300 | usd | ANNUAL'],
  ],
  ['Pro: $30 per month, save 15% with annual billing', ['Pro | 30 | usd | MONTHLY', 'Pro Annual | 306 | usd | ANNUAL']],
  ['Team: $12 per seat per month, minimum of 5 seats', ['Team | Seats | 12 | usd | MONTHLY | min 5']],
  ['Team: $12/user/month with a 14-day free trial', ['Team | Users | 12 | usd | MONTHLY | trial 14']],
  ['Team: $120 a year, free trial of 2 weeks', ['Team | 120 | usd | ANNUAL | trial 14']],
  ['$5 per 1,000 emails', ['Plan | Emails | 5 per 1000 | usd | MONTHLY']],
  ['$2.50 per million tokens', ['Plan | Tokens | 2.5 per 1000000 | usd | MONTHLY']],
  ['1M tokens included, then $2 per million tokens', ['Plan | Tokens | SLAB 1000000:0 ∞:0.000002 | usd | MONTHLY']],
  ['0.5¢ per request', ['Plan | Requests | 0.005 | usd | MONTHLY']],
  ['20 pence per text message', ['Plan | Text messages | 0.2 | gbp | MONTHLY']],
  [
    'First 1,000 API calls free, next 9,000 at $0.01, then $0.005 each',
    ['Plan | API calls | SLAB 1000:0 10000:0.01 ∞:0.005 | usd | MONTHLY'],
  ],
  [
    '$0.10 per GB for the first 100 GB, $0.08 for the next 400 GB, $0.05 after that',
    ['Plan | GB | SLAB 100:0.1 500:0.08 ∞:0.05 | usd | MONTHLY'],
  ],
  [
    'Volume pricing: up to 1,000 messages: $0.10 each; 1,001 to 5,000: $0.08; above 5,000: $0.05',
    ['Plan | Messages | VOLUME 1000:0.1 5000:0.08 ∞:0.05 | usd | MONTHLY'],
  ],
  ['10k free builds per month, $0.02 per additional build', ['Plan | Builds | SLAB 10000:0 ∞:0.02 | usd | MONTHLY']],
  [
    'One-time setup fee of $500, and $100 per month',
    ['Plan | 100 | usd | MONTHLY', 'Plan | Setup fee | 500 | usd | ONETIME'],
  ],
  ['$250 one-time', ['Plan | One-time fee | 250 | usd | ONETIME']],
  ['€27,50 per month', ['Plan | 27.5 | eur | MONTHLY']],
  [
    'All plans have a 7-day trial. Starter: $9 per month. Pro: $29 per month.',
    ['Starter | 9 | usd | MONTHLY | trial 7', 'Pro | 29 | usd | MONTHLY | trial 7'],
  ],
  [
    '$99 per month including 10,000 API calls, $0.01 per additional call',
    ['Plan | 99 | usd | MONTHLY', 'Plan | API calls | SLAB 10000:0 ∞:0.01 | usd | MONTHLY'],
  ],
  [
    '$99 per month for up to 10,000 API calls, $0.01 per additional call',
    ['Plan | 99 | usd | MONTHLY', 'Plan | API calls | SLAB 10000:0 ∞:0.01 | usd | MONTHLY'],
  ],
  ['Up to 10,000 API calls, then $0.01 per call', ['Plan | API calls | SLAB 10000:0 ∞:0.01 | usd | MONTHLY']],
  [
    '$0.01 per email, $0.05 per marketing email',
    ['Plan | Emails | 0.01 | usd | MONTHLY', 'Plan | Marketing emails | 0.05 | usd | MONTHLY'],
  ],
  ['Up to 5 users, $29 per month', ['Plan | 29 | usd | MONTHLY']],
  ['$12 per seat per month, up to 50 seats', ['Plan | Seats | 12 | usd | MONTHLY']],
  ['Starter: $29/month for up to 5 users', ['Starter | 29 | usd | MONTHLY']],
  ['Pro: $290 per year (billed annually) for up to 5 users', ['Pro | 290 | usd | ANNUAL']],
  [
    '$0.10 per GB per month for the first 100 GB, $0.08 per GB after that',
    ['Plan | GB | SLAB 100:0.1 ∞:0.08 | usd | MONTHLY'],
  ],
  ['$0.5 per active user per month', ['Plan | Active users | 0.5 | usd | MONTHLY']],
];

/** What must not become a price, because it would be another one. */
const NOT_PRICES: readonly [string, string, string[]?][] = [
  ['-$5 per month', '-'],
  ['Enterprise: contact sales', 'contact sales'],
  ['Pro: $29 per month or $8 per week', 'or 8'],
  ['10 free calls per day, then $1 per call', 'Calls'],
  ['First 100 calls at $1, 500 to 1,000 calls at $2', 'Calls'],
  ['first 1,000 calls at $1, first 500 calls at $2', 'Calls'],
  [
    '$10 per month for the first 3 months, then $20 per month, plus $0.01 per API call',
    '$10 month first 3 months',
    ['Plan | 20 | usd | MONTHLY', 'Plan | API calls | 0.01 | usd | MONTHLY'],
  ],
  [
    '$10 per month after 3 months, plus $0.01 per API call',
    '$10 month after 3 months',
    ['Plan | API calls | 0.01 | usd | MONTHLY'],
  ],
  ['$5 per user per month for the first 10 users', '$5 user month', []],
  ['$5 per user per month after 3 free users', '$5 user month', []],
  ['10,000 API calls and 100 phone calls included, $0.01 per additional call', 'Calls', []],
  ['$0.02 per API call, up to 10,000 API calls per month', 'API calls', []],
  ['$0.02 per API call, limited to 10,000 calls per month', 'API calls', []],
  ['$29 per month or $0.05 per call', '$0.05 call', ['Plan | 29 | usd | MONTHLY']],
  ['$0.05 per call or just $29 per month', 'or 29', ['Plan | Calls | 0.05 | usd | MONTHLY']],
  ['$29 per month or $10 per user per month', 'or 10', ['Plan | 29 | usd | MONTHLY']],
  ['$29 per month or a one-time fee of $250', '$250', ['Plan | 29 | usd | MONTHLY']],
  ['$29 for up to 5 users', '$29', []],
  [
    'up to 500 calls: $2, 501 to 5,000 calls: $1',
    'no more than 5000 calls',
    ['Plan | Calls | SLAB 500:2 ∞:1 | usd | MONTHLY'],
  ],
  [
    '$29/month or $290/year, 20% off when billed annually',
    '20% off by the year',
    ['Plan | 29 | usd | MONTHLY', 'Plan Annual | 290 | usd | ANNUAL'],
  ],
  [
    '$30 per month, 20% off annually, two months free when paid yearly',
    '2 months free by the year',
    ['Plan | 30 | usd | MONTHLY', 'Plan Annual | 288 | usd | ANNUAL'],
  ],
  ['$5 per call, 20% off annually', '20% off by the year', ['Plan | Calls | 5 | usd | MONTHLY']],
  ['first ten TB free, then $0.09 per GB', 'TB'],
  ['first 100 GB free, then $5 per TB', 'GB'],
  ['$500 setup fee for up to 5 users', '$500 setup', []],
];

/** Tiers in a larger size than the price. */
const SIZED: readonly [string, string][] = [
  [
    'first 10 TB at $0.09 per GB, next 40 TB at $0.085 per GB, then $0.07 per GB',
    'GB | SLAB 10000:0.09 50000:0.085 ∞:0.07',
  ],
  [
    '$0.09 per GB for the first 10 TB, $0.085 per GB for the next 40 TB, $0.07 per GB after that',
    'GB | SLAB 10000:0.09 50000:0.085 ∞:0.07',
  ],
  [
    'first 10TB at $0.09 per GB, 10 to 50 TB at $0.085 per GB, above 50 TB $0.07 per GB',
    'GB | SLAB 10000:0.09 50000:0.085 ∞:0.07',
  ],
  ['first 1.5 terabytes free, then $0.05 per gigabyte', 'Gigabytes | SLAB 1500:0 ∞:0.05'],
  ['first 1 TB free, next 9 TB at $10 per TB, then $8 per TB', 'TB | SLAB 1:0 10:10 ∞:8'],
];

describe('pricing in words', () => {
  for (const [description, expected] of SIZED)
    it(`sizes: ${description}`, () => {
      const parsed = parse(description);
      expect(said(parsed)).to.deep.equal([`Plan | ${expected} | usd | MONTHLY`]);
      expect(parsed.not_understood).to.deep.equal([]);
      const isConverted = !description.includes('per TB');
      expect(parsed.assumptions.includes('1 TB is 1000 GB')).to.equal(isConverted);
    });

  for (const description of ['includes SSO and audit logs', 'up to 5 users', '10% off annually', 'Pro: call us'])
    it(`is not sure where it has read no price: ${description}`, () => {
      const parsed = parse(description);
      expect(parsed.prices).to.deep.equal([]);
      expect(parsed.confidence).to.be.at.most(0.3);
    });

  it('a discount that agrees with the price by the year is no contradiction', () => {
    for (const text of [
      '$29/month or $279/year, save 20% with yearly billing',
      '$29/month or $290/year, two months free annually',
    ])
      expect(parse(text).not_understood, text).to.deep.equal([]);
  });

  for (const [description, expected] of PHRASES)
    it(description, () => {
      const parsed = parse(description);
      expect(said(parsed)).to.deep.equal(expected);
      expect(parsed.not_understood).to.deep.equal([]);
      expect(parsed.confidence).to.be.at.least(0.8);
    });

  for (const [description, lost, prices] of NOT_PRICES)
    it(`tells what it does not understand: ${description}`, () => {
      const parsed = parse(description);
      expect(parsed.not_understood.map(({ text }) => text).join('; ')).to.include(lost);
      if (prices) expect(said(parsed)).to.deep.equal(prices);
      expect(parsed.confidence).to.be.below(1);
    });

  for (const word of ['constructor', '$10 per constructor', '$10 per toString', '5 __proto__ at $1'])
    it(`words of the language that it is written in are words: ${word}`, () => {
      expect(() => parse(word)).to.not.throw();
    });

  it('entitlements: limits of what is had and of what is used, and features', () => {
    const parsed = parse(
      'Pro: $49 a month, up to 5 users, 100 exports per day, unlimited builds, includes SSO and audit logs',
    );
    const name = new Map(parsed.features.map(({ ref, body }) => [ref, body.name]));
    const shown = parsed.entitlements.map(({ body }) => [
      name.get(body.feature_id),
      body.feature_type,
      body.usage_limit,
      body.usage_reset_period,
    ]);
    expect(shown).to.deep.equal([
      ['Users', 'metered', '5', 'NEVER'],
      ['Exports', 'metered', '100', 'DAILY'],
      ['Builds', 'metered', null, 'MONTHLY'],
      ['SSO', 'boolean', null, null],
      ['Audit logs', 'boolean', null, null],
    ]);
    expect(parsed.not_understood).to.deep.equal([]);
  });

  it('a fee for up to so many is a fee, and a limit', () => {
    const { entitlements, features } = parse('Starter: $29/month for up to 5 users');
    expect(features.map(({ body }) => body.name)).to.deep.equal(['Users']);
    expect(entitlements.map(({ body }) => [body.usage_limit, body.usage_reset_period])).to.deep.equal([['5', 'NEVER']]);
  });

  it('meters: what is counted, what is summed, who is told apart', () => {
    const { meters } = parse('$1 per report, $2 per GB, $3 per active customer, $4 per GB egress, $5 per page view');
    expect(meters.map(({ body }) => [body.event_name, body.aggregation.type, body.aggregation.field])).to.deep.equal([
      ['report', 'COUNT', null],
      ['gb', 'SUM', 'gb'],
      ['active_customer', 'COUNT_UNIQUE', 'customer_id'],
      ['gb_egress', 'SUM', 'gb'],
      ['page_view', 'COUNT', null],
    ]);
  });

  it('says what it assumed, and nothing is all that nothing becomes', () => {
    expect(parse('$9 per month plus $5 per month').assumptions).to.include(
      'several recurring prices of one plan are charged together',
    );
    const nothing = parse('Lorem dolor sit amet');
    expect(nothing).to.deep.include({ plans: [], prices: [], confidence: 0 });
    expect(nothing.not_understood).to.have.length(1);
  });

  it('a law: what is described is what is read', () => {
    fc.assert(
      fc.property(fc.array(plan, { minLength: 1, maxLength: 3 }), (plans) => {
        const named = plans.map((each, index) => ({ ...each, name: NAMES[index]! }));
        const text = named.map(({ name, words }) => `${name}: ${words.join(', ')}.`).join('\n');
        const parsed = parse(text);
        expect(parsed.not_understood, text).to.deep.equal([]);
        const expected = named.flatMap(({ name, prices }) => prices.map((price) => `${name} | ${price}`));
        expect(said(parsed).sort(), text).to.deep.equal(expected.sort());
      }),
      { numRuns: samples(300) },
    );
  });

  it('a law: whatever is said, what is answered would be taken, and it is answered soon', () => {
    const words =
      'first next 1,000 500 $5 €2 2 cents per month each free then after up to users API calls , . or and / 20% off annually trial 14-day + - : ( billed includes setup fee'.split(
        ' ',
      );
    const soup = fc.oneof(
      fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((all) => all.join(' ')),
      fc.string({ unit: 'grapheme', maxLength: 200 }),
    );
    fc.assert(
      fc.property(soup, (text) => {
        const parsed = parse(text);
        for (const { body } of parsed.prices) definePrice(createPriceShape.parse(body));
        expect(checkConfiguration(parsed).rejected, text).to.deep.equal([]);
        expect(parsed.confidence).to.be.within(0, 1);
      }),
      { numRuns: samples(1000) },
    );
    const long = '$1 per call, '.repeat(1500);
    expect(measureCpuMs(() => void parse(long))).to.be.below(2000);
  });
});

const NAMES = ['Starter', 'Pro', 'Enterprise'];
/** Cents as text: 0.01 to 999.99. */
const amount = fc.integer({ min: 1, max: 99_999 }).map((cents) => ({
  text: cents % 100 === 0 ? String(cents / 100) : (cents / 100).toFixed(2),
  value: String(cents / 100),
}));
const count = fc
  .integer({ min: 2, max: 5_000_000 })
  .map((n) => ({ text: n.toLocaleString('en-US'), value: String(n) }));
const MONTHS = ['per month', '/month', '/mo', 'a month', 'monthly'];

const base = fc.record({ amount, how: fc.constantFrom(...MONTHS) }).map(({ amount: { text, value }, how }) => ({
  words: `$${text} ${how}`,
  price: `${value} | usd | MONTHLY`,
}));
const usages = fc
  .record({
    amount,
    count,
    unit: fc.constantFrom(['API call', 'API calls'], ['email', 'emails'], ['report', 'reports']),
    form: fc.constantFrom('flat', 'package', 'after', 'included', 'ladder'),
  })
  .map(({ amount: { text, value }, count: n, unit: [one, many], form }) => {
    const name = `${many![0]!.toUpperCase()}${many!.slice(1)}`;
    const forms = {
      flat: { words: `$${text} per ${one}`, price: value },
      package: { words: `$${text} per ${n.text} ${many}`, price: `${value} per ${n.value}` },
      after: { words: `$${text} per ${one} after ${n.text} free`, price: `SLAB ${n.value}:0 ∞:${value}` },
      included: { words: `${n.text} ${many} included, then $${text} each`, price: `SLAB ${n.value}:0 ∞:${value}` },
      ladder: {
        words: `first ${n.text} ${many} free, next ${n.text} at $${text}, then $0.001 each`,
        price: `SLAB ${n.value}:0 ${Number(n.value) * 2}:${value} ∞:0.001`,
      },
    };
    const { words, price } = forms[form as keyof typeof forms];
    return { words, price: `${name} | ${price} | usd | MONTHLY` };
  });
const plan = fc.record({ base, usage: fc.option(usages) }).map(({ base: fee, usage }) => ({
  words: usage ? [fee.words, usage.words] : [fee.words],
  prices: usage ? [fee.price, usage.price] : [fee.price],
}));
