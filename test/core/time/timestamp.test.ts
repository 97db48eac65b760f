import { expect } from 'chai';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from '../../../core/time/timestamp.ts';

describe('parseTimestamp', () => {
  const rows: [string, string][] = [
    ['2024-02-29T12:34:56Z', '2024-02-29T12:34:56.000Z'],
    ['2024-02-29t12:34:56z', '2024-02-29T12:34:56.000Z'],
    ['2024-01-01T00:00:00.5Z', '2024-01-01T00:00:00.500Z'],
    ['2024-01-01T00:00:00.123999999Z', '2024-01-01T00:00:00.123Z'],
    ['2024-01-01T00:00:00.1239999999999Z', '2024-01-01T00:00:00.123Z'],
    ['2024-01-01T05:45:00+05:45', '2024-01-01T00:00:00.000Z'],
    ['2023-12-31T19:00:00-05:00', '2024-01-01T00:00:00.000Z'],
    ['2024-01-01T00:00:00-00:00', '2024-01-01T00:00:00.000Z'],
    ['0050-01-01T00:00:00Z', '0050-01-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59+12:00', '9999-12-31T11:59:59.000Z'],
  ];
  for (const [text, utc] of rows)
    it(`${text} is ${utc}`, () => expect(formatTimestamp(parseTimestamp(text) ?? Number.NaN)).to.equal(utc));

  const refused = [
    '',
    '2024-01-01',
    '2024-01-01T00:00:00',
    '2024-01-01 00:00:00Z',
    '2023-02-29T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-01T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T23:60:00Z',
    '2024-01-01T23:59:60Z',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T00:00:00+24:00',
    '2024-01-01T00:00:00+0530',
    '2024-01-01T00:00Z',
    '24-01-01T00:00:00Z',
    '+002024-01-01T00:00:00Z',
    ' 2024-01-01T00:00:00Z',
    '2024-01-01T00:00:00Z\n',
    '1704067200000',
    '0000-12-31T23:59:59Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-12:00',
  ];
  for (const text of refused)
    it(`${JSON.stringify(text)} is refused`, () => expect(parseTimestamp(text)).to.equal(undefined));

  it('reads back what formatTimestamp writes, and texts sort as instants do', () => {
    const instants = fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(2200, 0) });
    fc.assert(
      fc.property(instants, instants, (a, b) => {
        expect(parseTimestamp(formatTimestamp(a))).to.equal(a);
        expect(formatTimestamp(a) < formatTimestamp(b)).to.equal(a < b);
      }),
    );
  });
});
