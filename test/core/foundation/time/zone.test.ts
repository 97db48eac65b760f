import { expect } from 'chai';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import {
  checkTimezone,
  firstInstantAt,
  instantAt,
  isTimezone,
  toLocalMs,
} from '../../../../core/foundation/time/zone.ts';
import { samples } from '../../../support/samples.ts';

const HOUR = 3_600_000;
const QUARTER = HOUR / 4;
/** Each in its own way. */
const CHANGING = ['America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Europe/Dublin', 'Africa/Casablanca'];

describe('timezones', () => {
  for (const name of ['UTC', 'Europe/Rome', 'Asia/Kathmandu', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5'])
    it(`${name} is one`, () => expect(isTimezone(name)).to.equal(true));
  for (const name of ['', 'Mars/Olympus', '+05:30', 'UTC+2', 'Europe/Rome ', '../etc/passwd'])
    it(`${JSON.stringify(name)} is none`, () => {
      expect(isTimezone(name)).to.equal(false);
      expect(() => checkTimezone(name))
        .to.throw('timezone:')
        .with.property('code', 'validation_error');
    });

  it('agrees with Intl on the clock of any instant in any zone', () => {
    const zones = Intl.supportedValuesOf('timeZone');
    const instants = fc.integer({ min: Date.UTC(1990, 0) / HOUR, max: Date.UTC(2037, 0) / HOUR });
    fc.assert(
      fc.property(fc.constantFrom(...zones), instants, (zone, hours) => {
        expect(toLocalMs(zone, hours * HOUR)).to.equal(wallTimeByIntl(zone, hours * HOUR));
      }),
      { numRuns: samples(500) },
    );
  });
});

describe('instantAt', () => {
  const byTemporal = (zone: string, wall: number) =>
    Temporal.Instant.fromEpochMilliseconds(wall).toZonedDateTimeISO('UTC').toPlainDateTime().toZonedDateTime(zone)
      .epochMilliseconds;

  it('agrees with Temporal on any wall time in any zone', () => {
    const zones = Intl.supportedValuesOf('timeZone');
    const walls = fc.integer({ min: Date.UTC(1900, 0) / QUARTER, max: Date.UTC(2037, 0) / QUARTER });
    fc.assert(
      fc.property(fc.constantFrom(...zones), walls, (zone, quarters) => {
        expect(instantAt(zone, quarters * QUARTER)).to.equal(byTemporal(zone, quarters * QUARTER));
      }),
      { numRuns: samples(100) },
    );
  });

  it('agrees with it around every change of two years', () => {
    for (const zone of CHANGING) {
      let change = Temporal.Instant.fromEpochMilliseconds(Date.UTC(2023, 0)).toZonedDateTimeISO(zone);
      for (let count = 0; count < 4; count++) {
        change = change.getTimeZoneTransition('next')!;
        const wall = change.epochMilliseconds + change.offsetNanoseconds / 1e6;
        for (let at = wall - 3 * HOUR; at < wall + 3 * HOUR; at += QUARTER)
          expect(instantAt(zone, at), `${zone} ${new Date(at).toISOString()}`).to.equal(byTemporal(zone, at));
      }
    }
    const skipped = Date.UTC(2011, 11, 30, 12);
    expect(instantAt('Pacific/Apia', skipped)).to.equal(byTemporal('Pacific/Apia', skipped));
  });
});

describe('firstInstantAt', () => {
  const rows: [string, string, string, string][] = [
    ['America/New_York', 'an ordinary time', '2024-07-01T12:00', '2024-07-01T16:00Z'],
    ['America/New_York', 'a skipped time: the change', '2024-03-10T02:30', '2024-03-10T07:00Z'],
    ['America/New_York', 'a repeated time: the first', '2024-11-03T01:30', '2024-11-03T05:30Z'],
    ['Australia/Lord_Howe', 'half an hour skipped', '2024-10-06T02:15', '2024-10-05T15:30Z'],
    ['America/Santiago', 'a midnight that does not exist', '2024-09-08T00:00', '2024-09-08T04:00Z'],
    ['America/Havana', 'a midnight that exists twice', '2024-11-03T00:00', '2024-11-03T04:00Z'],
    ['Pacific/Apia', 'a day that does not exist', '2011-12-30T00:00', '2011-12-30T10:00Z'],
  ];
  for (const [zone, name, wall, instant] of rows)
    it(`${zone}: ${name}`, () => {
      expect(firstInstantAt(zone, Date.parse(`${wall}Z`))).to.equal(Date.parse(instant));
    });
});

function wallTimeByIntl(timeZone: string, instant: number): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(instant);
  const part = (type: string) => Number(parts.find((one) => one.type === type)?.value);
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
}
