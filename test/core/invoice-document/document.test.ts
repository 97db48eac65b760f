import { expect } from 'chai';
import currencyCodes from 'currency-codes';
import { invoiceDocument } from '../../../core/invoice-document/document.ts';
import {
  LANGUAGES,
  showAmount,
  showDay,
  showMoney,
  showNumber,
  showPeriod,
  wordsOf,
} from '../../../core/invoice-document/language.ts';
import { isPicture } from '../../../core/invoice-document/picture.ts';
import { minorUnits } from '../../../core/money.ts';
import { changedSetting } from '../../../core/setting/record.ts';
import { expectGolden } from '../../support/golden.ts';
import { printedInvoice } from '../../support/printed-invoice.ts';

describe('what the document of an invoice says', () => {
  for (const language of LANGUAGES)
    it(`in ${language}`, () => {
      expectGolden(`invoice-document/${language}.json`, invoiceDocument(printedInvoice({ language })));
    });

  it('marks what is no invoice yet, and what is none any more', () => {
    const mark = (invoice_status: string) => invoiceDocument(printedInvoice({}, { invoice: { invoice_status } })).mark;
    expect([mark('DRAFT'), mark('SKIPPED'), mark('FINALIZED'), mark('VOIDED')]).to.deep.equal([
      'DRAFT',
      'DRAFT',
      null,
      'VOID',
    ]);
  });

  it('is dated as stated, or when it became final, or when it was made', () => {
    const date = (invoice: Record<string, unknown>) =>
      invoiceDocument(printedInvoice({}, { invoice })).facts.find(({ label }) => label === 'Date of issue')?.value;
    expect(date({ issue_date: '2026-12-24T12:00:00Z' })).to.equal('24 Dec 2026');
    expect(date({})).to.equal('1 Nov 2026');
    expect(date({ finalized_at: null, created_at: '2026-10-05T12:00:00Z' })).to.equal('5 Oct 2026');
  });

  it('names the whole tax where its rates are not known, and no line of nothing', () => {
    const sums = (invoice: Record<string, unknown>) =>
      invoiceDocument({ ...printedInvoice({}, { invoice }), taxes: [] }).sums.map(({ label }) => label);
    const none = { total_discount: '0', total_prepaid_credits_applied: '0', adjustment_amount: '0', amount_paid: '0' };
    expect(sums(none)).to.deep.equal(['Subtotal', 'Tax', 'Total', 'Amount due']);
    expect(sums({ ...none, total_tax: '0' })).to.deep.equal(['Subtotal', 'Total', 'Amount due']);
  });
});

describe('the groups of a line', () => {
  const group = (n: number) => ({ label: n === 2 ? '' : `group ${n}`, usage: String(1000 - n), cost: '1.5' });
  const rowWith = (count: number) =>
    invoiceDocument(
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
      const words = wordsOf(language);
      for (const [word, text] of Object.entries(words)) expect(text.trim(), `${word} in ${language}`).not.to.equal('');
      expect(words.not_shown).to.contain('�');
      expect(words.letter_new).to.contain('{}');
      expect(words.letter_reminder).to.contain('{}');
      expect(words.letter_pay_until).to.contain('{amount}').and.contain('{due}');
    }
  });
});

describe('the setting invoice_pdf_config', () => {
  const set = (value: Record<string, unknown>) => () => changedSetting('invoice_pdf_config', undefined, value);
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
