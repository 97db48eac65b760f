/** GET /events/usage/export: CSV of usage per customer and meter. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { exportUsage } from '../../actions/reporting/usage/export-usage.ts';
import { startWorld, type World } from '../support/world.ts';

const MARCH = 'start_time=2026-03-01T00:00:00Z&end_time=2026-04-01T00:00:00Z';
const HEAD = 'meter_id,meter_name,event_name,aggregation,usage,event_count,start_time,end_time';

describe('events: the usage export', () => {
  let world: World;
  const get = (query: string) => world.api.request('GET', `/events/usage/export?${query}`);

  before(async () => {
    world = await startWorld({ now: '2026-04-01T00:00:00Z' });
    await world.meter('tokens');
    await world.meter('hosts', { type: 'COUNT_UNIQUE', field: 'n' }, { event_name: 'tokens' });
    await world.post('/customers', {
      external_id: 'acme',
      name: 'Acme, "Inc."',
      metadata: { region: 'eu', tier: '=1+1' },
    });
    await world.post('/customers', { external_id: 'globex', name: '@globex;=2' });
    const at = '2026-03-10T10:00:00Z';
    await world.send([
      world.event('acme', 'tokens', { n: '1.50', at }),
      world.event('acme', 'tokens', { n: 2, at }),
      world.event('globex', 'tokens', { n: '-7.25', at }),
      world.event('-stranger', 'tokens', { n: 1, at }),
      world.event('acme', 'tokens', { n: 100, at: '2026-04-01T00:00:00Z' }),
    ]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const line = (start: string, meter: string, end: string) =>
    `${start},${world.id(`meter ${meter}`)},${meter},tokens,${end},2026-03-01T00:00:00Z,2026-04-01T00:00:00Z`;

  describe('200', () => {
    it('a row per customer and meter; what looks like a formula is text, numbers are numbers', async () => {
      const answer = await get(`${MARCH}&metadata_columns=region,tier`);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
      expect(answer.headers.get('content-length')).to.equal(null);
      expect(answer.headers.get('x-as-of')).to.equal('2026-04-01T00:00:00Z');
      expect(lines(answer.text)).to.deep.equal([
        `external_customer_id,customer_name,metadata.region,metadata.tier,${HEAD}`,
        line("'-stranger,,,", 'hosts', 'COUNT_UNIQUE,1,1'),
        line("'-stranger,,,", 'tokens', 'SUM,1,1'),
        line('acme,"Acme, ""Inc.""",eu,\'=1+1', 'hosts', 'COUNT_UNIQUE,2,2'),
        line('acme,"Acme, ""Inc.""",eu,\'=1+1', 'tokens', 'SUM,3.5,2'),
        line('globex,"\'@globex;\'=2",,', 'hosts', 'COUNT_UNIQUE,1,1'),
        line('globex,"\'@globex;\'=2",,', 'tokens', 'SUM,-7.25,1'),
      ]);
    });

    it('no cell begins a formula, whatever stands before its sign and wherever a line breaks', async () => {
      const inside = ['zz\n=WEBSERVICE(1)', 'zz\r=1', 'zz;=1+1;zz', 'zz| +1', 'zz\t@x', 'zz;\u200b-1'];
      const ids = [...inside, ' =1', '\ufeff=1', '\u200b@x', '\u00a0+1', '\u0001-1', 'zz-1;z=1'];
      await world.send(ids.map((id) => world.event(id, 'tokens', { n: 1, at: '2026-01-10T10:00:00Z' })));
      await world.waitForPipeline();
      const january = 'start_time=2026-01-01T00:00:00Z&end_time=2026-02-01T00:00:00Z';
      const { text } = await get(`${january}&meter_ids=${world.id('meter tokens')}`);
      const cells = text
        .slice(text.indexOf('\r\n') + 2)
        .split(/,,[^"]*?(?:\r\n|$)/)
        .filter((cell) => cell !== '');
      const expected = ids.map((id) => {
        if (id === 'zz-1;z=1') return `"${id}"`;
        const shown = /^zz/.test(id) ? id.replace(/[\n\r;|\t]/, "$&'") : `'${id}`;
        return /[\r\n\t;|]/.test(shown) ? `"${shown}"` : shown;
      });
      expect(cells.sort()).to.deep.equal(expected.sort());
    });

    it('one meter', async () => {
      const { text } = await get(`${MARCH}&meter_ids=${world.id('meter tokens')}`);
      expect(lines(text)).to.have.length(4);
    });

    it('all meters when the list of them is empty', async () => {
      expect((await get(`${MARCH}&meter_ids=`)).text).to.equal((await get(MARCH)).text);
    });

    it('the head alone where there is nothing', async () => {
      const { text } = await get('start_time=2020-01-01T00:00:00Z&end_time=2020-02-01T00:00:00Z');
      expect(lines(text)).to.deep.equal([`external_customer_id,customer_name,${HEAD}`]);
    });

    it('gzip when it is asked for, and only then', async () => {
      const plain = await raw(world, `/events/usage/export?${MARCH}`, {});
      expect(plain.headers['content-encoding']).to.equal(undefined);
      const zipped = await raw(world, `/events/usage/export?${MARCH}`, { 'accept-encoding': 'gzip' });
      expect(zipped.headers['content-encoding']).to.equal('gzip');
      expect(gunzipSync(zipped.body).toString()).to.equal(plain.body.toString());
    });

    it('is the same in batches of one customer', async () => {
      const asked = {
        start_us: Date.parse('2026-03-01T00:00:00Z') * 1000,
        end_us: Date.parse('2026-04-01T00:00:00Z') * 1000,
        meter_ids: null,
        timezone: null,
        split: null,
        amounts: false,
        now: world.now,
      };
      const all = async (customers_per_batch: number) => {
        const records: string[] = [];
        for await (const record of exportUsage(world.api.services, world.api.scope, {
          ...asked,
          customers_per_batch,
        })) {
          records.push(`${record.external_customer_id} ${record.meter.name} ${record.usage}`);
        }
        return records;
      };
      expect(await all(1))
        .to.deep.equal(await all(2000))
        .and.to.have.length(6);
    });
  });

  describe('400, 401, 404', () => {
    it('400 without a range, and for one turned round', async () => {
      expect((await get('')).status).to.equal(400);
      expect((await get('start_time=2026-03-01T00:00:00Z')).body.message).to.contain('end_time');
      expect((await get('start_time=2026-03-01T00:00:00Z&end_time=2026-02-01T00:00:00Z')).status).to.equal(400);
    });
    it('401 without a key', async () => {
      expect((await world.api.request('GET', `/events/usage/export?${MARCH}`, { key: null })).status).to.equal(401);
    });
    it('404 for a meter that there is not', async () => {
      const answer = await get(`${MARCH}&meter_ids=meter_none`);
      expect([answer.status, answer.body.code]).to.deep.equal([404, 'not_found']);
    });
  });
});

describe('events: an export that fails on the way', () => {
  it('breaks the connection', async () => {
    const world = await startWorld({ now: '2026-04-01T00:00:00Z' });
    try {
      await world.meter('tokens', { type: 'SUM', field: 'n' }, { filters: [{ key: 'n', values: ['1'] }] });
      // More customers than one batch holds; the last one's event cannot be read any more.
      const at = '2026-03-10T10:10:00Z';
      const customers = Array.from({ length: 2001 }, (_, index) => `c${String(index).padStart(5, '0')}`);
      // And one behind the end: what lies there is read from raw events.
      const later = world.event('c02000', 'tokens', { n: 1, at: '2026-03-10T10:45:00Z' });
      await world.send([...customers.map((customer) => world.event(customer, 'tokens', { n: 1, at })), later]);
      await world.waitForPipeline();
      const path = '/events/usage/export?start_time=2026-03-01T00:00:00Z&end_time=2026-03-10T10:30:00Z';
      const whole = await raw(world, path, {});
      expect(lines(whole.body.toString())).to.have.length(2002);
      await world.api.services.clickhouse.command({
        query: `insert into events select * replace ('c02000' as external_customer_id, 'no JSON' as properties,
          toDateTime64('2026-03-10 10:45:00', 6, 'UTC') as timestamp) from events limit 1`,
      });
      const broken = await raw(world, path, {}).then(
        () => 'ended in order',
        (error: { code?: string }) => error.code,
      );
      expect(broken).to.equal('ECONNRESET');
    } finally {
      await world.stop();
    }
  });
});

function lines(text: string): string[] {
  return text.trimEnd().split('\r\n');
}

/** fetch would ask for gzip by itself and unpack it. */
async function raw(world: World, path: string, headers: Record<string, string>) {
  const asked = httpRequest(`${world.api.url}/v1${path}`, {
    headers: { 'x-api-key': world.api.key, ...headers },
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { headers: response.headers, body: Buffer.concat(chunks) };
}
