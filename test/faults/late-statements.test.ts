/**
 * Every statement that the pipeline writes with, one after the other, gets lost, loses its answer, arrives late, twice, or
 * again at the end: what was accepted takes effect once. The pipeline is in this process, the stores are real; a round does a
 * little of everything, and one of its statements meets its fate. Rounds are repeated until each has met each.
 */
import { expect } from 'chai';
import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { relayControlMessages } from '../../pipeline/control/relay.ts';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { requestRebuild } from '../../storage/progress/bucket-rebuilds.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';
import type { ModelEntry, ModelEvent, ModelMeter } from '../support/reference-model.ts';
import { rowDifferences, storeDifferences, usageDifferences } from './compare.ts';
import { type Fate, isWrite, type StatementWay, statementsTo } from './statements.ts';

const DAY_MS = 86_400_000;
const FIRST = Date.parse('2026-01-03T00:00:00Z');
const CUSTOMERS = ['acme', 'böhm'];
/** Each with stores of its own: a round is mostly waiting. */
const WORKERS = 3;
const ROUND_FATES: readonly Fate[] = ['lost', 'answer lost', 'late', 'twice', 'again late'];

type Meter = ModelMeter & { id: string };

/** The n-th statement of its kind, from 0: a round does not always take the same number of them. */
type Place = { readonly kind: string; readonly nth: number };

function countOf(kinds: readonly string[], kind: string): number {
  return kinds.filter((each) => each === kind).length;
}

class Rounds {
  static async open(): Promise<Rounds> {
    let way: StatementWay | undefined;
    const metering = await startMetering({
      partitions: 1,
      clickhouse: async (url) => {
        way = await statementsTo(url);
        // A statement whose answer does not come is given up soon.
        return connectClickHouse(way.url, { request_timeout_ms: 5_000 });
      },
    });
    return new Rounds(metering, way!);
  }

  readonly #metering: Metering;
  readonly #way: StatementWay;
  #rounds = 0;

  private constructor(metering: Metering, way: StatementWay) {
    this.#metering = metering;
    this.#way = way;
  }

  async close(): Promise<void> {
    await this.#metering.stop();
    await this.#way.close();
  }

  /** The kinds of statements that a round writes with, in order; the one that is named meets its fate. */
  async play(named?: Place, fate?: Fate): Promise<{ kinds: string[]; isMet: boolean; differences: string[] }> {
    const kinds: string[] = [];
    let isMet = false;
    this.#way.meet(({ kind, ...statement }) => {
      if (!isWrite({ kind, ...statement })) return undefined;
      const isNamed = kind === named?.kind && countOf(kinds, kind) === named.nth;
      kinds.push(kind);
      isMet ||= isNamed;
      return isNamed ? fate : undefined;
    });
    const round = new Round(this.#metering, this.#rounds++);
    await round.play();
    this.#way.meet(undefined);
    await this.#way.release();
    await this.#metering.waitForPipeline();
    return { kinds, isMet, differences: await round.differences() };
  }
}

/** A little of everything, on days of its own. */
class Round {
  readonly #metering: Metering;
  readonly #name: string;
  readonly #start: number;
  readonly #accepted: ModelEntry[] = [];
  readonly #meters: Meter[] = [];

  constructor(metering: Metering, number: number) {
    this.#metering = metering;
    this.#name = `round ${number}`;
    this.#start = FIRST + number * 2 * DAY_MS;
  }

  async play(): Promise<void> {
    const metering = this.#metering;
    await this.#announce({ type: 'SUM', field: 'n' });
    await metering.waitForPipeline();
    const events = Array.from({ length: 24 }, (_none, index) => this.#event(index));
    // Of one id: as it was, with another content, and two values that are no numbers.
    const [again, other] = [events[0]!, { ...events[1]!, properties: { n: '77' } }];
    await metering.send([...events, again, other]);
    this.#accepted.push(...events);
    await metering.waitForPipeline();
    await this.#announce({ type: 'MAX', field: 'n' });
    await metering.waitForPipeline();
    // Corrections between events, of events before them and among them: one slice, and one rebuild.
    await metering.pause();
    const more = Array.from({ length: 24 }, (_none, index) => this.#event(24 + index));
    await this.#send(more.slice(0, 12));
    await this.#void(events[2]!);
    await this.#void(more[1]!);
    await relayControlMessages(metering.stores, Date.now());
    await this.#send(more.slice(12));
    await this.#replace(events[3]!);
    await this.#replace(more[13]!);
    await relayControlMessages(metering.stores, Date.now());
    await metering.resume();
    await metering.waitForPipeline();
    const [{ id: meter_id }] = this.#meters as [Meter];
    const targets = [{ meter_id, day: this.#start / DAY_MS }];
    await requestRebuild(metering.stores.postgres, SCOPE, { targets, reason: 'a test' });
    await metering.waitForPipeline();
    await metering.requestDailyRollups(new Date(this.#start + 2 * DAY_MS).toISOString());
    await metering.waitForPipeline();
  }

  async differences(): Promise<string[]> {
    const { stores } = this.#metering;
    const accepted = this.#accepted;
    const range = {
      start: new Date(this.#start).toISOString(),
      end: new Date(this.#start + 40 * DAY_MS).toISOString(),
    };
    const ask = (
      { id }: Meter,
      { start, end, customers }: { start: string; end: string; customers?: readonly string[] | undefined },
    ) => this.#metering.usage(id, customers![0]!, [start, end]);
    const questions = CUSTOMERS.flatMap((customer) => [
      { ...range, customers: [customer] },
      { start: new Date(this.#start + 3_723_000).toISOString(), end: range.end, customers: [customer] },
    ]);
    return [
      ...(await usageDifferences(ask, this.#meters, { accepted, questions })),
      ...(await storeDifferences(stores, { accepted, prefix: `${this.#name} ` })),
      ...(await rowDifferences(stores, this.#meters)),
    ];
  }

  #event(index: number): ModelEvent {
    // Two days of a month, and one of the next.
    const day = [0, 1, 31][index % 3]! * DAY_MS;
    return {
      event_id: `${this.#name} ${index}`,
      event_name: `call ${this.#name}`,
      external_customer_id: CUSTOMERS[index % 2]!,
      timestamp: new Date(this.#start + day + index * 3_600_000 * 0.9).toISOString(),
      properties: { n: index % 11 === 10 ? 'no number' : `${index}.5` },
    };
  }

  async #send(events: readonly ModelEvent[]): Promise<void> {
    await this.#metering.send(events);
    this.#accepted.push(...events);
  }

  async #announce(aggregation: { type: 'SUM' | 'MAX'; field: string }): Promise<void> {
    const id = `${aggregation.type} ${this.#name}`;
    const meter = { event_name: `call ${this.#name}`, filters: [], aggregation };
    await this.#metering.announce(id, meter);
    this.#meters.push({ ...meter, id });
  }

  async #void({ event_id }: ModelEvent): Promise<void> {
    await this.#correct(event_id, 'void', null);
    this.#accepted.push({ voids: event_id });
  }

  async #replace({ event_id }: ModelEvent): Promise<void> {
    const { event_id: _id, ...event } = this.#event(7);
    await this.#correct(event_id, 'replace', JSON.stringify(event));
    this.#accepted.push({ replaces: event_id, event: { ...event, event_id } });
  }

  async #correct(event_id: string, action: 'void' | 'replace', replacement: string | null): Promise<void> {
    const asked = { event_id, action, replacement, reason: 'a test', user_id: 'user_test', now: new Date() };
    await requestCorrection(this.#metering.stores, SCOPE, asked);
  }
}

describe('a statement on its way to the store', function () {
  this.timeout(600_000);
  let workers: Rounds[];
  let kinds: string[];

  before(async () => {
    workers = await Promise.all(Array.from({ length: WORKERS }, () => Rounds.open()));
    const quiet = await Promise.all(workers.map((rounds) => rounds.play()));
    expect(quiet.flatMap(({ differences }) => differences)).to.deep.equal([]);
    kinds = quiet[0]!.kinds;
    console.log(`      a round writes with ${kinds.length} statements: ${kinds.join(', ')}`);
  });
  after(() => Promise.all(workers.map((rounds) => rounds.close())));

  for (const fate of ROUND_FATES) {
    it(`${fate}: any of them`, async () => {
      const places: Place[] = kinds.map((kind, at) => ({ kind, nth: countOf(kinds.slice(0, at), kind) }));
      const found: string[] = [];
      const met: string[] = [];
      await Promise.all(
        workers.map(async (rounds) => {
          for (let place = places.shift(); place !== undefined; place = places.shift()) {
            const { kind, nth } = place;
            const { isMet, differences } = await rounds.play(place, fate);
            if (isMet) met.push(kind);
            found.push(...differences.map((each) => `${fate}: ${kind} ${nth + 1}: ${each}`));
          }
        }),
      );
      expect(found).to.deep.equal([]);
      // Whatever way the pipeline took, each kind was met.
      expect(met).to.include.members([...new Set(kinds)]);
    });
  }
});
