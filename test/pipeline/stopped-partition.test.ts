// A record that the log has lost, as docs/operations.md tells it, and what to do where there is no backup.
import { expect } from 'chai';
import { pino } from 'pino';
import { register } from 'prom-client';
import { type Metering, startMetering } from '../support/metering.ts';
import { until } from '../support/until.ts';

describe('a partition of which a record is missing', () => {
  const lines: { level: number; msg: string; err?: { message: string } }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let metering: Metering;

  before(async () => {
    metering = await startMetering({ partitions: 1, logger });
    await metering.pause();
    for (const id of ['a', 'b', 'c']) await send(id);
    await metering.stores.postgres.raw(`delete from log_records where "offset" = 1`);
    await metering.resume();
  });
  after(() => metering.stop());

  const send = (id: string) =>
    metering.send([1, 2].map((n) => ({ event_id: `${id}${n}`, event_name: 'call', external_customer_id: 'acme' })));
  const counted = async () =>
    (await metering.rows<{ event_id: string }>('select event_id from events order by event_id')).map(
      ({ event_id }) => event_id,
    );
  const stopped = async () =>
    (await register.getSingleMetric('farthing_pipeline_partition_stopped')!.get()).values.map(({ value }) => value);
  const saying = (text: string) => lines.filter(({ msg }) => msg === text);

  it('stands still before it, and says so once, however often it is tried again', async () => {
    await until('it is told', async () => saying('a partition of the event log is halted').length > 0);
    const { rows } = await metering.stores.postgres.raw(`select epoch::int from slices`);
    const again = async () =>
      (await metering.stores.postgres.raw(`select from slices where epoch >= ?`, [rows[0].epoch + 3])).rows.length > 0;
    await until('it was tried three times more', again);
    expect(saying('a partition of the event log is halted').map(({ err }) => err!.message)).to.deep.equal([
      'partition 0 is halted: expected the record at offset 1, got offset 2: the 1 records before it are not in the log ' +
        '(docs/operations.md, "A halted partition")',
    ]);
    expect(await stopped()).to.deep.equal([1]);
    expect(await counted()).to.deep.equal(['a1', 'a2']);
  });

  it('takes events all the same', async () => {
    await send('d');
    expect((await metering.stores.log.lag())[0]!.unprocessed_records).to.equal(3);
  });

  it('goes on when a record stands in its place; what it had is a dead letter', async () => {
    await metering.stores.postgres.raw(
      `insert into log_records (partition, "offset", kind, tenant_id, environment_id, received_at_us, event_count, body)
       select 0, missing, 'events', '', '', extract(epoch from now()) * 1000000, 2, 'lost' from generate_series(1, 1) missing`,
    );
    await metering.waitForPipeline();
    expect(await counted()).to.deep.equal(['a1', 'a2', 'c1', 'c2', 'd1', 'd2']);
    expect(await stopped()).to.deep.equal([0]);
    expect(saying('a partition of the event log is resumed').length).to.equal(1);
    const letters = await metering.rows(`select outcome, body, toUInt32(offset) as offset from event_outcomes`);
    expect(letters).to.deep.equal([{ outcome: 'dead_letter', body: 'lost', offset: 1 }]);
  });

  it('tells nothing of a partition that it has no more', async () => {
    await metering.pause();
    expect(await stopped()).to.deep.equal([]);
  });
});
