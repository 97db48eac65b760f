/**
 * kill -9 and SIGSTOP while daily rollups are made, again and again, of days whose events still arrive: every answer equals the
 * reference model, every row the raw events, and there is one daily rollup for each meter, customer and day.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { auditUsage, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import { type ModelEvent, type ModelMeter, type ModelQuestion, usageByModel } from '../support/reference-model.ts';
import { type Chance, createChance, seedsToRun } from '../support/seeds.ts';
import { untilDailyRollups } from '../support/settled.ts';
import { countDailyRollups, settle, withoutDailyRollups } from './chaos.ts';
import { Client } from './client.ts';
import { embeddedStage } from './embedded-stage.ts';
import type { Stage } from './stage.ts';

const DAY_MS = 86_400_000;
const FIRST_DAY = Date.parse('2026-03-01T00:00:00Z') / DAY_MS;
const DAYS = 12;
const EVENTS = 4_000;
const CUSTOMERS = ['acme', 'böhm', 'c'];
const ENDS = { start: '2026-03-01T00:00:00Z', end: '2026-03-13T00:00:00Z' };
const QUESTIONS: ModelQuestion[] = [
  { ...ENDS, window_size: 'DAY' },
  { start: '2026-03-02T10:20:30.5Z', end: '2026-03-11T07:00:00.001Z' },
  { ...ENDS, timezone: 'Asia/Kolkata', window_size: 'WEEK' },
];

type Meter = ModelMeter & { readonly id: string };

describe('daily rollups while processes are killed', function () {
  this.timeout(480_000);
  let stage: Stage;
  before(async () => {
    stage = await embeddedStage();
  });
  after(() => stage.stop());

  for (const seed of seedsToRun(2)) {
    it(`seed ${seed}`, async () => {
      const client = new Client(stage.ask);
      const meters = await makeMeters(client, `day ${seed}`);
      await settle(stage);
      await withoutDailyRollups(stage);
      const chance = createChance(seed);
      const events = Array.from({ length: EVENTS }, (_none, index) => randomEvent(chance, `day ${seed}`, index));
      let isSent = false;
      const sending = send(client, events, chance).finally(() => {
        isSent = true;
      });
      const [disturbances] = await Promise.all([
        trouble(stage, seed, () => isSent),
        askForDailyRollups(stage, seed),
        sending,
      ]);
      await settle(stage);
      await makeAll(stage);

      const found: UsageDifference[] = [];
      for (const meter of meters) {
        for (const question of QUESTIONS)
          expect(await asked(client, meter, question)).to.deep.equal(model(meter, events, question));
        await stage.withStores((stores) => auditUsage(stores, { meter_id: meter.id }, (each) => found.push(each)));
      }
      expect(found).to.deep.equal([]);
      const made = await stage.withStores((stores) => countDailyRollups(stores, meters));
      expect(made).to.equal(meters.length * CUSTOMERS.length * DAYS);
      console.log(`      seed ${seed}: ${disturbances.join(', ')}; ${client.failed} requests failed`);
      expect(disturbances).to.be.an('array').that.is.not.empty;
    });
  }
});

async function makeMeters(client: Client, event_name: string): Promise<Meter[]> {
  const aggregations: ModelMeter['aggregation'][] = [
    { type: 'COUNT' },
    { type: 'SUM', field: 'n' },
    { type: 'COUNT_UNIQUE', field: 'host' },
    { type: 'LATEST', field: 'n' },
  ];
  const meters: Meter[] = [];
  for (const aggregation of aggregations) {
    const body = { name: aggregation.type, event_name, aggregation, filters: [], reset_usage: 'BILLING_PERIOD' };
    const answer = await client.untilAnswered('POST', '/meters', { body, statuses: [201] });
    meters.push({ event_name, aggregation, id: answer.body.id });
  }
  return meters;
}

function randomEvent(chance: Chance, event_name: string, index: number): ModelEvent {
  return {
    event_id: `${event_name} ${index}`,
    event_name,
    external_customer_id: chance.pick(CUSTOMERS),
    timestamp: new Date(FIRST_DAY * DAY_MS + chance.whole(0, DAYS * DAY_MS - 1)).toISOString(),
    properties: { n: `${chance.whole(0, 999)}.${chance.whole(0, 99)}`, host: `h${chance.whole(0, 9)}` },
  };
}

/** Until all is acknowledged; what has no answer comes again with others. */
async function send(client: Client, events: readonly ModelEvent[], chance: Chance): Promise<void> {
  for (let unsent = [...events]; unsent.length > 0; ) {
    const batch = unsent.splice(0, chance.whole(1, 60));
    const answer = await client.try('POST', '/events/bulk', { events: batch });
    if (answer?.status !== 202) unsent = chance.shuffled([...unsent, ...batch]);
    await pause(chance.whole(20, 120));
  }
}

async function trouble(stage: Stage, seed: number, isOver: () => boolean): Promise<string[]> {
  const chance = createChance(seed ^ 0x5eed);
  const disturbances: string[] = [];
  while (!isOver()) {
    await pause(chance.whole(100, 1_200));
    disturbances.push(await stage.disturb(chance));
  }
  return disturbances;
}

/** A day more at a time, as long as there are days. */
async function askForDailyRollups(stage: Stage, seed: number): Promise<void> {
  const chance = createChance(seed ^ 0xda1);
  for (let day = 1; day < DAYS; day++) {
    await pause(chance.whole(100, 900));
    // Whoever is killed just now is asked for the next day.
    await stage.withStores(({ postgres }) => requestDailyRollups(postgres, FIRST_DAY + day)).catch(() => {});
  }
}

function makeAll(stage: Stage): Promise<void> {
  return stage.withStores(({ postgres }) => untilDailyRollups(postgres, FIRST_DAY + DAYS, () => settle(stage)));
}

async function asked(client: Client, meter: Meter, { start, end, timezone, window_size }: ModelQuestion) {
  const body = { meter_id: meter.id, start_time: start, end_time: end, timezone, window_size };
  const answer = await client.untilAnswered('POST', '/events/usage/meter', { body });
  const { value, event_count, results } = answer.body;
  return { value, event_count, windows: results ?? [] };
}

function model(meter: Meter, events: readonly ModelEvent[], question: ModelQuestion) {
  const { value, event_count, windows } = usageByModel(meter, events, question);
  return { value, event_count, windows: windows.map((window) => ({ window_size: window.start, value: window.value })) };
}
