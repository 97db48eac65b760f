import { expect } from 'chai';
import { clearRepeats } from '../../console/charts/series.ts';
import {
  buildPreset,
  buildRangeBefore,
  countDays,
  coverInstants,
  isDay,
  isMonth,
  toInstants,
} from '../../console/components/range.ts';
import {
  addParts,
  chooseWindow,
  computeChange,
  computeShare,
  fillWindows,
  formatPercent,
  isAdditive,
  isAllZero,
  isTooFine,
  listCorrectionMarks,
  listPriceChanges,
  listValues,
  moveWindows,
  roundAmount,
  subtractParts,
} from '../../console/pages/usage/usage-figures.ts';

const NOVEMBER = { from: '2026-11-01', to: '2026-12-01' };
const now_ms = Date.parse('2026-11-30T17:00:00Z');

describe('console: axes', () => {
  it('writes a label once where the places have the same', () => {
    expect(clearRepeats(['18:27', '18:27', '18:28', '18:27'])).to.deep.equal(['18:27', '', '18:28', '18:27']);
    expect(clearRepeats([])).to.deep.equal([]);
  });
});

describe('console: ranges of days', () => {
  it('builds half-open presets', () => {
    expect(buildPreset('today', now_ms)).to.deep.equal({ from: '2026-11-30', to: '2026-12-01' });
    expect(buildPreset('week', now_ms)).to.deep.equal({ from: '2026-11-24', to: '2026-12-01' });
    expect(buildPreset('month', now_ms)).to.deep.equal(NOVEMBER);
    expect(buildPreset('last_month', Date.parse('2026-01-31T00:00:00Z'))).to.deep.equal({
      from: '2025-12-01',
      to: '2026-01-01',
    });
    expect(countDays(buildPreset('quarter', now_ms))).to.equal(90);
  });

  it('puts months before months, and days before days', () => {
    expect(buildRangeBefore(NOVEMBER)).to.deep.equal({ from: '2026-10-01', to: '2026-11-01' });
    expect(buildRangeBefore({ from: '2026-01-01', to: '2026-04-01' })).to.deep.equal({
      from: '2025-10-01',
      to: '2026-01-01',
    });
    expect(buildRangeBefore({ from: '2026-03-03', to: '2026-03-05' })).to.deep.equal({
      from: '2026-03-01',
      to: '2026-03-03',
    });
  });

  it('knows days and months', () => {
    expect(['2026-02-29', '2026-2-1', 'x', undefined, '2024-02-29'].map(isDay)).to.deep.equal([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(isMonth(NOVEMBER)).to.equal(true);
    expect(isMonth({ from: '2026-10-01', to: '2026-12-01' })).to.equal(false);
    expect(toInstants(NOVEMBER).end_time).to.equal('2026-12-01T00:00:00Z');
    expect(coverInstants('2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z')).to.deep.equal(NOVEMBER);
    expect(coverInstants('2026-11-01T09:30:00Z', '2026-11-30T12:00:00Z')).to.deep.equal(NOVEMBER);
  });
});

describe('console: figures of usage', () => {
  const range = { from: '2026-11-28', to: '2026-12-02' };

  it('fills windows without events with zero where a sum says so, up to now', () => {
    const windows = [{ at: '2026-11-29T00:00:00Z', value: '5' }];
    const input = { range, window: 'DAY' as const, now_ms };
    expect(fillWindows(windows, { ...input, aggregation: 'SUM' }).map(({ value }) => value)).to.deep.equal([
      '0',
      '5',
      '0',
    ]);
    expect(fillWindows(windows, { ...input, aggregation: 'MAX' })).to.deep.equal([
      { at: '2026-11-29T00:00:00.000Z', value: '5' },
    ]);
  });

  it('moves the period before under the range, the first window under the first', () => {
    const october = { from: '2026-10-01', to: '2026-11-01' };
    const points = ['2026-10-01', '2026-10-30', '2026-10-31'].map((day) => ({
      at: `${day}T00:00:00.000Z`,
      value: day,
    }));
    expect(moveWindows(points, october, NOVEMBER, 'DAY').map(({ at }) => at.slice(0, 10))).to.deep.equal([
      '2026-11-01',
      '2026-11-30',
    ]);
  });

  it('leaves to the line of all others what the drawn parts do not have, exactly', () => {
    const days = (values: Record<string, string>) => Object.entries(values).map(([at, value]) => ({ at, value }));
    const whole = days({ mon: '10', tue: '0.3', wed: '12345678901234567890' });
    const parts = [days({ mon: '4', tue: '0.1', wed: '1' }), days({ mon: '6', tue: '0.2' })];
    const rest = subtractParts(whole, parts);
    expect(rest).to.deep.equal(days({ mon: '0', tue: '0', wed: '12345678901234567889' }));
    expect(isAllZero(rest)).to.equal(false);
    expect(isAllZero(rest.slice(0, 2))).to.equal(true);
    expect(addParts(parts)).to.deep.equal(days({ mon: '10', tue: '0.3', wed: '1' }));
    expect(['COUNT', 'SUM', 'MAX', 'COUNT_UNIQUE', 'AVG', 'LATEST'].filter(isAdditive)).to.deep.equal(['COUNT', 'SUM']);
  });

  it('chooses windows that can be drawn', () => {
    expect(chooseWindow({ from: '2026-11-01', to: '2026-11-02' })).to.equal('HOUR');
    expect(chooseWindow(NOVEMBER)).to.equal('DAY');
    expect(chooseWindow({ from: '2026-01-01', to: '2027-01-01' })).to.equal('MONTH');
    expect(isTooFine('HOUR', NOVEMBER)).to.equal(false);
    expect(isTooFine('HOUR', { from: '2026-10-01', to: '2026-12-01' })).to.equal(true);
  });

  it('computes changes and shares of exact decimals', () => {
    expect(computeChange('118.2', '100')).to.equal('18.2');
    expect(computeChange('96.6', '100')).to.equal('-3.4');
    expect(computeChange('1', '0')).to.equal(null);
    expect(computeShare('742118400', '1204551090')).to.equal('61.6');
    expect(computeShare('0', '0')).to.equal(null);
    expect(formatPercent('en', '18.2', { isChange: true })).to.equal('+18.2 %');
    expect(formatPercent('de', '-3.4', { isChange: true })).to.equal('−3,4 %');
    expect(formatPercent('en', '20.0')).to.equal('20.0 %');
    expect(roundAmount('1283.858588988', 2)).to.equal('1283.86');
  });

  it('lists distinct values, the largest first, and counts those left out', () => {
    const weights = [
      { value: 'a', usage: '1' },
      { value: 'b', usage: '9' },
      { value: 'a', usage: '10' },
      { value: '', usage: '99' },
      { value: 'c', usage: '2' },
    ];
    expect(listValues(weights, 2)).to.deep.equal({ values: ['a', 'b'], left_out: 1 });
  });

  it('marks a price that follows another one of its plan', () => {
    const price = { entity_id: 'p', start_date: '2026-11-19T00:00:00Z', end_date: null, plan_name: 'Scale' };
    const former = { ...price, start_date: '2026-01-01T00:00:00Z', end_date: '2026-11-19T00:00:00Z' };
    expect(listPriceChanges([former, price], NOVEMBER, (plan) => plan)).to.deep.equal([
      { at: '2026-11-19T00:00:00Z', label: 'Scale' },
    ]);
    expect(listPriceChanges([price], NOVEMBER, (plan) => plan)).to.deep.equal([]);
    expect(listPriceChanges([former, { ...price, entity_id: 'q' }], NOVEMBER, (plan) => plan)).to.deep.equal([]);
  });

  it('marks each window of the range with corrected events', () => {
    const corrections = [
      { timestamp: '2026-11-03T10:20:00Z' },
      { timestamp: '2026-11-03T23:59:59.999999Z' },
      { timestamp: '2026-11-30T00:00:00Z' },
      { timestamp: '2026-10-31T23:59:59Z' },
      { timestamp: '2026-12-01T00:00:00Z' },
      { timestamp: null },
    ];
    const mark = (window: 'HOUR' | 'DAY' | 'MONTH') =>
      listCorrectionMarks(corrections, { range: NOVEMBER, window, label: String }).map(({ at, label }) => [at, label]);
    expect(mark('DAY')).to.deep.equal([
      ['2026-11-03T00:00:00.000Z', '2'],
      ['2026-11-30T00:00:00.000Z', '1'],
    ]);
    expect(mark('HOUR')).to.deep.equal([
      ['2026-11-03T10:00:00.000Z', '1'],
      ['2026-11-03T23:00:00.000Z', '1'],
      ['2026-11-30T00:00:00.000Z', '1'],
    ]);
    expect(mark('MONTH')).to.deep.equal([['2026-11-01T00:00:00.000Z', '3']]);
  });
});
