// docs/rules/imports.md, "Numbers and dates".
import { expect } from 'chai';
import { toInstantText } from '../../../../../core/platform/import/mapping/instant-cell.ts';
import { toNumberText } from '../../../../../core/platform/import/mapping/number-cell.ts';
import type { DateFormat, DecimalSeparator } from '../../../../../core/platform/import/mapping/record.ts';

describe('a number in a cell', () => {
  const ROWS: [cell: string, separator: DecimalSeparator, number: string | undefined][] = [
    ['0.1664000000', 'POINT', '0.1664000000'],
    ['1.5e-05', 'POINT', '1.5e-05'],
    ['3.96E+04', 'POINT', '3.96e+04'],
    ['-0.0007666667', 'POINT', '-0.0007666667'],
    ['12345678901234567890.12', 'POINT', '12345678901234567890.12'],
    [' +007 ', 'POINT', '7'],
    ['.5', 'POINT', '0.5'],
    ['5.', 'POINT', '5'],
    ['(1,234.50)', 'POINT', '-1234.50'],
    ['−4', 'POINT', '-4'],
    ['1,234,567.8', 'POINT', '1234567.8'],
    ['12,34,567.89', 'POINT', '1234567.89'],
    ["1'234.5", 'POINT', '1234.5'],
    ['1,5', 'POINT', undefined],
    ['1,2345', 'POINT', undefined],
    ['1,234 567', 'POINT', undefined],
    ['1.234,5', 'POINT', undefined],
    ['1.234,50', 'COMMA', '1234.50'],
    ['1.234', 'COMMA', '1234'],
    ['12,5', 'COMMA', '12.5'],
    ['1\u00a0234,5', 'COMMA', '1234.5'],
    ['1\u202f234\u202f567', 'COMMA', '1234567'],
    ['1.23', 'COMMA', undefined],
    ['', 'POINT', undefined],
    ['.', 'POINT', undefined],
    ['-', 'POINT', undefined],
    ['12 EUR', 'POINT', undefined],
    ['(-5)', 'POINT', undefined],
    ['0x10', 'POINT', undefined],
    ['Infinity', 'POINT', undefined],
    ['1'.repeat(64), 'POINT', '1'.repeat(64)],
    ['1'.repeat(65), 'POINT', undefined],
  ];
  for (const [cell, separator, number] of ROWS)
    it(`${JSON.stringify(cell)} with a decimal ${separator}: ${number ?? 'refused'}`, () => {
      expect(toNumberText(cell, separator)).to.equal(number);
    });
});

describe('an instant in a cell', () => {
  const ROWS: [cell: string, format: DateFormat, instant: string | undefined, zone?: string][] = [
    ['2026-10-01 22:00:00', 'YEAR_FIRST', '2026-10-01T22:00:00Z'],
    ['2026-10-05 14:02:10.480000', 'YEAR_FIRST', '2026-10-05T14:02:10.480000Z'],
    ['2026-10-01T00:00:00Z', 'YEAR_FIRST', '2026-10-01T00:00:00Z'],
    ['2026-10-01T02:00:00+02:00', 'YEAR_FIRST', '2026-10-01T00:00:00Z'],
    ['2026-10-01 02:00:00 +0530', 'YEAR_FIRST', '2026-09-30T20:30:00Z'],
    ['2026-10-01 02:00:00 UTC', 'YEAR_FIRST', '2026-10-01T02:00:00Z', 'Asia/Tokyo'],
    ['2026-10-01', 'MONTH_FIRST', '2026-10-01T00:00:00Z'],
    ['2026/1/5', 'YEAR_FIRST', '2026-01-05T00:00:00Z'],
    ['20261020', 'YEAR_FIRST', '2026-10-20T00:00:00Z'],
    ['10/20/2026', 'MONTH_FIRST', '2026-10-20T00:00:00Z'],
    ['9/2/2026 2:05 PM', 'MONTH_FIRST', '2026-09-02T14:05:00Z'],
    ['9/2/2026 12:05:09 am', 'MONTH_FIRST', '2026-09-02T00:05:09Z'],
    ['20.10.2026 08:00', 'DAY_FIRST', '2026-10-20T06:00:00Z', 'Europe/Berlin'],
    ['2026-10-20', 'YEAR_FIRST', '2026-10-19T22:00:00Z', 'Europe/Berlin'],
    // The clock shows this time twice, and this one never.
    ['2026-10-25 02:30:00', 'YEAR_FIRST', '2026-10-25T00:30:00Z', 'Europe/Berlin'],
    ['2026-03-29 02:30:00', 'YEAR_FIRST', '2026-03-29T01:30:00Z', 'Europe/Berlin'],
    ['1791072130', 'UNIX_SECONDS', '2026-10-04T00:02:10Z'],
    ['1791072130.25', 'UNIX_SECONDS', '2026-10-04T00:02:10.25Z'],
    ['1791072130480', 'UNIX_MILLISECONDS', '2026-10-04T00:02:10.480Z'],
    ['10/20/2026', 'DAY_FIRST', undefined],
    ['10/20/2026', 'YEAR_FIRST', undefined],
    ['10/20/26', 'MONTH_FIRST', undefined],
    ['0001-01-01 00:00:00', 'YEAR_FIRST', undefined],
    ['0000-00-00', 'YEAR_FIRST', undefined],
    ['01/02/0026', 'DAY_FIRST', undefined],
    ['2026-02-30', 'YEAR_FIRST', undefined],
    ['2026-10-01 24:00:00', 'YEAR_FIRST', undefined],
    ['2026-10-01 13:00 PM', 'YEAR_FIRST', undefined],
    ['2026-1001', 'YEAR_FIRST', undefined],
    ['202610', 'YEAR_FIRST', undefined],
    ['yesterday', 'YEAR_FIRST', undefined],
    ['2026-10-01T00:00:00+25:00', 'YEAR_FIRST', undefined],
    [`2026-10-01 10:00${' '.repeat(60)}Z`, 'YEAR_FIRST', undefined],
    ['2026-10-01 10:00     PM', 'YEAR_FIRST', undefined],
    ['12', 'UNIX_MILLISECONDS', '1970-01-01T00:00:12Z'],
  ];
  for (const [cell, date_format, instant, time_zone = 'UTC'] of ROWS)
    it(`${JSON.stringify(cell)} ${date_format} in ${time_zone}: ${instant ?? 'refused'}`, () => {
      expect(toInstantText(cell, { date_format, time_zone })).to.equal(instant);
    });
});
