/** A line of CSV: what the library that is used elsewhere writes, and nothing that a spreadsheet takes for a formula. */
import { expect } from 'chai';
import { stringify } from 'csv-stringify/sync';
import fc from 'fast-check';
import type { ColumnHead, ExportCell } from '../../../../core/platform/export/column.ts';
import { escapeFormula, formatCsvHead, formatCsvLine, unescapeFormula } from '../../../../core/platform/export/csv.ts';
import { INVOICE_LINE_COLUMNS } from '../../../../core/platform/export/invoice-lines.ts';
import { anyText } from '../../../support/any-text.ts';
import { samples } from '../../../support/samples.ts';

const text: ColumnHead = { name: 'text', kind: 'text' };
const lineOf = (...cells: string[]) =>
  formatCsvLine(
    cells.map(() => text),
    cells,
  );

/** Where a spreadsheet that is set up for another delimiter, or that knows other ends of lines, begins a cell. */
const OTHER_DELIMITERS = /[;\t|\r\n\u0085\u2028\u2029]/;

describe('a line of CSV', () => {
  it('of an invoice line escapes the price type, which earlier versions accepted as any text', () => {
    const column = INVOICE_LINE_COLUMNS.find(({ name }) => name === 'price_type')!;
    expect(formatCsvLine([column], ['=1+1'])).to.equal("'=1+1\r\n");
    expect(formatCsvLine([column], ['a,"b"\r\n'])).to.equal('"a,""b""\r\n"\r\n');
  });

  const signs = fc.stringMatching(/^[=+@\-'",;\t|\r\n \u2028\ufeff＝a1.{}:/]{0,12}$/u);
  const cell = fc.oneof(signs, anyText(), fc.json());

  it('is what csv-stringify writes of the defused texts', () => {
    fc.assert(
      fc.property(fc.array(cell, { minLength: 2, maxLength: 5 }), (cells) => {
        const options = { record_delimiter: '\r\n', quoted_match: OTHER_DELIMITERS };
        expect(lineOf(...cells)).to.equal(stringify([cells.map(escapeFormula)], options));
      }),
      { numRuns: samples(2_000) },
    );
  });

  it('comes back as it was, whatever apostrophes it has of its own', () => {
    const apostrophes = fc.stringMatching(/^['=+@\-;\t|\r\n \u2028a]{0,8}$/u);
    fc.assert(
      fc.property(fc.oneof(apostrophes, cell), (given) => {
        expect(unescapeFormula(escapeFormula(given))).to.equal(given);
      }),
      { numRuns: samples(5_000) },
    );
  });

  it('is no formula, at its beginning or where another spreadsheet cuts', () => {
    const begins = /^[\s\p{C}\p{Z}\p{M}]*[=+\-@＝＋－＠]/u;
    fc.assert(
      fc.property(cell, (given) => {
        for (const part of [escapeFormula(given), ...escapeFormula(given).split(OTHER_DELIMITERS)])
          expect(part).not.to.match(begins);
      }),
      { numRuns: samples(5_000) },
    );
  });

  for (const [given, written] of [
    ['plain', 'plain'],
    ['=1+1', "'=1+1"],
    ['-5', "'-5"],
    ["'-5", "''-5"],
    ["it's", "it's"],
    ["'tis", "'tis"],
    ['\ufeff=1', "'\ufeff=1"],
    ['\u3164=1', "'\u3164=1"],
    ['\u2800@x', "'\u2800@x"],
    ['\u115f\uffa0+1', "'\u115f\uffa0+1"],
    ['﹦1', "'﹦1"],
    ['ㅎ=1', 'ㅎ=1'],
    ['a;=1', `"a;'=1"`],
    ['a|b', '"a|b"'],
    ['say "hi"', '"say ""hi"""'],
    ['＝1', "'＝1"],
    ['', ''],
  ] as const)
    it(`${JSON.stringify(given)} is ${written}`, () => expect(lineOf(given)).to.equal(`${written}\r\n`));

  it('defuses texts alone: a negative number stays one', () => {
    const heads: ColumnHead[] = [
      { name: 'amount', kind: 'decimal' },
      { name: 'count', kind: 'integer' },
      { name: 'at', kind: 'instant' },
      { name: 'id', kind: 'word' },
      { name: 'none', kind: 'text' },
    ];
    const cells: ExportCell[] = ['-5.25', -3, 1_772_323_200_000_001, 'inv_1', null];
    expect(formatCsvLine(heads, cells)).to.equal('-5.25,-3,2026-03-01T00:00:00.000001Z,inv_1,\r\n');
    expect(formatCsvHead([{ name: '=x', kind: 'text' }, text])).to.equal("'=x,text\r\n");
  });

  it('writes instants as spreadsheets read them, to the millisecond', () => {
    const at = { name: 'at', kind: 'instant' } as const;
    const written = (us: number) => formatCsvLine([at], [us], 'spreadsheet').trimEnd();
    const noon = Date.UTC(2026, 2, 1, 12) * 1000;
    expect(written(noon)).to.equal('2026-03-01 12:00:00');
    expect(written(noon + 123_999)).to.equal('2026-03-01 12:00:00.123');
    expect(written(-1)).to.equal('1969-12-31 23:59:59.999');
  });
});
