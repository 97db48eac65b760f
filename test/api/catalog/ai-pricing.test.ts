/** Descriptions of prices over HTTP: what is answered is what the other operations take, whoever has read it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

const PRO = 'Pro: $29 per month plus 2 cents per API call after 1,000 free. Includes SSO.';

type ModelRequest = { model: string; messages: { content: string }[] };

describe('POST /ai/pricing/parse', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const parse = (body: unknown, options = {}) => api.request('POST', '/ai/pricing/parse', { body, ...options });

  it('200: bodies that the other operations take, once refs are ids; nothing is saved before', async () => {
    const { status, body, text } = await parse({ description: PRO });
    expect(status, text).to.equal(200);
    expect(body).to.deep.include({ method: 'rules', fallback_reason: null, not_understood: [], confidence: 1 });
    expect((await api.request('GET', '/plans')).body.items).to.deep.equal([]);
    const ids = new Map<string, string>();
    const create = async <Path extends string>(path: Path, { ref, body: made }: { ref: string; body: object }) => {
      const named = Object.entries(made).map(([field, value]) => [field, ids.get(value as string) ?? value]);
      const answer = await api.request('POST', path, { body: Object.fromEntries(named) });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
      ids.set(ref, answer.body.id as string);
    };
    for (const plan of body.plans) await create('/plans', plan);
    for (const meter of body.meters) await create('/meters', meter);
    for (const feature of body.features) await create('/features', feature);
    for (const price of body.prices) await create('/prices', price);
    for (const entitlement of body.entitlements) await create('/entitlements', entitlement);
    const { prices, entitlements } = (await api.request('GET', `/plans/${ids.get('plan_1')}`)).body;
    expect(prices!.map((price) => [price.type, price.amount, price.tiers?.length ?? 0])).to.deep.equal([
      ['FIXED', '29', 0],
      ['USAGE', '0', 2],
    ]);
    expect(entitlements!.map((each) => each.feature_type)).to.deep.equal(['boolean']);
  });

  it('400 by name, 401, 403', async () => {
    const wrong: [object, string][] = [
      [{}, 'description'],
      [{ description: ' ' }, 'description'],
      [{ description: 'x'.repeat(20_001) }, 'description'],
      [{ description: PRO, currency: 'zzz' }, 'currency'],
      [{ description: PRO, method: 'oracle' }, 'method'],
      [{ description: PRO, method: 'llm' }, 'method'],
    ];
    for (const [body, field] of wrong) {
      const answer = await parse(body);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    }
    expect((await parse({ description: PRO }, { key: null })).status).to.equal(401);
    const reader = await api.keyWithRoles(['all_reader'], { user_type: 'user' });
    expect((await parse({ description: PRO }, { key: reader })).status).to.equal(403);
  });

  describe('with a language model', () => {
    let server: Server;
    let withModel: TestApi;
    const asked: { url: string; authorization: string; body: ModelRequest }[] = [];
    let answers: (response: ServerResponse) => void = () => undefined;

    before(async () => {
      server = createServer((request, response) => {
        void bodyOf(request).then((body) => {
          asked.push({ url: request.url!, authorization: request.headers.authorization ?? '', body });
          answers(response);
        });
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const LLM_BASE_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`;
      const config = {
        LLM_BASE_URL,
        LLM_MODEL: 'small',
        LLM_API_KEY: 'a-key',
        LLM_TIMEOUT_MS: '300',
        LLM_REQUESTS_PER_HOUR: '12',
      };
      withModel = await startTestApi({ config });
    });
    after(async () => {
      await withModel.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });

    const ask = (body: object = {}, options = {}) =>
      withModel.request('POST', '/ai/pricing/parse', { body: { description: PRO, ...body }, ...options });
    const saying = (content: unknown) => (response: ServerResponse) => {
      const text = typeof content === 'string' ? content : JSON.stringify(content);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: text } }] }));
    };
    const price = (fields: object) => ({
      ref: 'price_1',
      body: {
        entity_type: 'PLAN',
        entity_id: 'plan_1',
        type: 'FIXED',
        billing_model: 'FLAT_FEE',
        amount: '29',
        currency: 'usd',
        billing_period: 'MONTHLY',
        invoice_cadence: 'ADVANCE',
        ...fields,
      },
    });
    const plans = [{ ref: 'plan_1', body: { name: 'Pro' } }];

    it('200: its answer, checked; what it is asked, and with which key', async () => {
      answers = saying({ plans, prices: [price({})], confidence: 0.8, assumptions: ['one'] });
      const { status, body, text } = await ask();
      expect(status, text).to.equal(200);
      expect(body).to.deep.include({ method: 'llm', fallback_reason: null, confidence: 0.8, assumptions: ['one'] });
      expect(body.prices[0]!.body).to.include({ amount: '29', billing_cadence: 'RECURRING' });
      const [request] = asked;
      expect(request).to.include({ url: '/v1/chat/completions', authorization: 'Bearer a-key' });
      expect(request!.body.model).to.equal('small');
      expect(request!.body.messages[1]!.content).to.include(PRO);
    });

    it('200: between fences, too', async () => {
      answers = saying(`\`\`\`json\n${JSON.stringify({ plans, prices: [price({})] })}\n\`\`\``);
      expect((await ask()).body.method).to.equal('llm');
    });

    it('200: what would be refused is left out and told, and it is less sure', async () => {
      const prices = [
        price({}),
        { ...price({ amount: '-1' }), ref: 'price_2' },
        { ...price({ entity_id: 'plan_9' }), ref: 'price_3' },
        { ...price({ type: 'USAGE', meter_id: 'meter_9', invoice_cadence: 'ARREAR' }), ref: 'price_4' },
        price({ amount: '30' }),
      ];
      answers = saying({ plans, prices, confidence: 1 });
      const { body } = await ask();
      expect(body.prices.map(({ ref }) => ref)).to.deep.equal(['price_1']);
      expect(body.not_understood.map(({ text }) => text)).to.deep.equal(['price_2', 'price_3', 'price_4', 'price_1']);
      expect(body.not_understood[0]!.reason).to.include('amount');
      expect(body.confidence).to.equal(0.5);
    });

    const useless: [string, (response: ServerResponse) => void][] = [
      ['is away', (response) => response.destroy()],
      ['answers 500', (response) => response.writeHead(500).end('{}')],
      ['answers what is no JSON', saying('I would charge $29.')],
      ['answers no price', saying({ plans })],
      ['answers another shape', saying({ plans: 'Pro', prices: [price({})] })],
      ['redirects', (response) => response.writeHead(302, { location: 'https://example.com/' }).end()],
      ['does not answer', () => undefined],
    ];
    for (const [why, how] of useless)
      it(`the rules read it where the model ${why}`, async () => {
        answers = how;
        const { status, body, text } = await ask();
        expect(status, text).to.equal(200);
        expect(body.method).to.equal('rules');
        expect(body.fallback_reason).to.be.a('string');
        expect(body.prices).to.have.length(2);
      });

    it('503 where a model is asked for by name and gives nothing', async () => {
      answers = (response) => response.writeHead(429).end();
      expect((await ask({ method: 'llm' })).status).to.equal(503);
    });

    it('asked too often by a tenant in an hour: rules, or 429; another tenant and another hour are others', async () => {
      answers = saying({ plans, prices: [price({})] });
      expect((await ask({ method: 'llm' })).status).to.equal(200);
      const before = asked.length;
      const { body } = await ask();
      expect(body).to.include({ method: 'rules' });
      expect(body.fallback_reason).to.include('hour');
      expect((await ask({ method: 'llm' })).status).to.equal(429);
      expect(asked).to.have.length(before);
      const { key } = await withModel.otherTenant();
      expect((await ask({ method: 'llm' }, { key })).status).to.equal(200);
      withModel.setNow('2026-03-15T13:00:00Z');
      expect((await ask({ method: 'llm' })).status).to.equal(200);
    });
  });
});

async function bodyOf(request: IncomingMessage) {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}
