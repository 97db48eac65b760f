import { seeded, eventText, meterDefinitions } from './workload.ts';
import { compileMeters, matches } from '../core/metering/match.ts';
import { measure } from '../core/metering/compiled-meter.ts';
import { BucketAggregator } from '../core/metering/plan.ts';
import { readEvent } from '../core/metering/event-text.ts';
const idx = compileMeters(meterDefinitions().map((m, i) => ({ ...m, id: 'meter_' + i })));
const scope = { tenant_id: 't', environment_id: 'e' };
for (const total of [300000])
  for (const slice of [10000, 20000, 50000, 100000]) {
    const r = seeded(1);
    const agg = new BucketAggregator();
    let rows = 0,
      day = 0;
    for (let i = 0; i < total; i++) {
      const f = readEvent(eventText(r, i, total));
      for (const m of idx.get(f.event_name)!) {
        if (!matches(m, f.properties!)) continue;
        const c = measure(m, {
          event_id: f.event_id!,
          external_customer_id: f.external_customer_id!,
          timestamp_us: Date.parse(f.timestamp!) * 1000,
          properties: f.properties!,
        });
        if (c.unusable === undefined) agg.add(scope, m, c as any);
      }
      if ((i + 1) % slice === 0) {
        const d = agg.drain();
        rows += d.length;
        day += d.filter((x) => x.size === 'DAY').length;
      }
    }
    console.log(total, slice, 'rows/ev', rows / total, 'day/ev', day / total);
  }
