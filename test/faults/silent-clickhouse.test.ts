import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { z } from 'zod';
import { connectClickHouse, defineStatement } from '../../storage/clickhouse/clickhouse.ts';
import { testStores } from '../support/stores.ts';

const slowly = defineStatement({
  name: 'slowly',
  sql: 'select sum(sleepEachRow(1)) as slept from numbers({seconds:UInt32}) settings max_block_size = 1',
  params: z.object({ seconds: z.int() }),
  row: z.object({ slept: z.coerce.number() }),
});

describe('a question to ClickHouse', function () {
  this.timeout(60_000);
  let unanswered: Promise<Unanswered>;
  let slow: Promise<unknown>;

  // Both take their time, and neither needs the machine.
  before(() => {
    unanswered = askNobody();
    slow = askSlowly();
    for (const asked of [unanswered, slow]) asked.catch(() => {});
  });

  it('that nobody answers fails within seconds, and can be asked again', async () => {
    const { first } = await unanswered;
    expect(first.error).to.include({ code: 'service_unavailable' });
    expect(first.took_ms).to.be.within(10_000, 30_000);
  });

  it('that follows one that nobody has answered does not wait as long again', async () => {
    const { second } = await unanswered;
    expect(second.error).to.include({ code: 'service_unavailable' });
    expect(second.took_ms).to.be.below(8_000);
  });

  it('may take its time as long as the server lives', async () => {
    expect(await slow).to.deep.equal([{ slept: 0 }]);
  });
});

type Failed = { error: unknown; took_ms: number };
type Unanswered = { first: Failed; second: Failed };

async function askNobody(): Promise<Unanswered> {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const client = connectClickHouse(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  const ask = (): Promise<Failed> => {
    const began = performance.now();
    return slowly.run(client, { seconds: 1 }).then(
      () => ({ error: undefined, took_ms: 0 }),
      (error: unknown) => ({ error, took_ms: performance.now() - began }),
    );
  };
  try {
    return { first: await ask(), second: await ask() };
  } finally {
    await client.close();
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
}

/** Longer than somebody who says nothing is waited for. */
async function askSlowly(): Promise<unknown> {
  const { clickhouse, close } = await (await testStores()).freshDatabase();
  try {
    return await slowly.run(clickhouse, { seconds: 20 });
  } finally {
    await close();
  }
}
