import { expect } from 'chai';
import currencyCodes from 'currency-codes';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../../core/foundation/decimal.ts';
import { minorUnits, roundMoney } from '../../../../core/foundation/money.ts';
import { buildInvoiceDocument } from '../../../../core/invoicing/document/document.ts';
import { explainAmount } from '../../../../core/invoicing/document/explained.ts';
import {
  LANGUAGES,
  selectTranslations,
  showAmount,
  showDay,
  showMoney,
  showNumber,
  showPeriod,
} from '../../../../core/invoicing/document/language.ts';
import { isPicture } from '../../../../core/invoicing/document/picture.ts';
import { applySettingChange } from '../../../../core/platform/setting/record.ts';
import { priceFixedCharge } from '../../../../core/rating/line-amount.ts';
import { prorate } from '../../../../core/rating/proration.ts';
import { expectGolden } from '../../../support/golden.ts';
import { printedInvoice } from '../../../support/printed-invoice.ts';

describe('what the document of an invoice says', () => {
  for (const language of LANGUAGES)
    it(`in ${language}`, () => {
      expectGolden(`invoice-document/${language}.json`, buildInvoiceDocument(printedInvoice({ language })));
    });

  it('marks what is no invoice yet, and what is none any more', () => {
    const mark = (invoice_status: string) =>
      buildInvoiceDocument(printedInvoice({}, { invoice: { invoice_status } })).mark;
    expect([mark('DRAFT'), mark('SKIPPED'), mark('FINALIZED'), mark('VOIDED')]).to.deep.equal([
      'DRAFT',
      'DRAFT',
      null,
      'VOID',
    ]);
  });

  it('is dated as stated, or when it became final, or when it was made', () => {
    const date = (invoice: Record<string, unknown>) =>
      buildInvoiceDocument(printedInvoice({}, { invoice })).facts.find(({ label }) => label === 'Date of issue')?.value;
    expect(date({ issue_date: '2026-12-24T12:00:00Z' })).to.equal('24 Dec 2026');
    expect(date({})).to.equal('1 Nov 2026');
    expect(date({ finalized_at: null, created_at: '2026-10-05T12:00:00Z' })).to.equal('5 Oct 2026');
  });

  it('covers the period from the first to the last of its lines, as an invoice also charges the next period', () => {
    const january = { period_start: '2025-12-31T23:00:00Z', period_end: '2026-01-31T23:00:00Z' };
    const february = { period_start: '2026-01-31T23:00:00Z', period_end: '2026-02-28T23:00:00Z' };
    const period = (invoice_type: string) =>
      buildInvoiceDocument(
        printedInvoice({}, { invoice: { ...january, invoice_type }, lines: [january, february] }),
      ).facts.find(({ label }) => label === 'Billing period')?.value;
    expect(period('SUBSCRIPTION')).to.equal('1 Jan 2026 – 28 Feb 2026');
    expect(period('ONE_OFF')).to.equal('1 Jan 2026 – 31 Jan 2026');
  });

  it('names the whole tax where its rates are not known, and no line of nothing', () => {
    const sums = (invoice: Record<string, unknown>) =>
      buildInvoiceDocument({ ...printedInvoice({}, { invoice }), taxes: [] }).sums.map(({ label }) => label);
    const none = { total_discount: '0', total_prepaid_credits_applied: '0', adjustment_amount: '0', amount_paid: '0' };
    expect(sums(none)).to.deep.equal(['Subtotal', 'Tax', 'Total', 'Amount due']);
    expect(sums({ ...none, total_tax: '0' })).to.deep.equal(['Subtotal', 'Total', 'Amount due']);
  });
});

describe('how the amount of a line came about', () => {
  const row = (line: Record<string, unknown>) => {
    const { unit_price, details } = buildInvoiceDocument(
      printedInvoice({}, { lines: [{ display_name: 'Calls', ...line }] }),
    ).rows[0]!;
    return [unit_price, ...details.slice(1)];
  };
  const part = (units: string, unit_amount: string, flat_amount = '0', amount?: string) => ({
    tier: 0,
    units,
    unit_amount,
    flat_amount,
    ...(amount === undefined ? {} : { amount }),
  });
  const DAY = 86_400_000;
  const of31 = (days: number) => ({ part_ms: days * DAY, whole_ms: 31 * DAY });
  const packages = { billing_model: 'PACKAGE', amount: '10', transform_quantity: { divide_by: 1000, round: 'up' } };
  // [what, line, unit price and what stands beneath it]
  const CASES: [string, Record<string, unknown>, string[]][] = [
    ['a price', { quantity: '5', amount: '50', computed_from: { breakdown: [part('5', '10')] } }, ['10.00']],
    [
      'packages',
      { quantity: '2500', amount: '30', computed_from: { price: packages, breakdown: [part('3', '10')] } },
      ['', 'Packages of 1,000: 3 × 10.00'],
    ],
    [
      'one package of one unit',
      { quantity: '1', amount: '10', computed_from: { price: packages, breakdown: [part('1', '10')] } },
      ['', 'Packages of 1,000: 1 × 10.00'],
    ],
    [
      'a share in days',
      { quantity: '1', amount: '12', computed_from: { breakdown: [part('1', '31')], share: of31(12) } },
      ['31.00', '× 12 of 31 days'],
    ],
    [
      'a share in hours, of a month with a change of the clock',
      {
        quantity: '1',
        amount: '10',
        computed_from: {
          breakdown: [part('1', '743')],
          share: { part_ms: (10 * DAY) / 24, whole_ms: 31 * DAY - DAY / 24 },
        },
      },
      ['743.00', '× 10 of 743 h'],
    ],
    [
      'a share of packages',
      {
        quantity: '1500',
        amount: '10',
        computed_from: { price: packages, breakdown: [part('2', '10')], share: { part_ms: DAY, whole_ms: 2 * DAY } },
      },
      ['', 'Packages of 1,000: 2 × 10.00', '× 1 of 2 days'],
    ],
    [
      'free units',
      { quantity: '1500', amount: '5', computed_from: { breakdown: [part('500', '0.01')] } },
      ['', '500 units × 0.01'],
    ],
    [
      'a flat amount of each bucket',
      { quantity: '30', amount: '36', computed_from: { breakdown: [part('30', '1', '2', '36')] } },
      ['', '30 units × 1.00 + 6.00'],
    ],
    [
      'what was invoiced before',
      {
        quantity: '100',
        amount: '20',
        computed_from: {
          breakdown: [part('100', '1'), part('100', '0.5')],
          less: { amount: '130', invoiced: 'before_period_end' },
        },
      },
      ['', '100 units × 1.00', '100 units × 0.50', 'Invoiced before: −130.00'],
    ],
    [
      'late events',
      {
        quantity: '50',
        amount: '0.5',
        computed_from: { breakdown: [part('1050', '0.01')], billed_before: { amount: '10', quantity: '1000' } },
      },
      ['', '1,050 units × 0.01', 'Invoiced before: −10.00'],
    ],
    [
      'a commitment',
      { quantity: '70', amount: '100', computed_from: { breakdown: [part('70', '1')], base_amount: '70' } },
      ['', '70 units × 1.00', 'Usage before the commitment: 70.00'],
    ],
    [
      'what was given back',
      { quantity: '2', amount: '-20', computed_from: { breakdown: [part('2', '10')] } },
      ['10.00'],
    ],
    ['what does not come to it', { quantity: '2', amount: '7', computed_from: { breakdown: [part('2', '10')] } }, ['']],
    [
      'what was edited',
      {
        quantity: '5',
        amount: '50',
        computed_from: { breakdown: [part('5', '10')], edited: { amount: '1', quantity: '1' } },
      },
      ['10.00'],
    ],
    ['what was written by hand', { quantity: '5', amount: '50' }, ['10.00']],
    ['a price of a fraction of a cent', { quantity: '200', amount: '0.15' }, ['0.00075']],
    ['a quantity that does not divide the amount', { quantity: '3', amount: '100' }, ['']],
    ['no quantity', { quantity: '0', amount: '100' }, ['']],
  ];
  for (const [what, line, said] of CASES) it(what, () => expect(row(line)).to.deep.equal(said));

  it('law: of a fixed charge all is said, and what is said comes to the amount', () => {
    const money = fc.integer({ min: 0, max: 99_999 }).map((cents) => new Decimal(cents).dividedBy(100).toFixed());
    const tier = fc.record({ unit_amount: money, flat_amount: money });
    const price = fc.oneof(
      fc.record({ billing_model: fc.constant('FLAT_FEE' as const), amount: money }),
      fc.record({
        billing_model: fc.constant('PACKAGE' as const),
        amount: money,
        transform_quantity: fc.record({
          divide_by: fc.integer({ min: 1, max: 50 }),
          round: fc.constantFrom('up', 'down'),
        }),
      }),
      fc.record({
        billing_model: fc.constant('TIERED' as const),
        tier_mode: fc.constantFrom('SLAB', 'VOLUME'),
        tiers: fc.tuple(tier, tier).map(([first, last]) => [
          { ...first, up_to: 10 },
          { ...last, up_to: null },
        ]),
      }),
    );
    const share = fc.integer({ min: 1, max: 31 }).map(of31);
    fc.assert(
      fc.property(price, fc.integer({ min: 1, max: 100 }), share, (terms, quantity, served) => {
        const item = { price: { ...terms, currency: 'eur' }, quantity: new Decimal(quantity) };
        const { amount, computed_from } = priceFixedCharge(item as never, served, 'eur');
        const line = { quantity: String(quantity), amount: amount.toFixed(), currency: 'eur', computed_from };
        const { unit_price, steps } = explainAmount(line, { words: selectTranslations('en'), language: 'en' });
        const said = steps.filter((step) => !step.startsWith('× '));
        const sum = unit_price
          ? valueOf(unit_price).times(quantity)
          : sumDecimals(said.map((step) => sumDecimals(step.split(' + ').map((term) => productOf(term)))));
        expect(roundMoney(prorate(sum, served), 'eur').toFixed()).to.equal(amount.toFixed());
        expect(steps.some((step) => step.startsWith('× '))).to.equal(
          served.part_ms < served.whole_ms && (unit_price !== '' || said.length > 0),
        );
      }),
    );
  });
  const valueOf = (text: string) => new Decimal(text.replaceAll(',', ''));
  /** `Packages of 1,000: 3 × 10.00` is 30. */
  const productOf = (term: string) => {
    const [first = '', second = '1'] = term.replace(/^Packages of .*: /, '').split(' × ');
    return valueOf(first.split(' ')[0]!).times(valueOf(second));
  };
});

describe('what nobody owes', () => {
  const of = (fields: Parameters<typeof printedInvoice>[1], settings = {}) =>
    buildInvoiceDocument(printedInvoice(settings, fields));
  it('is not due: a void invoice says no amount due and no day', () => {
    const { sums, facts } = of({ invoice: { invoice_status: 'VOIDED' } });
    expect(sums.at(-1)?.label).to.equal('Paid');
    expect(facts.map(({ label }) => label)).not.to.include('Due date');
  });

  it('is owed by the customer to the state: the document says the reverse charge, where nothing was taxed', () => {
    const notes = (tax_exempt: string, total_tax: string, language = 'en') =>
      of({ invoice: { total_tax }, customer: { tax_exempt }, taxes: [] }, { language }).notes[0];
    expect(notes('reverse', '0')).to.equal('Reverse charge: the recipient of the service owes the tax.');
    expect(notes('reverse', '0', 'de')).to.match(/^Steuerschuldnerschaft des Leistungsempfängers/);
    for (const [exempt, tax] of [
      ['reverse', '1'],
      ['exempt', '0'],
      ['none', '0'],
    ] as const)
      expect(notes(exempt, tax)).to.equal('Thank you.');
  });
});

describe('the groups of a line', () => {
  const group = (n: number) => ({ label: n === 2 ? '' : `group ${n}`, usage: String(1000 - n), cost: '1.5' });
  const rowWith = (count: number) =>
    buildInvoiceDocument(
      printedInvoice(
        {},
        {
          lines: [{ id: 'line', display_name: 'Calls', amount: '100' }],
          groups: new Map([['line', Array.from({ length: count }, (_none, index) => group(index + 1))]]),
        },
      ),
    ).rows[0]!.details.slice(1);

  it('are told one by one, those without a name too', () => {
    expect(rowWith(2)).to.deep.equal(['group 1: 999 units, 1.50', '–: 998 units, 1.50']);
  });

  it('are the twenty greatest, and the others in one', () => {
    expect(rowWith(25)).to.have.length(21);
    expect(rowWith(25).at(-1)).to.equal('5 others: 7.50');
  });
});

describe('how documents write', () => {
  // [language, number, as a document writes it]
  const NUMBERS = [
    ['en', '1234567.5', '1,234,567.5'],
    ['en', '-0.000125', '−0.000125'],
    ['en', '999', '999'],
    ['de', '1234567.5', '1.234.567,5'],
    ['fr', '1234567.5', '1\u00a0234\u00a0567,5'],
    ['en', '12345678901234567890.123456789012345678', '12,345,678,901,234,567,890.123456789012345678'],
  ] as const;
  for (const [language, number, written] of NUMBERS)
    it(`${number} in ${language}`, () => expect(showNumber(number, language)).to.equal(written));

  // [language, amount, currency, as a document writes it]
  const MONEY = [
    ['en', '1234.5', 'usd', '$1,234.50\u00a0USD'],
    ['en', '-5', 'cad', '−$5.00\u00a0CAD'],
    ['de', '1234.5', 'eur', '1.234,50\u00a0€\u00a0EUR'],
    ['en', '1000', 'jpy', '¥1,000\u00a0JPY'],
    ['en', '1.5', 'kwd', '1.500\u00a0KWD'],
    ['pl', '1.5', 'pln', '1,50\u00a0zł\u00a0PLN'],
    ['nl', '0', 'eur', '€0,00\u00a0EUR'],
  ] as const;
  for (const [language, amount, currency, written] of MONEY)
    it(`${amount} ${currency} in ${language}`, () => expect(showMoney(amount, currency, language)).to.equal(written));

  it('every currency in every language with the decimals that it has', () => {
    const codes = currencyCodes.codes().filter((code) => !/^X/.test(code));
    for (const code of codes)
      for (const language of LANGUAGES) {
        const digits = showAmount('1', code, language).slice(2).length;
        expect(digits, `${code} ${language}`).to.equal(minorUnits(code));
        expect(showMoney('1', code, language)).to.match(new RegExp(`${code}$`));
      }
  });

  it('the day of the calendar there, and the last day of a half-open time', () => {
    const midnight = Date.parse('2026-10-31T23:00:00Z');
    expect(showDay(midnight, 'Europe/Berlin', 'de')).to.equal('01.11.2026');
    expect(showDay(midnight, 'UTC', 'de')).to.equal('31.10.2026');
    const october = { start: Date.parse('2026-09-30T22:00:00Z'), end: midnight };
    expect(showPeriod(october, 'Europe/Berlin', 'en')).to.equal('1 Oct 2026 – 31 Oct 2026');
    expect(showPeriod({ start: midnight, end: midnight }, 'Europe/Berlin', 'en')).to.equal('1 Nov 2026');
  });

  it('says everything in each language', () => {
    for (const language of LANGUAGES) {
      const words = selectTranslations(language);
      for (const [word, text] of Object.entries(words)) expect(text.trim(), `${word} in ${language}`).not.to.equal('');
      expect(words.not_shown).to.contain('�');
      expect(words.letter_new).to.contain('{}');
      for (const text of [words.letter_new, words.letter_reminder])
        expect(text[0], `${language}: ${text}`).to.equal(text[0]!.toUpperCase());
      expect(words.letter_reminder).to.contain('{}');
      expect(words.letter_pay_until).to.contain('{amount}').and.contain('{due}');
    }
  });
});

describe('the setting invoice_pdf_config', () => {
  const set = (value: Record<string, unknown>) => () => applySettingChange('invoice_pdf_config', undefined, value);
  const png = (width: number, height: number) => {
    const head = Buffer.alloc(40);
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]).copy(head);
    head.writeUInt32BE(width, 16);
    head.writeUInt32BE(height, 20);
    return `data:image/png;base64,${head.toString('base64')}`;
  };

  it('takes languages in any case, a company and a small picture', () => {
    expect(set({ language: 'DE' })()).to.deep.equal({ language: 'de' });
    expect(set({ company: { name: 'Acme', tax_id: 'GB 1' }, logo: png(200, 80) })).not.to.throw();
  });

  it('refuses other pictures, colours and languages by name', () => {
    expect(set({ language: 'tlh' })).to.throw();
    expect(set({ color: 'red' })).to.throw();
    expect(set({ logo: 'https://example.com/logo.png' })).to.throw();
    expect(isPicture(png(20_000, 20_000))).to.equal(false);
    expect(isPicture('data:image/svg+xml;base64,AAAA')).to.equal(false);
    expect(isPicture(`data:image/png;base64,${Buffer.from('no picture').toString('base64')}`)).to.equal(false);
  });
});
