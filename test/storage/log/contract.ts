/**
 * What every event log promises, whichever it is. `embedded.test.ts` and `test/kafka/log.test.ts` run this suite on a log
 * of their own. Each test has a log to itself; `open` gives another handle on it, as another process would have.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { PartitionStopped, recordCrc } from '../../../storage/log/continuity.ts';
import type {
  ConsumerProgress,
  EventLog,
  LogConsumer,
  LogEntry,
  LogRecord,
  PartitionBatch,
  PartitionHandler,
  StoredPosition,
} from '../../../storage/log/log.ts';

export type LogUnderTest = {
  open(options?: OpenOptions): Promise<EventLog>;
  /** What the log stands on ends: connections break, and new ones are refused. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  /** What the log stands on answers nothing, as a machine that hangs; and goes on again. */
  hang(): Promise<void>;
  goOn(): Promise<void>;
  /** The records of a partition before this offset are gone, whether somebody has read them or not. */
  loseBefore(partition: number, offset: bigint): Promise<void>;
  close(): Promise<void>;
};
export type OpenOptions = { append_timeout_ms?: number; queued_bytes_max?: number };

const PARTITIONS = 3;

export function logContract(newLog: (partitions: number) => Promise<LogUnderTest>): void {
  let log: LogUnderTest;
  const consumers: LogConsumer[] = [];
  const handles: EventLog[] = [];

  beforeEach(async () => {
    log = await newLog(PARTITIONS);
  });
  afterEach(async () => {
    await log.goOn();
    await Promise.all(consumers.splice(0).map((consumer) => consumer.stop()));
    await Promise.all(handles.splice(0).map((handle) => handle.close()));
    await log.close();
  });

  const open = async (options?: OpenOptions) => {
    const handle = await log.open(options);
    handles.push(handle);
    return handle;
  };
  const consume = async (handle: EventLog, reader: Reader) => {
    const consumer = await handle.consume(reader);
    consumers.push(consumer);
    return consumer;
  };

  it('gives back what was appended, field by field and byte by byte, to a reader that comes later', async () => {
    const writer = await open();
    expect(writer.partition_count).to.equal(PARTITIONS);
    const sent = [
      entry(0, 'plain'),
      entry(1, 'ünïcödé \n\t\0 and bytes', { body: Buffer.from([0, 255, 10, 10, 34, 128]) }),
      entry(2, 'made', { generated_ids: { 0: 'id_1', 7: 'id_2' }, event_count: 8 }),
      entry(2, 'traced', { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }),
      entry(0, 'barrier', { kind: 'control', event_count: 0, tenant_id: 'another', environment_id: 'one' }),
    ];
    await writer.append(sent);
    const reader = new Reader();
    await consume(await open(), reader);
    await reader.until(() => reader.records.length === 5);
    const byPlace = (a: LogEntry, b: LogEntry) => a.partition - b.partition;
    expect(reader.inOrder().map(({ offset: _, ...rest }) => rest)).to.deep.equal([...sent].sort(byPlace));
  });

  it('answers where each entry stands, whoever appends at the time', async () => {
    const handle = await open();
    const sent = Array.from({ length: 12 }, (_, round) => [0, 2, 0].map((at, n) => entry(at, `${round} ${n}`)));
    const answered = await Promise.all(sent.map((entries) => handle.append(entries)));
    const reader = new Reader();
    await consume(await open(), reader);
    await reader.until(() => reader.records.length === 36);
    const place = ({ partition, body }: LogEntry, offset: bigint) => `${partition}/${offset} ${String(body)}`;
    const told = sent.flatMap((entries, round) => entries.map((one, n) => place(one, answered[round]![n]!)));
    expect(told).to.have.members(reader.records.map((record) => place(record, record.offset)));
  });

  it('keeps the order within a partition', async () => {
    const handle = await open();
    for (let round = 0; round < 20; round++) {
      await handle.append([
        entry(0, `${2 * round}`),
        entry(1, `${2 * round}`),
        entry(0, `${2 * round + 1}`),
        entry(1, `${2 * round + 1}`),
      ]);
    }
    const reader = new Reader();
    await consume(handle, reader);
    await reader.until(() => reader.records.length === 80);
    const numbers = Array.from({ length: 40 }, (_, index) => `${index}`);
    for (const partition of [0, 1]) {
      const records = reader.of(partition);
      expect(records.map(textOf)).to.deep.equal(numbers);
      expect(records.every((record, at) => at === 0 || record.offset > records[at - 1]!.offset)).to.equal(true);
    }
  });

  it('is read from where the stores are, whatever was committed', async () => {
    const handle = await open();
    await handle.append(['a', 'b', 'c', 'd'].map((text) => entry(1, text)));
    const first = new Reader();
    const consumer = await consume(handle, first);
    await first.until(() => first.records.length === 4);
    await settled(handle);
    await consumer.stop();
    const again = new Reader({ from: new Map([[1, first.of(1)[2]!.offset]]) });
    await consume(handle, again);
    await again.until(() => again.records.length === 2);
    expect(again.of(1).map(textOf)).to.deep.equal(['c', 'd']);
  });

  it('is told by who takes a partition how far the stores are, also where nothing is left to read', async () => {
    const handle = await open();
    await handle.append([entry(1, 'a'), entry(1, 'b')]);
    // Whoever had it has stored both, and lost it before that was committed.
    const reader = new Reader({ from: new Map([[1, 2n]]) });
    await consume(handle, reader);
    await settled(handle);
    expect(reader.records).to.deep.equal([]);
    expect((await handle.lag()).map((each) => each.unprocessed_records)).to.deep.equal([0, 0, 0]);
  });

  it('tells how far the consumers are behind', async () => {
    const handle = await open();
    const before_us = Date.now() * 1000;
    await handle.append([entry(0, 'x'), entry(0, 'y'), entry(2, 'z')]);
    const behind = await handle.lag();
    expect(behind.map((each) => each.unprocessed_records)).to.deep.equal([2, 0, 1]);
    expect(behind[1]!.oldest_unprocessed_at_us).to.equal(null);
    // Kafka tells it by its own clock, and to an eighth of the age; a fresh record is at most half a second off.
    expect(behind[0]!.oldest_unprocessed_at_us).to.be.within(before_us - 1_000_000, Date.now() * 1000);
    const reader = new Reader();
    await consume(handle, reader);
    await reader.until(() => reader.records.length === 3);
    await settled(handle);
    const done = await handle.lag();
    expect(done.map((each) => each.end_offset - each.committed_offset)).to.deep.equal([0n, 0n, 0n]);
    expect(done.map((each) => each.oldest_unprocessed_at_us)).to.deep.equal([null, null, null]);
  });

  it('hands a batch over again when it failed, from where the stores are, and commits nothing of it', async () => {
    const handle = await open();
    await handle.append([entry(0, 'a'), entry(0, 'b')]);
    const reader = new Reader({ failures: 4 });
    await consume(handle, reader);
    await reader.until(() => reader.errors.length >= 2);
    expect((await handle.lag())[0]!.unprocessed_records).to.equal(2);
    await reader.until(() => reader.records.length === 2);
    expect(reader.of(0).map(textOf)).to.deep.equal(['a', 'b']);
    expect(reader.assignments(0)).to.equal(5);
    expect(reader.errors.map(String)).to.deep.equal(Array(4).fill('Error: this try fails'));
  });

  it('reads on behind what is held back, and commits only what is stored', async () => {
    const handle = await open();
    const reader = new Reader({ hold_back: 5 });
    const consumer = await consume(handle, reader);
    for (const text of ['a', 'b', 'c', 'd']) {
      await handle.append([entry(0, text)]);
      await reader.until(() => reader.given.some((record) => textOf(record) === text));
    }
    expect((await handle.lag())[0]!.unprocessed_records).to.equal(4);
    await consumer.stop();
    expect((await handle.lag())[0]!.unprocessed_records).to.equal(4);
    const again = new Reader({ hold_back: 5 });
    await consume(await open(), again);
    await again.until(() => again.given.length === 4);
    expect(again.records).to.deep.equal([]);
    await handle.append([entry(0, 'e')]);
    await settled(handle);
    expect(again.of(0).map(textOf)).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    expect(again.assignments(0)).to.equal(1);
  });

  it('gives what was held back once more after a failure', async () => {
    const handle = await open();
    const reader = new Reader({ hold_back: 3 });
    await consume(handle, reader);
    await handle.append([entry(0, 'a'), entry(0, 'b')]);
    await reader.until(() => reader.given.length === 2);
    reader.failNext();
    await handle.append([entry(0, 'c')]);
    await settled(handle);
    expect(reader.errors.map(String)).to.deep.equal(['Error: this try fails']);
    expect(reader.of(0).map(textOf)).to.deep.equal(['a', 'b', 'c']);
  });

  it('stops where a record is missing, hands nothing over, and goes on from where the stores are put', async () => {
    const handle = await open();
    await handle.append(['a', 'b', 'c', 'd'].map((text) => entry(1, text)));
    await log.loseBefore(1, 3n);
    const stores = new Map([[1, 1n]]);
    const reader = new Reader({ stores });
    await consume(handle, reader);
    await reader.until(() => reader.errors.length >= 2);
    for (const error of reader.errors) {
      expect(error).to.be.instanceOf(PartitionStopped);
      expect(String(error)).to.match(/partition 1 is halted: .*offset 1\b.*offset 3\b.*\(docs\/operations\.md, /);
    }
    expect(reader.records).to.deep.equal([]);
    expect((await handle.lag())[1]!.unprocessed_records).to.be.at.least(1);
    await handle.append([entry(2, 'the others go on')]);
    await reader.until(() => reader.of(2).length === 1);
    stores.set(1, 3n);
    await reader.until(() => reader.of(1).length === 1);
    expect(reader.of(1).map(textOf)).to.deep.equal(['d']);
  });

  it('stops when it ends before what the stores have, or have begun', async () => {
    const handle = await open();
    await handle.append([entry(0, 'a'), entry(1, 'b')]);
    const reader = new Reader({
      from: new Map([
        [0, 9n],
        [1, 0n],
      ]),
      min_end_offset: new Map([[1, 4n]]),
    });
    await consume(handle, reader);
    const saying = (text: string) => reader.errors.some((error) => String(error).includes(text));
    await reader.until(() => saying('partition 0 is halted') && saying('partition 1 is halted'));
    expect(saying('the stores are at offset 9, but the log ends at offset 1')).to.equal(true);
    expect(saying('offset 0, with a slice up to 4 begun, but the log ends at offset 1')).to.equal(true);
    expect(reader.records).to.deep.equal([]);
  });

  it('stops when the record before is not the one that was processed', async () => {
    const handle = await open();
    await handle.append(['a', 'b', 'c'].flatMap((text) => [entry(0, text), entry(1, text), entry(2, text)]));
    const crc = (text: string) => recordCrc(entry(0, text));
    const reader = new Reader({
      from: new Map([
        [0, 2n],
        [1, 2n],
        [2, 3n],
      ]),
      last_record: new Map([
        [0, crc('another')],
        [1, crc('b')],
        [2, crc('another')],
      ]),
    });
    await consume(handle, reader);
    const stopped = () => new Set(reader.errors.map((error) => (error as PartitionStopped).partition));
    await reader.until(() => reader.of(1).length === 1 && stopped().size === 2);
    expect(reader.of(1).map(textOf)).to.deep.equal(['c']);
    expect([...stopped()].sort()).to.deep.equal([0, 2]);
    expect(String(reader.errors[0])).to.include('this is another log than the stores were filled from');
    await handle.append([entry(2, 'd'), entry(1, 'd')]);
    await reader.until(() => reader.of(1).length === 2);
    expect(reader.records.length).to.equal(2);
  });

  it('says when everything is in the stores', async () => {
    const handle = await open();
    await handle.append([entry(0, 'a')]);
    const reader = new Reader({ from: new Map([[0, 1n]]), last_record: new Map([[0, recordCrc(entry(0, 'a'))]]) });
    await consume(handle, reader);
    await reader.until(() => reader.caughtUpWith.has(0) && reader.caughtUpWith.has(1));
  });

  it('wakes a waiting reader soon', async () => {
    const handle = await open();
    const reader = new Reader();
    await consume(handle, reader);
    await reader.until(() => reader.assignments(0) + reader.assignments(1) + reader.assignments(2) >= PARTITIONS);
    const began = performance.now();
    await handle.append([entry(0, 'now')]);
    await reader.until(() => reader.records.length === 1);
    expect(performance.now() - began).to.be.below(2_000);
  });

  it('shares the partitions out, and hands them over when a consumer stops', async () => {
    const [first, second] = [await open(), await open()];
    // Both write to the same stores, as two workers would: where the one ended the other goes on.
    const stores = new Map<number, bigint>();
    const one = new Reader({ stores });
    const two = new Reader({ stores });
    const consumer = await consume(first, one);
    await one.until(() => [0, 1, 2].every((partition) => one.owns(partition)));
    await consume(second, two);
    await two.until(() => two.owned.size > 0 && one.owned.size > 0 && one.owned.size + two.owned.size === PARTITIONS);
    await first.append([0, 1, 2].map((partition) => entry(partition, `shared ${partition}`)));
    await two.until(() => one.records.length + two.records.length >= 3);
    await consumer.stop();
    expect([...one.owned]).to.deep.equal([]);
    await second.append([0, 1, 2].map((partition) => entry(partition, `handed over ${partition}`)));
    await two.until(
      () => [0, 1, 2].every((partition) => two.owns(partition)) && one.records.length + two.records.length >= 6,
    );
    const texts = [...one.records, ...two.records].map(textOf).sort();
    expect(texts).to.deep.equal([0, 1, 2].flatMap((p) => [`handed over ${p}`, `shared ${p}`]).sort());
    expect(two.overlaps + one.overlaps).to.equal(0);
  });

  it('finishes the batch in hand before a consumer has stopped', async () => {
    const handle = await open();
    await handle.append([entry(0, 'in hand')]);
    const reader = new Reader({ hold: true });
    const consumer = await handle.consume(reader);
    await reader.until(() => reader.working > 0);
    const stopping = consumer.stop().then(() => 'stopped');
    expect(await Promise.race([stopping, wait(300, 'waits')])).to.equal('waits');
    expect(reader.lastBatch!.isOwner()).to.equal(true);
    reader.release();
    await stopping;
    expect(reader.records.map(textOf)).to.deep.equal(['in hand']);
    expect((await handle.lag())[0]!.unprocessed_records).to.equal(0);
  });

  it('refuses a partition that it does not have', async () => {
    const handle = await open();
    const refused = await handle.append([entry(0, 'good'), entry(PARTITIONS, 'bad')]).catch((error: Error) => error);
    expect(refused).to.be.an('error');
  });

  it('says 503 within its bound while the other side hangs, and works again after', async () => {
    const handle = await open({ append_timeout_ms: 800 });
    await handle.append([entry(0, 'before')]);
    await log.hang();
    const began = performance.now();
    const errors = await Promise.all(
      [1, 2, 3].map(async (number) =>
        handle.append([entry(0, `meanwhile ${number}`)]).catch((error: unknown) => error),
      ),
    );
    const took = performance.now() - began;
    await log.goOn();
    expect(errors.map((error) => (error as { code?: string }).code)).to.deep.equal(
      Array(3).fill('service_unavailable'),
    );
    expect(took).to.be.within(700, 2_500);
    await eventually(() => handle.append([entry(0, 'after')]));
    const reader = new Reader();
    await consume(handle, reader);
    await reader.until(() => reader.records.some((record) => textOf(record) === 'after'));
    // What was refused may be there or not: whoever sends it again is counted once.
    expect(
      reader
        .of(0)
        .map(textOf)
        .filter((text) => !text.startsWith('meanwhile'))[0],
    ).to.equal('before');
  });

  it('holds a bounded queue, and lets go of what it has refused', async () => {
    const handle = await open({ append_timeout_ms: 1_500, queued_bytes_max: 4_000_000 });
    await handle.append([entry(0, 'before')]);
    await log.hang();
    const megabyte = { body: Buffer.alloc(1_000_000, 'x') };
    const answers: Promise<unknown>[] = [];
    for (let number = 0; number < 4; number++) answers.push(codeOf(handle.append([entry(1, '', megabyte)])));
    const began = performance.now();
    expect(await codeOf(handle.append([entry(1, '', megabyte)]))).to.equal('service_unavailable');
    expect(performance.now() - began, 'a full queue is said at once').to.be.below(500);
    expect(await Promise.all(answers)).to.deep.equal(Array(4).fill('service_unavailable'));
    await log.goOn();
    await eventually(() => Promise.all([1, 2, 3].map(() => handle.append([entry(1, '', megabyte)]))));
  });

  it('waits while the other side is away, and goes on where it was', async () => {
    const handle = await open({ append_timeout_ms: 1_000 });
    const reader = new Reader();
    await consume(handle, reader);
    await handle.append([entry(0, '1'), entry(1, '1')]);
    await reader.until(() => reader.records.length === 2);
    await log.goAway();
    expect(await codeOf(handle.append([entry(0, 'lost')]))).to.equal('service_unavailable');
    expect(await handle.ping().catch(() => 'away')).to.equal('away');
    await log.comeBack();
    await eventually(() => handle.append([entry(0, '2'), entry(1, '2')]));
    await handle.ping();
    await reader.until(() =>
      [0, 1].every((partition) => reader.of(partition).some((record) => textOf(record) === '2')),
    );
    await settled(handle);
    for (const partition of [0, 1]) {
      const texts = reader
        .of(partition)
        .map(textOf)
        .filter((text) => text !== 'lost');
      expect([...new Set(texts)]).to.deep.equal(['1', '2']);
    }
  });
}

type ReaderOptions = {
  /** Where the stores are at the start, by partition. */
  from?: Map<number, bigint>;
  /** Shared between readers that write to the same stores. */
  stores?: Map<number, bigint>;
  /** What the stores know of the record before, and of a slice that was begun. */
  last_record?: Map<number, number>;
  min_end_offset?: Map<number, bigint>;
  /** Nothing is stored before so many records of a partition are there. */
  hold_back?: number;
  /** So many tries fail first. */
  failures?: number;
  /** A batch waits for `release`. */
  hold?: boolean;
};

/** A handler that keeps what it gets, and knows how far its stores are. */
export class Reader implements PartitionHandler {
  /** What is in its stores, and what it was given. */
  readonly records: LogRecord[] = [];
  readonly given: LogRecord[] = [];
  readonly errors: unknown[] = [];
  readonly owned = new Set<number>();
  readonly caughtUpWith = new Set<number>();
  working = 0;
  overlaps = 0;
  lastBatch: PartitionBatch | null = null;
  /** What its stores know of the last record, by partition. */
  readonly last_record: Map<number, number>;
  readonly #options: ReaderOptions;
  readonly #stores: Map<number, bigint>;
  readonly #assigned = new Map<number, number>();
  readonly #heldBack = new Map<number, LogRecord[]>();
  readonly #busy = new Set<number>();
  #failuresLeft: number;
  #held: Promise<void> | null = null;
  release: () => void = () => {};
  /** Called with each batch that is taken. */
  seen: (batch: PartitionBatch) => void = () => {};

  constructor(options: ReaderOptions = {}) {
    this.#options = options;
    this.last_record = new Map(options.last_record);
    this.#stores = options.stores ?? new Map(options.from);
    this.#failuresLeft = options.failures ?? 0;
    if (options.hold) this.#held = new Promise((resolve) => (this.release = resolve));
  }

  async assigned(partition: number): Promise<StoredPosition> {
    this.#assigned.set(partition, this.assignments(partition) + 1);
    this.owned.add(partition);
    this.#heldBack.delete(partition);
    const next_offset = this.#stores.get(partition) ?? 0n;
    const last_record = this.last_record.get(partition) ?? null;
    return { next_offset, last_record, min_end_offset: this.#options.min_end_offset?.get(partition) ?? next_offset };
  }

  async process(batch: PartitionBatch): Promise<ConsumerProgress> {
    if (this.#busy.has(batch.partition)) this.overlaps++;
    this.#busy.add(batch.partition);
    this.working++;
    this.lastBatch = batch;
    try {
      await this.#held;
      if (this.#failuresLeft-- > 0) throw new Error('this try fails');
      this.seen(batch);
      this.given.push(...batch.records);
      return this.#store(batch);
    } finally {
      this.#busy.delete(batch.partition);
    }
  }

  #store({ partition, records }: PartitionBatch): ConsumerProgress {
    const all = [...(this.#heldBack.get(partition) ?? []), ...records];
    const next = all.at(-1)!.offset + 1n;
    const isHeldBack = all.length < (this.#options.hold_back ?? 0);
    this.#heldBack.set(partition, isHeldBack ? all : []);
    if (isHeldBack) return { stored_until: this.#stores.get(partition) ?? 0n, read_from: next };
    this.records.push(...all);
    this.#stores.set(partition, next);
    return { stored_until: next, read_from: next };
  }

  failNext(): void {
    this.#failuresLeft = 1;
  }

  caughtUp(partition: number): void {
    this.caughtUpWith.add(partition);
  }

  async revoked(partition: number): Promise<void> {
    this.owned.delete(partition);
  }

  failed(_partition: number, error: unknown): void {
    this.errors.push(error);
  }

  owns(partition: number): boolean {
    return this.owned.has(partition);
  }

  assignments(partition: number): number {
    return this.#assigned.get(partition) ?? 0;
  }

  of(partition: number): LogRecord[] {
    return this.records.filter((record) => record.partition === partition);
  }

  inOrder(): LogRecord[] {
    return [...this.records].sort((a, b) => a.partition - b.partition || Number(a.offset - b.offset));
  }

  /** Resolves when it holds; the test's own time limit says when it does not. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await wait(10);
  }
}

export function entry(partition: number, text: string, more: Partial<LogEntry> = {}): LogEntry {
  return {
    partition,
    kind: 'events',
    tenant_id: 'tenant_a',
    environment_id: 'env_a',
    received_at_us: Date.now() * 1000,
    generated_ids: null,
    event_count: 1,
    body: Buffer.from(JSON.stringify([text])),
    ...more,
  };
}

export function textOf(record: LogRecord): string {
  return (JSON.parse(record.body.toString('utf8')) as [string])[0];
}

/** Until nothing is unprocessed. */
export async function settled(handle: EventLog): Promise<void> {
  await eventually(async () => {
    const lag = await handle.lag();
    if (lag.some((each) => each.unprocessed_records > 0)) throw new Error('not yet');
  });
}

/** Tries until it succeeds; the test's own time limit ends it. */
export async function eventually<Answer>(work: () => Promise<Answer>, within_ms = 40_000): Promise<Answer> {
  const until = performance.now() + within_ms;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > until) throw error;
      await wait(50);
    }
  }
}

async function codeOf(appending: Promise<unknown>): Promise<unknown> {
  try {
    return await appending;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}
