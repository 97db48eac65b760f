import { expect } from 'chai';
import { formatUs, parseEventTime } from '../../../../core/foundation/time/instant.ts';
import type { WindowSize } from '../../../../core/foundation/time/window.ts';
import { planSegments } from '../../../../core/metering/analytics/segments.ts';
import { compileMeter } from '../../../../core/metering/compiled-meter.ts';
import { atOnce } from '../../../support/usage-of-events.ts';

const HOURLY = compileMeter({
  id: 'm',
  event_name: 'call',
  filters: [],
  reset_usage: 'BILLING_PERIOD',
  aggregation: { type: 'COUNT' },
});

describe('the base buckets of ragged ends', () => {
  const cases: { name: string; range: [string, string]; windows?: WindowSize; timezone?: string; edges: string }[] = [
    { name: 'none where nothing is ragged', range: ['01 10:00', '02 12:00'], edges: '' },
    { name: 'the last hour of until now', range: ['01 00:00', '02 12:34'], edges: '02 12:00-02 13:00' },
    { name: 'the first and the last', range: ['01 10:20', '02 12:34'], edges: '01 10:00-01 11:00, 02 12:00-02 13:00' },
    { name: 'one that holds the whole range', range: ['01 10:20', '01 10:50'], edges: '01 10:00-01 11:00' },
    { name: 'two side by side', range: ['01 10:20', '01 11:10'], edges: '01 10:00-01 12:00' },
    { name: 'a range up to the hour', range: ['01 10:20', '01 11:00'], edges: '01 10:00-01 11:00' },
    { name: 'the last hour of windows', range: ['01 00:00', '02 12:34'], windows: 'DAY', edges: '02 12:00-02 13:00' },
    { name: 'none that two windows share', range: ['01 10:20', '01 10:50'], windows: 'MINUTE', edges: '' },
    {
      name: 'none where windows cut other hours, too',
      range: ['01 00:00', '03 12:34'],
      windows: 'DAY',
      timezone: 'Asia/Kolkata',
      edges: '',
    },
  ];
  const instant = (text: string) => parseEventTime(`2026-03-${text.replace(' ', 'T')}:00Z`) as number;
  const short = (us: number) => formatUs(us).slice(8, 16).replace('T', ' ');
  for (const { name, range, windows, timezone = 'UTC', edges } of cases)
    it(name, () => {
      const asked = { start_us: instant(range[0]), end_us: instant(range[1]), window_size: windows };
      const plan = atOnce(planSegments(HOURLY, { ...asked, grid: { timezone, billing_anchor: null } }));
      expect(plan.edge_ranges.map(([from, to]) => `${short(from)}-${short(to)}`).join(', ')).to.equal(edges);
    });
});
