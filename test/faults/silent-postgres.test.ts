// What a Postgres that hangs looks like from a request, and that a long statement is not taken for one.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { buildApp } from '../../api/app.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { SILENT_WITHIN_MS } from '../../storage/foundation/unresponsive-server.ts';
import { connectPostgres, PROCESS_POOL } from '../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type Cut, cutTo } from '../support/cut.ts';
import { until } from '../support/until.ts';

/** docs/operations.md says it. */
const ANSWERED_WITHIN_MS = 30_000;

describe('a Postgres that hangs', function () {
  this.timeout(90_000);
  let api: TestApi;
  let way: Cut;
  let pool: Knex;
  let url: string;
  let close: () => void;

  before(async () => {
    api = await startTestApi();
    const address = new URL(api.services.postgres.client.config.connection.connectionString);
    way = await cutTo({ host: address.hostname, port: Number(address.port) });
    address.port = String(way.port);
    address.searchParams.delete('host');
    pool = connectPostgres(address.href, PROCESS_POOL);
    const server = makeHttpServer(buildApp({ ...api.services, postgres: pool }));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    close = () => {
      server.closeAllConnections();
      server.close();
    };
  });
  after(async () => {
    way.goOn();
    close();
    await pool.destroy();
    await way.close();
    await api.stop();
  });

  const customer = (external_id: string) => ({ body: { external_id, name: external_id } });

  it('fails the requests that hold a connection and those that wait for one: 503 and Retry-After, in time', async () => {
    // As many as there are connections, and some more.
    const count = PROCESS_POOL.pool_max + 5;
    const ask = (name: string) =>
      Promise.all(Array.from({ length: count }, (_, n) => api.request('POST', `${url}/customers`, customer(name + n))));
    expect(new Set((await ask('before')).map(({ status }) => status))).to.deep.equal(new Set([201]));
    way.hang();
    const began = performance.now();
    const answers = await ask('hung');
    expect(performance.now() - began).to.be.within(PROCESS_POOL.acquire_timeout_ms, ANSWERED_WITHIN_MS);
    for (const { status, headers, body } of answers) {
      expect([status, headers.get('retry-after'), body.code]).to.deep.equal([503, '1', 'service_unavailable']);
    }
  });

  it('is the same to a request as one whose connection is lost while it waits', async () => {
    way.goOn();
    const holder = await api.services.postgres.transaction();
    await holder.raw('lock table customers');
    const asked = api.request('POST', `${url}/customers`, customer('lost'));
    await until('it waits', async () => {
      const { rows } = await api.services.postgres.raw('select from pg_locks where not granted');
      return rows.length > 0;
    });
    await way.cut();
    const { status, headers, body } = await asked;
    expect([status, headers.get('retry-after'), body.code]).to.deep.equal([503, '1', 'service_unavailable']);
    await holder.rollback();
    await way.restore();
  });

  it('answers again when it goes on, and no connection is used whose statement was given up', async () => {
    for (let n = 0; n < 40; n++) {
      const { status, text } = await api.request('POST', `${url}/customers`, customer(`after${n}`));
      expect(status, text).to.equal(201);
    }
  });

  it('gives a statement that waits for a lock the time that it needs', async () => {
    const holder = await api.services.postgres.transaction();
    await holder.raw('select pg_advisory_xact_lock(77)');
    const released = new Promise((resolve) => setTimeout(resolve, SILENT_WITHIN_MS + 5_000)).then(() =>
      holder.commit(),
    );
    const rows = await pool.transaction(
      async (transaction) => (await transaction.raw('select pg_advisory_xact_lock(77), 1 as one')).rows,
    );
    expect(rows[0].one).to.equal(1);
    await released;
  });
});
