/** Usage as a plain fold over the events that were sent: what every answer of the stores is compared with. */
import { Decimal } from '../../core/decimal.ts';
import { type WindowGrid, type WindowSize, windowAt, windowsOf } from '../../core/time/window.ts';

export type ModelEvent = {
  readonly event_id: string;
  readonly external_customer_id: string;
  readonly at_us: number;
  readonly n: string;
  readonly host: string;
};

export type ModelMeter = {
  readonly type: string;
  readonly multiplier?: string;
  readonly bucket_size?: WindowSize;
  readonly group_by?: string;
};

type Range = { start_us: number; end_us: number };

export type ModelUsage = { value: string; event_count: number };

export function modelUsage(
  meter: ModelMeter,
  events: readonly ModelEvent[],
  { start_us, end_us, grid }: Range & { grid: WindowGrid },
): ModelUsage {
  const inside = events.filter((event) => event.at_us >= start_us && event.at_us < end_us);
  const groups = meter.bucket_size
    ? grouped(
        inside,
        (event) =>
          `${windowAt(Math.floor(event.at_us / 1000), meter.bucket_size!, grid).start}/${meter.group_by ? event.host : ''}`,
      )
    : [inside];
  const total = groups.reduce((sum, some) => sum.plus(fold(meter, some, { start_us, end_us })), new Decimal(0));
  return { value: total.toFixed(), event_count: inside.length };
}

/** By the start of the window on the clock; only windows with events. */
export function modelWindows(
  meter: ModelMeter,
  events: readonly ModelEvent[],
  { start_us, end_us, grid, size }: Range & { grid: WindowGrid; size: WindowSize },
): Record<string, ModelUsage> {
  const windows = windowsOf(Math.floor(start_us / 1000), Math.ceil(end_us / 1000), size, grid);
  const answers: Record<string, ModelUsage> = {};
  for (const { start, end } of windows) {
    const part = { start_us: Math.max(start * 1000, start_us), end_us: Math.min(end * 1000, end_us) };
    const usage = modelUsage(meter, events, { ...part, grid });
    if (usage.event_count > 0) answers[start * 1000] = usage;
  }
  return answers;
}

function fold({ type, multiplier }: ModelMeter, events: readonly ModelEvent[], { start_us, end_us }: Range): Decimal {
  const values = events.map((event) => new Decimal(event.n));
  const sum = values.reduce((total, value) => total.plus(value), new Decimal(0));
  if (events.length === 0) return sum;
  switch (type) {
    case 'COUNT':
      return new Decimal(events.length);
    case 'SUM':
      return sum;
    case 'AVG':
      return sum.div(events.length).toDecimalPlaces(24);
    case 'COUNT_UNIQUE':
      return new Decimal(new Set(events.map((event) => event.host)).size);
    case 'LATEST':
      return new Decimal(events.reduce((newest, event) => (isNewer(event, newest) ? event : newest)).n);
    case 'SUM_WITH_MULTIPLIER':
      return sum.times(multiplier!);
    case 'MAX':
      return Decimal.max(...values);
    case 'WEIGHTED_SUM': {
      const weighted = events.map((event) => new Decimal(event.n).times(end_us - event.at_us));
      const whole = weighted.reduce((total, value) => total.plus(value), new Decimal(0));
      return whole.div(end_us - start_us).toDecimalPlaces(24);
    }
    default:
      throw new Error(`the model has no ${type}`);
  }
}

function isNewer(a: ModelEvent, b: ModelEvent): boolean {
  return a.at_us !== b.at_us ? a.at_us > b.at_us : a.event_id > b.event_id;
}

function grouped(events: readonly ModelEvent[], keyOf: (event: ModelEvent) => string): ModelEvent[][] {
  const groups = new Map<string, ModelEvent[]>();
  for (const event of events) groups.set(keyOf(event), [...(groups.get(keyOf(event)) ?? []), event]);
  return [...groups.values()];
}
