/** Reads of accepted events by id: the rows of the store that they read, and events that an earlier version stored. */
import { expect } from 'chai';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import type { ClickHouseClient } from '../../../storage/clickhouse/clickhouse.ts';
import { loadAcceptedEvent } from '../../../storage/events/corrections.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const SCOPE = { tenant_id: 'acme', environment_id: 'live' };
const OTHERS = 200_000;

describe('an accepted event by its id', () => {
  let database: FreshDatabase;

  before(async () => {
    database = await freshDatabase();
    // One part: otherwise its number of granules would depend on merges.
    await insertEvents(
      `select concat('customer_', toString(number % 500)), 'call', toDateTime64('2026-03-01', 6) + number % 86400, concat('other_', toString(number)) from numbers(${OTHERS})`,
    );
    await insertEvents(`select 'customer_7', 'call', toDateTime64('2026-03-01 12:00:00', 6), 'new'`, 'new');
    await insertEvents(`select 'customer_8', 'call', toDateTime64('2026-03-01 12:00:00', 6), 'old'`, 'old');
    await command(
      `alter table event_identities update event_name = '', external_customer_id = '' where event_id = 'old'`,
    );
    await command('optimize table events final');
  });
  after(() => database.close());

  const command = (query: string) =>
    database.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2', wait_end_of_query: 1 } });

  async function insertEvents(rows: string, event_id = ''): Promise<void> {
    const columns = 'tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id';
    const source = `select 'acme' as t, 'live' as e, * from (${rows})`;
    await command(`insert into events (${columns}) ${source}`);
    if (event_id === '') return;
    const hash = hashIdentity({ ...SCOPE, event_id });
    await command(`insert into event_identities (${columns}, id_hash) select *, ${hash} from (${source})`);
  }

  /** Customer of the event, and the granules of `events` that each statement selects. */
  async function find(event_id: string): Promise<{ customer: string | undefined; granules: number[] }> {
    const { clickhouse } = database;
    const granules: number[] = [];
    const query: ClickHouseClient['query'] = (async (asked: Parameters<ClickHouseClient['query']>[0]) => {
      const plan = await clickhouse.query({
        ...asked,
        query: `explain indexes = 1 ${asked.query}`,
        format: 'TabSeparated',
      });
      const selected = [...(await plan.text()).matchAll(/Parts: \d+ \| Granules: (\d+)/g)];
      granules.push(selected.reduce((sum, [, count]) => sum + Number(count), 0));
      return clickhouse.query(asked);
    }) as never;
    const watched = new Proxy(clickhouse, {
      get: (target, name) => (name === 'query' ? query : Reflect.get(target, name)),
    });
    const event = await loadAcceptedEvent(watched, SCOPE, event_id);
    return { customer: event?.external_customer_id, granules };
  }

  it('is read from one granule, whatever other events its month has', async () => {
    expect(await find('new')).to.deep.equal({ customer: 'customer_7', granules: [1] });
  });

  it('is found by its time if an earlier version stored it', async () => {
    const { customer, granules } = await find('old');
    expect(customer).to.equal('customer_8');
    expect(granules).to.have.length(2);
    expect(granules[0]).to.equal(0);
  });

  it('is undefined if there is none', async () => {
    expect(await find('nobody sent this')).to.deep.equal({ customer: undefined, granules: [0, 0] });
  });
});
