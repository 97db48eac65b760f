import { expect } from 'chai';
import fc from 'fast-check';
import {
  ceilToMs,
  formatMs,
  formatUs,
  type Microseconds,
  type Milliseconds,
  parseEventTime,
  parseInstant,
  toInstant,
  toMs,
  toUs,
} from '../../../../core/foundation/time/instant.ts';

describe('the instant of a record: RFC 3339 to milliseconds', () => {
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
    it(`${text} is ${utc}`, () => expect(formatMs(parseInstant(text) ?? Number.NaN)).to.equal(utc));

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
    it(`${JSON.stringify(text)} is refused`, () => expect(parseInstant(text)).to.equal(undefined));

  it('reads back what formatMs writes, and texts sort as instants do', () => {
    const instants = fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(2200, 0) });
    fc.assert(
      fc.property(instants, instants, (a, b) => {
        expect(parseInstant(formatMs(a))).to.equal(a);
        expect(formatMs(a) < formatMs(b)).to.equal(a < b);
      }),
    );
  });
});

describe('the units of an instant', () => {
  for (const [us, before, notBefore] of [
    [0, 0, 0],
    [1, 0, 1],
    [999, 0, 1],
    [1000, 1, 1],
    [-1, -1, 0],
    [-1000, -1, -1],
  ] as const)
    it(`${us} µs lies in millisecond ${before}, and ${notBefore} is the first not before it`, () => {
      expect([toMs(us), ceilToMs(us) + 0]).to.deep.equal([before, notBefore]);
    });

  it('both parsers read one instant, as far as the finer unit reaches', () => {
    const instant = fc.integer({ min: Date.UTC(1900, 0, 1) * 1000, max: Date.UTC(2255, 0, 1) * 1000 - 1 });
    fc.assert(fc.property(instant, (us) => parseInstant(formatUs(us)) === toMs(us)));
    fc.assert(fc.property(instant, (us) => parseEventTime(formatMs(toMs(us))) === toUs(toMs(us))));
  });

  it('the compiler refuses one unit where the other is meant', () => {
    const us: Microseconds = 1_500;
    const ms: Milliseconds = 1;
    // @ts-expect-error: microseconds are no milliseconds
    expect(formatMs(us)).to.not.equal(formatUs(us));
    // @ts-expect-error: milliseconds are no microseconds
    expect(formatUs(ms)).to.not.equal(formatMs(ms));
  });

  it('a record whose timestamp is none is an error of ours, and no NaN', () => {
    expect(() => toInstant(''))
      .to.throw('"" is not a timestamp')
      .with.property('code', 'system_error');
  });
});

describe('the time of an event: RFC 3339 to microseconds', () => {
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
  for (const [text, us] of instants) it(`${text} is ${us}`, () => expect(parseEventTime(text)).to.equal(us));

  for (const text of ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z', '0001-01-01T02:00:00+02:00']) {
    it(`${text} is absent`, () => expect(parseEventTime(text)).to.equal('absent'));
  }

  for (const text of ['1899-12-31T23:59:59.999999Z', '2255-01-01T00:00:00Z', '1900-01-01T00:00:00+00:01']) {
    it(`${text} is out of range`, () => expect(parseEventTime(text)).to.equal('out of range'));
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
    it(`${JSON.stringify(text)} is malformed`, () => expect(parseEventTime(text)).to.equal('malformed'));
  }

  const instant = fc.integer({ min: Date.UTC(1900, 0, 1) * 1000, max: Date.UTC(2255, 0, 1) * 1000 - 1 });

  it('is the inverse of formatting, and formatting agrees with Date', () => {
    fc.assert(
      fc.property(instant, (us) => {
        const text = formatUs(us);
        expect(parseEventTime(text)).to.equal(us);
        const ms = Math.floor(us / 1000);
        expect(Date.parse(text.replace(/(\.\d{3})\d+Z$/, '$1Z'))).to.equal(ms);
      }),
    );
  });

  it('takes any offset off', () => {
    const minutes = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e15 }), minutes, (us, offset) => {
        const local = formatUs(us + offset * 60_000_000).slice(0, -1);
        const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
        const zone = `${offset < 0 ? '-' : '+'}${String(hours).padStart(2, '0')}:${String(rest).padStart(2, '0')}`;
        expect(parseEventTime(local + zone)).to.equal(us);
      }),
    );
  });
});
