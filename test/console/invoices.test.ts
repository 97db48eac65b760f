/** The invoice pages of the console: sums that are written out, states in words, and the check of a proof in a browser. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  addDecimals,
  compareDecimals,
  isZero,
  negateDecimal,
  shiftDecimal,
} from '../../console/pages/invoices/decimals.ts';
import {
  deriveState,
  type InvoiceLine,
  type InvoiceRecord,
  listDays,
  listMonths,
  toMonthBounds,
} from '../../console/pages/invoices/invoice.ts';
import { formatLineReason } from '../../console/pages/invoices/line-reason.ts';
import { checkEvent, checkInvoice } from '../../console/pages/invoices/proof/check-proof.ts';
import { explainLine, toReadablePrice } from '../../console/pages/invoices/thread/explain-line.ts';
import { formatTimes, shortenHash } from '../../console/pages/invoices/thread/thread-figures.ts';
import { formatLeaf } from '../../core/invoicing/proof/leaf.ts';
import { MerkleTree } from '../../core/invoicing/proof/merkle.ts';
import { PROOF_FORMAT } from '../../core/invoicing/proof/record.ts';

describe('decimals of the console', () => {
  for (const [texts, sum] of [
    [['0.1', '0.2'], '0.3'],
    [['30', '87.77782'], '117.77782'],
    [['1', '-1.00'], '0'],
    [['-0.5', '0.25'], '-0.25'],
    [['99999999999999999999.000000000000000001', '0.999999999999999999'], '100000000000000000000'],
    [[], '0'],
  ] as const)
    it(`adds ${texts.join(' + ')}`, () => expect(addDecimals(texts)).to.equal(sum));

  for (const [text, power, shifted] of [
    ['0.00003', 6, '30'],
    ['0.000010223', 6, '10.223'],
    ['-1.5', 1, '-15'],
    ['2', 3, '2000'],
  ] as const)
    it(`multiplies ${text} by 10^${power}`, () => expect(shiftDecimal(text, power)).to.equal(shifted));

  it('compares, negates and finds zero', () => {
    expect([compareDecimals('1.10', '1.1'), compareDecimals('2', '10'), compareDecimals('1', '-1')]).to.deep.equal([
      0, -1, 1,
    ]);
    expect([negateDecimal('0'), negateDecimal('1.50'), negateDecimal('-2')]).to.deep.equal(['0', '-1.5', '2']);
    expect([isZero('0.000'), isZero('-0'), isZero('0.0001')]).to.deep.equal([true, true, false]);
  });

  it('refuses what is no decimal number', () => {
    for (const text of ['', '1e5', '1,5', 'NaN']) expect(() => addDecimals([text]), text).to.throw('no decimal number');
  });
});

describe('the state of an invoice in words', () => {
  const now_ms = Date.parse('2026-11-30T12:00:00Z');
  const final = { invoice_status: 'FINALIZED', payment_status: 'PENDING', amount_remaining: '10', due_date: null };
  for (const [fields, state] of [
    [{ invoice_status: 'DRAFT' }, { kind: 'draft' }],
    [{ invoice_status: 'VOIDED' }, { kind: 'void' }],
    [{ invoice_status: 'SKIPPED' }, { kind: 'skipped' }],
    [{ due_date: '2026-12-09T12:00:00Z' }, { kind: 'due', days: 9 }],
    [{ due_date: '2026-12-09T00:00:00Z' }, { kind: 'due', days: 9 }],
    [{ due_date: '2026-11-30T12:00:00Z' }, { kind: 'due', days: 0 }],
    [{ due_date: '2026-11-30T11:00:00Z' }, { kind: 'overdue', days: 0 }],
    [{ due_date: '2026-11-27T12:00:00Z' }, { kind: 'overdue', days: 3 }],
    [{}, { kind: 'open' }],
    [{ amount_remaining: '0.00' }, { kind: 'paid' }],
    [{ payment_status: 'SUCCEEDED', amount_remaining: '0' }, { kind: 'paid' }],
    [{ payment_status: 'FAILED', due_date: '2026-11-01T00:00:00Z' }, { kind: 'failed' }],
    [{ payment_status: 'PROCESSING' }, { kind: 'processing' }],
    [{ payment_status: 'OVERPAID', amount_remaining: '0' }, { kind: 'overpaid' }],
    [{ payment_status: 'PARTIALLY_REFUNDED', amount_remaining: '0' }, { kind: 'refunded' }],
  ] as const)
    it(JSON.stringify(fields), () =>
      expect(deriveState({ ...final, ...fields } as InvoiceRecord, now_ms)).to.deep.equal(state),
    );

  it('lists the days of a half-open range, over a leap day', () => {
    expect(listDays('2028-02-28T10:00:00Z', '2028-03-01T00:00:00Z')).to.deep.equal([
      '2028-02-28T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
    ]);
    expect(listDays('2026-10-01T00:00:00Z', '2026-10-01T00:00:00Z')).to.deep.equal([]);
  });

  it('lists months backwards over a year, and reads them as bounds', () => {
    expect(listMonths(Date.parse('2026-02-28T23:59:59Z'), 4)).to.deep.equal([
      '2026-02',
      '2026-01',
      '2025-12',
      '2025-11',
    ]);
    expect(toMonthBounds('2026-02')).to.deep.equal({
      period_start_gte: '2026-02-01T00:00:00.000Z',
      period_start_lte: '2026-02-28T23:59:59.999Z',
    });
    for (const text of ['2026-13', '2026', 'x', '2026-1']) expect(toMonthBounds(text), text).to.equal(undefined);
  });
});

describe('the sum behind a line', () => {
  const part = (tier: number | null, units: string, unit_amount: string, amount: string, flat_amount = '0') => ({
    tier,
    units,
    unit_amount,
    flat_amount,
    amount,
  });
  const line = (computed_from: object | null, rest: object = {}) =>
    ({
      amount: '117.78',
      adjusted_entitlement_quantity: null,
      commitment_info: null,
      computed_from,
      ...rest,
    }) as InvoiceLine;
  const graduated = {
    price: { billing_model: 'TIERED', tier_mode: 'SLAB' },
    breakdown: [part(0, '1000000', '0.00003', '30'), part(1, '4388891', '0.00002', '87.77782')],
  };

  it('is written out tier by tier, and was rounded once', () => {
    const explained = explainLine(line(graduated))!;
    expect(explained.parts.map(({ place }) => place)).to.deep.equal(['first', 'last']);
    expect([explained.units, explained.cost, explained.rounded_from, explained.is_rounded]).to.deep.equal([
      '5388891',
      '117.77782',
      '117.77782',
      true,
    ]);
  });

  it('is exact if nothing was rounded', () => {
    const explained = explainLine(line({ ...graduated, breakdown: [part(0, '1', '117.78', '117.780')] }))!;
    expect(explained.is_rounded).to.equal(false);
  });

  for (const [price, breakdown, places] of [
    [{ billing_model: 'TIERED', tier_mode: 'VOLUME' }, [part(2, '5', '1', '5')], ['all']],
    [{ billing_model: 'FLAT_FEE' }, [part(null, '5', '1', '5')], ['units']],
    [{ billing_model: 'PACKAGE' }, [part(null, '2', '10', '20')], ['packages']],
    [
      graduated.price,
      [part(0, '1', '1', '1'), part(1, '1', '1', '1'), part(2, '1', '1', '1')],
      ['first', 'next', 'last'],
    ],
  ] as const)
    it(`names the parts of ${JSON.stringify(price)}: ${places.join(', ')}`, () =>
      expect(explainLine(line({ price, breakdown }))!.parts.map(({ place }) => place)).to.deep.equal(places));

  it('says nothing of rounding where other steps decide the amount, too', () => {
    const commitment_info = {
      computed_commitment_utilized_amount: '100',
      computed_overage_amount: '17.78',
      computed_true_up_amount: '0',
    };
    for (const [from, rest, kinds] of [
      [{ proration: '0.5' }, {}, ['share']],
      [{ less: { amount: '3' } }, {}, ['less']],
      [{ chain: { lines: [1, 2], until_begin: '1', until_end: '2' } }, {}, ['chain']],
      [{ chain: { lines: [1], until_begin: '0', until_end: '2' } }, {}, []],
      [{}, { commitment_info }, ['utilized', 'overage']],
      [{ edited: { amount: '1', quantity: '2' } }, {}, ['edited']],
    ] as const) {
      const explained = explainLine(line({ ...graduated, ...from }, rest))!;
      expect(explained.steps.map(({ kind }) => kind)).to.deep.equal(kinds);
      expect(explained.rounded_from === null).to.equal(kinds.length > 0);
    }
  });

  it('is null for a line that was written by hand', () => expect(explainLine(line(null))).to.equal(null));

  it('names free units', () => {
    expect(explainLine(line(graduated, { adjusted_entitlement_quantity: '500' }))!.free_units).to.equal('500');
    expect(explainLine(line(graduated, { adjusted_entitlement_quantity: '0' }))!.free_units).to.equal(null);
  });

  for (const [price, amount, power] of [
    ['0.00003', '30', 6],
    ['0.0025', '2.5', 3],
    ['0.05', '0.05', 0],
    ['8', '8', 0],
    ['0', '0', 0],
    ['0.000', '0', 0],
  ] as const)
    it(`shows ${price} as ${amount} for 10^${power} units`, () =>
      expect(toReadablePrice(price)).to.deep.equal({ amount, power }));

  it('writes price and flat amount in the digits of the language', () => {
    const { parts } = explainLine(line({ ...graduated, breakdown: [part(0, '1', '0.00003', '1', '5')] }))!;
    expect([formatTimes('en', parts[0]!), formatTimes('de', parts[0]!)]).to.deep.equal([
      '× 30.00 / 1 M + 5.00',
      '× 30,00 / 1 M + 5,00',
    ]);
    expect([shortenHash('0123456789abcdef'), shortenHash('abc')]).to.deep.equal(['0123…cdef', 'abc']);
  });
});

describe('the reason of a line', () => {
  const CASES: [Parameters<typeof formatLineReason>[0], string | null, string | null][] = [
    [{}, null, null],
    [null, null, null],
    [
      { kind: 'true_up', of_term: { used: '40', committed: '100' } },
      'shortfall of the commitment; $40.00 of $100.00 were used',
      'Fehlbetrag zur Zusage; genutzt wurden 40,00 $ von 100,00 $',
    ],
    [
      { kind: 'late_events', less: { amount: '1234.5', invoiced: 'by_other_invoices' } },
      'events that came after the invoice of their period was final; less $1,234.50 that other invoices have charged',
      'Ereignisse, die nach der endgültigen Rechnung ihres Zeitraums kamen; abzüglich 1.234,50 $, die andere Rechnungen berechnet haben',
    ],
    [
      { kind: null, less: { amount: '1', invoiced: 'before_period_end' } },
      'less $1.00 that was invoiced before the end of the period',
      'abzüglich 1,00 $, die vor dem Ende des Zeitraums berechnet wurden',
    ],
  ];
  for (const [fields, english, german] of CASES)
    it(`is made from ${JSON.stringify(fields)} in both languages`, () => {
      expect(formatLineReason(fields, 'en', 'usd')).to.equal(english);
      expect(formatLineReason(fields, 'de', 'usd')?.replaceAll(/\s/g, ' ') ?? null).to.equal(german);
    });
});

describe('a proof in the browser', () => {
  const golden = () =>
    JSON.parse(readFileSync(join(import.meta.dirname, '..', 'golden', 'invoice-proof.json'), 'utf8')) as Parameters<
      typeof checkInvoice
    >[0];

  it('is computed again without its events', async () => {
    const { differences, stated } = await checkInvoice(golden());
    expect(differences).to.deep.equal([]);
    expect(stated).to.not.deep.equal([]);
  });

  it('names the number that differs, of a line and of a total', async () => {
    const proof = golden();
    const index = proof.lines.findIndex(({ line }) => line.price_type === 'USAGE');
    const { line } = proof.lines[index]!;
    line.amount = addDecimals([line.amount, '0.01']);
    const { differences } = await checkInvoice(proof);
    expect(differences.map((each) => `${each.line} ${each.field}`)).to.include.members([
      `${line.id} amount`,
      'invoice subtotal',
    ]);
  });

  const hash = (...parts: readonly Uint8Array[]) => {
    const sum = createHash('sha256');
    for (const each of parts) sum.update(each);
    return new Uint8Array(sum.digest());
  };
  const toHex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

  for (const [count, at] of [
    [1, 0],
    [5, 0],
    [5, 4],
    [13, 6],
  ] as const)
    it(`leads event ${at + 1} of ${count} to the root, by WebCrypto, and no changed one`, async () => {
      const leaves = Array.from({ length: count }, (_, n) => ({
        event_id: `é-${n}`,
        timestamp_us: 1_767_225_600_000_000 + n,
        external_customer_id: 'acme',
        value: String(n),
        group: '',
      }));
      const tree = new MerkleTree(hash);
      const hashes = leaves.map((leaf, n) => tree.add(Buffer.from(formatLeaf(leaf)), { watched: n === at }));
      const { root, path } = tree.finish();
      const proof = {
        invoice: { id: 'inv' },
        lines: [{ line: { id: 'l' }, seal: { event_count: count, root: toHex(root) } }],
      };
      const leaf = { ...leaves[at]!, timestamp_us: String(leaves[at]!.timestamp_us) };
      const event = {
        format: PROOF_FORMAT,
        invoice_id: 'inv',
        event_id: leaf.event_id,
        lines: [
          {
            line_id: 'l',
            event_count: count,
            index: at,
            leaf,
            leaf_hash: toHex(hashes[at]!),
            path: path.map((step) => ({ side: step.side, hash: toHex(step.hash) })),
            root: toHex(root),
          },
        ],
      };
      const check = (changed: typeof event) => checkEvent(proof as never, changed as never);
      expect((await check(event)).differences).to.deep.equal([]);
      leaf.value += '0';
      expect((await check(event)).differences.map(({ field }) => field)).to.include.members(['leaf_hash', 'root']);
    });
});
