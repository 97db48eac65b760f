/** Events for an export, whatever their size: in blocks that the store has room for. docs/decisions/0018-exports.md. */
import { expect } from 'chai';
import { streamExportedEvents } from '../../../storage/events/exported-events.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const PARTS = 3;
const EVENTS_PER_PART = 250;
const EVENT_BYTES = 500_000;
/** Less than the bytes of all of them. */
const MEMORY_BYTES = 250_000_000;

describe('exported events', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
    for (let part = 0; part < PARTS; part++)
      await database.clickhouse.command({
        query: `insert into events (tenant_id, environment_id, event_id, event_name, external_customer_id, timestamp, received_at, properties)
          select 't', 'e', concat('e', toString(number)), 'n', concat('c', toString(number % 7)),
                 toDateTime64('2026-03-01', 6, 'UTC') + number, now64(6), concat('{"p":"', repeat('x', ${EVENT_BYTES}), '"}')
            from numbers(${part * EVENTS_PER_PART}, ${EVENTS_PER_PART})`,
        clickhouse_settings: { max_block_size: '50' },
      });
  });
  after(() => database.close());

  it('of half a megabyte each take the memory of some of them, and come in the order of the table', async () => {
    const { clickhouse } = database;
    const limited = new Proxy(clickhouse, {
      get: (target, name) =>
        name === 'query'
          ? (asked: Parameters<typeof clickhouse.query>[0]) =>
              clickhouse.query({
                ...asked,
                clickhouse_settings: { ...asked.clickhouse_settings, max_memory_usage: String(MEMORY_BYTES) },
              })
          : Reflect.get(target, name),
    });
    const range = { start_us: Date.UTC(2026, 1, 1) * 1_000, end_us: Date.UTC(2026, 3, 1) * 1_000 };
    const places: string[] = [];
    for await (const some of streamExportedEvents(limited, { tenant_id: 't', environment_id: 'e', ...range }))
      for (const [, , customer, , at_us, , , properties] of some) {
        expect(properties).to.have.length(EVENT_BYTES + '{"p":""}'.length);
        places.push(`${customer} ${at_us}`);
      }
    expect(places).to.have.length(PARTS * EVENTS_PER_PART);
    expect(places).to.deep.equal([...places].sort());
  });

  it('of a time without any are none', async () => {
    const range = { start_us: 0, end_us: 1 };
    for await (const some of streamExportedEvents(database.clickhouse, {
      tenant_id: 't',
      environment_id: 'e',
      ...range,
    }))
      expect(some).to.deep.equal([]);
  });
});
