/**
 * Child process of P9 that sends reads when they are due, and events. Its CPU time is not that of the service. The time of a read counts
 * from when it was due, so it includes the wait in this process.
 */
import { KINDS, PATHS, sendEvents } from './p9-customers.ts';
import { Readers } from './p9-sockets.ts';
import { pause } from './processes.ts';

export type Reading = {
  readonly url: string;
  readonly api_key: string;
  /** Number of sockets; each has one read in progress. */
  readonly connections: number;
  readonly customers: number;
} & (
  | { readonly what: 'everybody'; readonly atOnce: number }
  | {
      readonly what: 'load';
      readonly rate: number;
      readonly seconds: number;
      readonly events: number;
      readonly events_url?: string;
    }
);

export type Readings = { readonly took_ms: number[]; readonly elapsed_ms: number; readonly events_sent: number };

/** Maximum number of events in a body. */
const EVENTS_AT_ONCE = 1000;

process.on('disconnect', () => process.exit(0));
process.send!({ ready: true });
for (;;) {
  const reading = (await told()) as Reading;
  await read(reading).then(
    (value) => process.send!({ value }),
    (error: Error) => process.send!({ error: error.stack ?? String(error) }),
  );
}

function told(): Promise<unknown> {
  return new Promise((resolve) => process.once('message', resolve));
}

async function read(reading: Reading): Promise<Readings> {
  const readers = new Readers();
  await readers.open(reading);
  process.send!({ prepared: true });
  await told();
  const began = performance.now();
  const events_sent = reading.what === 'everybody' ? await everybody(readers, reading) : await load(readers, reading);
  const wall_ms = performance.now() - began;
  readers.close();
  return { took_ms: readers.took_ms, elapsed_ms: wall_ms, events_sent };
}

async function everybody(
  readers: Readers,
  { customers, atOnce }: Extract<Reading, { what: 'everybody' }>,
): Promise<number> {
  for (const kind of KINDS) {
    let next = 0;
    const asker = async () => {
      while (next < customers) await readers.read(PATHS[kind](next++), performance.now());
    };
    await Promise.all(Array.from({ length: atOnce }, asker));
  }
  return 0;
}

async function load(readers: Readers, reading: Extract<Reading, { what: 'load' }>): Promise<number> {
  const { rate, seconds, customers } = reading;
  const any = () => Math.floor(Math.random() * customers);
  const began = performance.now();
  const arriving = events(reading, { any, until: began + seconds * 1000 });
  const reads: Promise<void>[] = [];
  for (let asked = 0; asked < rate * seconds; ) {
    const due = Math.min(rate * seconds, ((performance.now() - began) / 1000) * rate);
    for (; asked < due; asked++) {
      reads.push(readers.read(PATHS[KINDS[asked % KINDS.length]!](any()), began + (asked * 1000) / rate));
    }
    await pause(1);
  }
  await Promise.all(reads);
  return arriving;
}

async function events(
  { events: rate, api_key, url, events_url = url }: Extract<Reading, { what: 'load' }>,
  { any, until }: { any: () => number; until: number },
): Promise<number> {
  const began = performance.now();
  let sent = 0;
  while (performance.now() < until && rate > 0) {
    const due = Math.min(EVENTS_AT_ONCE, Math.floor(((performance.now() - began) / 1000) * rate) - sent);
    if (due > 0) await sendEvents({ url: events_url, api_key }, Array.from({ length: due }, any));
    sent += Math.max(0, due);
    await pause(50);
  }
  return sent;
}
