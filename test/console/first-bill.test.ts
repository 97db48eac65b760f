import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { formatExact, parseEvents } from '../../console/client/exact-json.ts';
import { quoteShell } from '../../console/client/shell-quote.ts';
import {
  buildSampleEvent,
  buildTraffic,
  COMMAND_LANGUAGES,
  COMMANDS,
  misspell,
} from '../../console/pages/first-bill/commands.ts';
import {
  advanceTarget,
  type CopiedEvent,
  findMonthStart,
  repeatMonthly,
} from '../../console/pages/first-bill/plan-year.ts';
import { deriveProgress, isStepOpen, measureArrival, STEPS } from '../../console/pages/first-bill/progress.ts';
import { resolveRefs } from '../../console/pages/first-bill/resolve-refs.ts';
import { TEMPLATE_KEYS, TEMPLATES } from '../../console/pages/first-bill/templates.ts';
import { fillWindows, findHourBefore } from '../../console/pages/home/event-windows.ts';

const BEGINNING = {
  plan_count: 0,
  price_count: 0,
  has_counted_event: false,
  subscription_count: 0,
  has_advanced: false,
  is_in_production: false,
};
const SOLD = { plan_count: 1, price_count: 2 };

describe('the way to the first bill', () => {
  it('names the first step that is not done, whatever comes after it', () => {
    const cases: [Partial<typeof BEGINNING>, string | null][] = [
      [{}, 'sell'],
      [{ plan_count: 1 }, 'sell'],
      [SOLD, 'send'],
      [{ ...SOLD, subscription_count: 1 }, 'send'],
      [{ ...SOLD, has_counted_event: true }, 'subscribe'],
      [{ ...SOLD, has_counted_event: true, subscription_count: 1 }, 'advance'],
      [{ ...SOLD, has_counted_event: true, subscription_count: 1, has_advanced: true }, 'production'],
    ];
    for (const [facts, next] of cases)
      expect(deriveProgress({ ...BEGINNING, ...facts }).next, JSON.stringify(facts)).to.equal(next);
    const out_of_order = { ...BEGINNING, has_counted_event: true, has_advanced: true };
    expect([...deriveProgress(out_of_order).done]).to.deep.equal(['send', 'advance']);
  });

  it('opens the next step, or the one of the URL alone', () => {
    const open = (chosen: Parameters<typeof isStepOpen>[1], next: Parameters<typeof isStepOpen>[2]) =>
      STEPS.filter((step) => isStepOpen(step, chosen, next));
    expect(open(undefined, 'sell')).to.deep.equal(['sell']);
    expect(open(undefined, 'subscribe')).to.deep.equal(['send', 'subscribe']);
    expect(open('advance', 'production')).to.deep.equal(['advance']);
    expect(open('none', 'sell')).to.deep.equal([]);
    expect(open(undefined, null)).to.deep.equal([]);
  });

  it('measures an arrival only if both clocks agree', () => {
    const received_at = '2026-11-30T12:00:00Z';
    const at = new Date(received_at).getTime();
    expect(measureArrival(received_at, at + 940)).to.equal('0.9');
    expect(measureArrival(received_at, at - 1)).to.equal(null);
    expect(measureArrival(received_at, at + 60_000)).to.equal(null);
  });
});

describe('the catalogues to begin with', () => {
  for (const key of TEMPLATE_KEYS)
    it(`names in ${key} only records that it creates, in an order that works`, () => {
      const { plans, meters, features, prices, entitlements } = TEMPLATES[key];
      const known = new Set<unknown>();
      for (const { ref, body } of [...plans, ...meters, ...features, ...prices, ...entitlements]) {
        for (const field of ['entity_id', 'meter_id', 'feature_id'] as const)
          if (body[field] !== undefined) expect([...known], `${ref}.${field}`).to.include(body[field]);
        known.add(ref);
      }
      expect(meters).to.have.lengthOf(features.length);
      expect(prices.some(({ body }) => body['type'] === 'FIXED')).to.equal(true);
      expect(prices.filter(({ body }) => body['type'] === 'USAGE')).to.have.lengthOf(meters.length);
    });

  it('replaces references by ids, and leaves ids and other texts alone', () => {
    const ids = new Map([
      ['plan', 'plan_01'],
      ['meter_1', 'meter_01'],
    ]);
    expect(resolveRefs({ entity_id: 'plan', meter_id: 'meter_1', display_name: 'plan' }, ids)).to.deep.equal({
      entity_id: 'plan_01',
      meter_id: 'meter_01',
      display_name: 'plan',
    });
    const resolved = { meter_id: 'meter_02', feature_id: null };
    expect(resolveRefs(resolved, ids)).to.deep.equal(resolved);
  });
});

describe('the event of the commands', () => {
  const tokens = TEMPLATES.tokens.meters.map(({ body }) => body) as unknown as Parameters<typeof buildSampleEvent>[0];

  it('is counted by the first meter and those that accept the same properties', () => {
    expect(buildSampleEvent(tokens, 'northwind')).to.deep.equal({
      event_name: 'completion',
      external_customer_id: 'northwind',
      properties: { model: 'wren-2', tokens_in: 1840, tokens_out: 640 },
    });
    expect(buildSampleEvent([{ event_name: 'call', aggregation: { type: 'COUNT' } }], 'acme')).to.deep.equal({
      event_name: 'call',
      external_customer_id: 'acme',
      properties: {},
    });
    expect(buildSampleEvent([], 'acme')).to.equal(null);
  });

  it('stands in each command, with its key or the variable of the shell', () => {
    const event = buildSampleEvent(tokens, "o'neill")!;
    const url = 'http://localhost:8080/v1';
    for (const language of COMMAND_LANGUAGES) {
      const command = COMMANDS[language]({ url, key: 'pk_1', event });
      for (const part of [url, 'pk_1', 'completion']) expect(command, language).to.include(part);
      expect(COMMANDS[language]({ url, key: null, event }), language).to.include('FARTHING_API_KEY');
    }
    expect(COMMANDS.curl({ url, key: 'pk_1', event })).to.include(`"o'\\''neill"`);
  });

  it('reaches the service as it is, whatever a shell reads in its texts', () => {
    const hostile = `KNOWN'; echo '$(id) \`id\` "\\" !! NOW`;
    const event = { event_name: hostile, external_customer_id: hostile, properties: { [hostile]: hostile } };
    for (const language of ['curl', 'opentelemetry'] as const) {
      const command = COMMANDS[language]({ url: 'http://localhost', key: 'pk_1', event });
      const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
      const sent = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0');
      const body = JSON.parse(sent[sent.indexOf('-d') + 1]!);
      if (language === 'curl') expect(body).to.deep.equal(event);
      else {
        const [metric] = body.resourceMetrics[0].scopeMetrics[0].metrics;
        const [point] = metric.sum.dataPoints;
        expect(metric.name).to.equal(hostile);
        expect(point.attributes[0].value).to.deep.equal({ stringValue: hostile });
        expect([point.startTimeUnixNano, point.timeUnixNano]).to.satisfy((times: string[]) =>
          times.every((time) => /^\d{19}$/.test(time)),
        );
      }
    }
    // The address of a record has its id, in which `encodeURIComponent` leaves apostrophes.
    const address = `http://localhost/v1/events/${encodeURIComponent(hostile)}`;
    expect(execFileSync('sh', ['-c', `printf %s ${quoteShell(address)}`], { encoding: 'utf8' })).to.equal(address);
  });

  it('has its properties as texts for the published client', () => {
    const event = buildSampleEvent(tokens, 'northwind')!;
    expect(COMMANDS.typescript({ url: '', key: null, event })).to.include('"tokens_in": "1840"');
  });

  it('becomes traffic of the last hour in the order of time', () => {
    const now_ms = Date.UTC(2026, 10, 30, 12);
    const traffic = buildTraffic(buildSampleEvent(tokens, 'northwind')!, 300, now_ms);
    const times = traffic.map(({ timestamp }) => new Date(timestamp).getTime());
    expect(times).to.deep.equal(times.toSorted((first, second) => first - second));
    expect(times[0]).to.be.at.least(now_ms - 3_600_000);
    expect(times.at(-1)).to.be.at.most(now_ms);
    expect(new Set(traffic.map(({ properties }) => properties['tokens_in'])).size).to.be.above(100);
    expect(new Set(traffic.map(({ properties }) => properties['model'])).size).to.equal(1);
  });

  it('is misspelt by two letters', () => {
    expect(misspell('completion')).to.equal('compleiton');
    expect(misspell('call')).to.equal('acll');
    expect(misspell('ab')).to.equal('ba');
  });
});

describe('the year', () => {
  it('repeats each event once a month, at its day and time, inside the month', () => {
    const event = {
      id: 'e1',
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-10-31T10:30:00Z',
      properties: { n: 1 },
      received_at: 'not copied',
    };
    const copies = repeatMonthly([event], findMonthStart(new Date('2026-01-15T00:00:00Z')), 3);
    const { id, received_at, ...copied } = event;
    expect(copies).to.deep.equal([
      { ...copied, event_id: `${id}-month-1`, timestamp: '2026-01-31T10:30:00.000Z' },
      { ...copied, event_id: `${id}-month-2`, timestamp: '2026-02-28T23:59:59.999Z' },
      { ...copied, event_id: `${id}-month-3`, timestamp: '2026-03-31T10:30:00.000Z' },
    ]);
    expect(JSON.stringify(copies)).not.to.include(received_at);
  });

  it('copies the digits of numbers that a floating-point number would lose', () => {
    const properties = '{"units":9007199254740993,"rate":0.1234567890123456789}';
    const text = `[{"id":"e1","event_name":"call","external_customer_id":"acme","timestamp":"2026-10-31T10:30:00Z","properties":${properties}}]`;
    const copies = repeatMonthly(
      parseEvents(text) as CopiedEvent[],
      findMonthStart(new Date('2026-01-15T00:00:00Z')),
      2,
    );
    expect(formatExact(copies).split(properties)).to.have.length(3);
  });

  it('advances to the end of a month and beyond the rest of its draft', () => {
    expect(advanceTarget('2025-11-01T00:00:00Z', 12)).to.equal('2026-11-01T03:00:00.000Z');
    expect(advanceTarget('2025-12-01T03:00:00Z', 1)).to.equal('2026-01-01T03:00:00.000Z');
  });
});

describe('the last hour', () => {
  it('ends with the current minute and shows minutes without events', () => {
    const range = findHourBefore(Date.UTC(2026, 10, 30, 12, 0, 30));
    expect(range).to.deep.equal({ start_time: '2026-11-30T11:01:00.000Z', end_time: '2026-11-30T12:01:00.000Z' });
    const counts = fillWindows(range, [
      { timestamp: '2026-11-30T11:01:00Z', event_count: 3 },
      { timestamp: '2026-11-30T12:00:00Z', event_count: 5 },
      { timestamp: '2026-11-30T12:01:00Z', event_count: 9 },
    ]);
    expect(counts).to.have.lengthOf(60);
    expect([counts[0], counts[1], counts[59]]).to.deep.equal([3, 0, 5]);
  });
});
