// What docs/operations.md says of a damaged file of the log, and what it tells to do where there is no backup.
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { type Metering, startMetering } from '../support/metering.ts';
import { temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Longer than it takes to try a batch again some times. */
const STANDING_MS = 1_500;

describe('a damaged file of the event log', () => {
  const directory = temporaryDirectory();
  const log_directory = join(directory.path, 'log');
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  let metering: Metering;
  let damaged: { segment: string; position: string; length: number };

  before(async () => {
    metering = await startMetering({ partitions: 1, log_directory, logger });
    await metering.pause();
    for (const id of ['a', 'b', 'c']) await send(id);
    const { rows } = await metering.stores.postgres.raw(
      'select segment, position, length from log_records order by "offset"',
    );
    damaged = rows[1];
    const file = await open(join(log_directory, `${damaged.segment}.segment`), 'r+');
    await file.write('x', Number(damaged.position) + 5);
    await file.close();
    await metering.resume();
  });
  after(async () => {
    await metering.stop();
    directory.remove();
  });

  const send = (id: string) =>
    metering.send([1, 2].map((n) => ({ event_id: `${id}${n}`, event_name: 'call', external_customer_id: 'acme' })));
  const counted = async () =>
    (await metering.rows<{ event_id: string }>('select event_id from events order by event_id')).map(
      ({ event_id }) => event_id,
    );

  it('is told with its place, the partition stands still, and events are still accepted', async () => {
    const { segment, position, length } = damaged;
    const said = `segment ${segment} of the event log is damaged: ${length} bytes at ${position} are not as written`;
    await until('it is told', async () => lines.some((line) => line.includes(said)));
    await send('d');
    await new Promise((resolve) => setTimeout(resolve, STANDING_MS));
    expect(await counted()).to.deep.equal([]);
    expect((await metering.stores.log.lag())[0]!.unprocessed_records).to.equal(4);
  });

  it('leaves a dead letter when its row is given another content by hand; what is sent again counts once', async () => {
    const { rowCount } = await metering.stores.postgres.raw(
      `update log_records r set body = 'lost', segment = null, position = null, length = null, crc32 = null
         from slices s
        where r.segment = ? and r.position = ? and r.kind = 'events' and s.partition = r.partition and s.phase = 'idle'`,
      [damaged.segment, damaged.position],
    );
    expect(rowCount).to.equal(1);
    await metering.waitForPipeline();
    expect(await counted()).to.deep.equal(['a1', 'a2', 'c1', 'c2', 'd1', 'd2']);
    const letters = await metering.rows(`select outcome, body, toUInt32(offset) as offset from event_outcomes`);
    expect(letters).to.deep.equal([{ outcome: 'dead_letter', body: 'lost', offset: 1 }]);
    for (const id of ['a', 'b', 'c']) await send(id);
    await metering.waitForPipeline();
    expect(await counted()).to.deep.equal(['a1', 'a2', 'b1', 'b2', 'c1', 'c2', 'd1', 'd2']);
  });
});
