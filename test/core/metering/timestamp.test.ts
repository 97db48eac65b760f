import { expect } from 'chai';
import fc from 'fast-check';
import { formatTimestamp, parseTimestamp } from '../../../core/metering/timestamp.ts';

describe('timestamp: RFC 3339 to microseconds', () => {
  const instants: [string, number][] = [
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T00:00:00.000001Z', 1],
    ['1969-12-31T23:59:59.999999Z', -1],
    ['2026-01-01T00:00:00Z', 1_767_225_600_000_000],
    ['2026-01-01t00:00:00z', 1_767_225_600_000_000],
    ['2026-01-01T05:30:00+05:30', 1_767_225_600_000_000],
    ['2025-12-31T19:00:00-05:00', 1_767_225_600_000_000],
    ['2026-01-01T00:00:00-00:00', 1_767_225_600_000_000],
    ['2026-01-01T00:00:00.5Z', 1_767_225_600_500_000],
    ['2026-01-01T00:00:00.123456789Z', 1_767_225_600_123_456],
    ['2026-01-01T00:00:00.999999999Z', 1_767_225_600_999_999],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29) * 1000],
    ['2000-02-29T23:59:59Z', Date.UTC(2000, 1, 29, 23, 59, 59) * 1000],
    ['1900-01-01T00:00:00Z', Date.UTC(1900, 0, 1) * 1000],
    ['2254-12-31T23:59:59.999999Z', Date.UTC(2255, 0, 1) * 1000 - 1],
  ];
  for (const [text, us] of instants) it(`${text} is ${us}`, () => expect(parseTimestamp(text)).to.equal(us));

  for (const text of ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z', '0001-01-01T02:00:00+02:00']) {
    it(`${text} is absent`, () => expect(parseTimestamp(text)).to.equal('absent'));
  }

  for (const text of ['1899-12-31T23:59:59.999999Z', '2255-01-01T00:00:00Z', '1900-01-01T00:00:00+00:01']) {
    it(`${text} is out of range`, () => expect(parseTimestamp(text)).to.equal('out of range'));
  }

  for (const text of [
    '',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00Z',
    '2026-1-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-06-30T23:59:60Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
    '2026-01-01T00:00:00,5Z',
    '2026-01-01T00:00:00+0530',
    '2026-01-01T00:00:00+05',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+05:60',
    '2026-01-01T00:00:00+05:30Z',
    '20260101T000000Z',
    '1767225600',
    '+002026-01-01T00:00:00Z',
    '2026-01-01T00:00:00ZZ',
    '２026-01-01T00:00:00Z',
  ]) {
    it(`${JSON.stringify(text)} is malformed`, () => expect(parseTimestamp(text)).to.equal('malformed'));
  }

  const instant = fc.integer({ min: Date.UTC(1900, 0, 1) * 1000, max: Date.UTC(2255, 0, 1) * 1000 - 1 });

  it('is the inverse of formatting, and formatting agrees with Date', () => {
    fc.assert(
      fc.property(instant, (us) => {
        const text = formatTimestamp(us);
        expect(parseTimestamp(text)).to.equal(us);
        const ms = Math.floor(us / 1000);
        expect(Date.parse(text.replace(/(\.\d{3})\d+Z$/, '$1Z'))).to.equal(ms);
      }),
    );
  });

  it('takes any offset off', () => {
    const minutes = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e15 }), minutes, (us, offset) => {
        const local = formatTimestamp(us + offset * 60_000_000).slice(0, -1);
        const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
        const zone = `${offset < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(rest).padStart(2, '0')}`;
        expect(parseTimestamp(local + zone)).to.equal(us);
      }),
    );
  });
});
