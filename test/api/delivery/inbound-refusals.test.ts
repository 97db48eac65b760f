/**
 * docs/integrations/README.md, "Webhooks of providers": a refusal does not tell which tenants have a connection. Its steps are counted,
 * because a measured time would depend on the machine.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { expect } from 'chai';
import { describeWebhooks } from '../../../actions/delivery/inbound/receive-webhook.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { encodeBasic } from '../../support/providers/chargebee-double.ts';
import { signHubSpotRequest } from '../../support/providers/hubspot-fake.ts';
import { signPaddleBody } from '../../support/providers/paddle-fake.ts';
import { signIntuitBody } from '../../support/providers/quickbooks-fake.ts';
import { signRazorpayBody } from '../../support/providers/razorpay-fake.ts';
import { signStripeBody } from '../../support/providers/stripe-fake.ts';
import { signWhopBody } from '../../support/providers/whop-fake.ts';
import { signXeroBody } from '../../support/providers/xero-fake.ts';
import { signZohoWebhook } from '../../support/providers/zoho-books-fake.ts';

const KEY = 'a key of the settings that has 32 characters';
const NOW = new Date('2026-03-15T12:00:00Z');
const BODY = JSON.stringify({ id: 'evt_1', padding: 'x'.repeat(1_000) });

type Signed = {
  /** Headers of the body that is signed with the secret and sent to the address. */
  sign(secret: string, url: string): Record<string, string>;
  readonly secrets: Record<string, string>;
};

/** `secrets` without the one of the webhook. */
const PROVIDERS: Readonly<
  Record<string, Signed & { readonly webhook_secret: string; readonly is_body_unsigned?: boolean }>
> = {
  stripe: {
    sign: (secret) => ({ 'stripe-signature': signStripeBody(BODY, [secret], NOW.getTime() / 1_000) }),
    secrets: { secret_key: 'sk_test_1' },
    webhook_secret: 'webhook_secret',
  },
  razorpay: {
    sign: (secret) => ({ 'x-razorpay-signature': signRazorpayBody(BODY, secret) }),
    secrets: { key_id: 'rzp_test_1', secret_key: 'x' },
    webhook_secret: 'webhook_secret',
  },
  quickbooks: {
    sign: (secret) => ({ 'intuit-signature': signIntuitBody(BODY, secret) }),
    secrets: { client_id: 'a', client_secret: 'b', realm_id: '1', environment: 'sandbox' },
    webhook_secret: 'webhook_verifier_token',
  },
  zoho_books: {
    sign: (secret) => ({ 'x-zoho-webhook-signature': signZohoWebhook({ body: BODY }, secret) }),
    secrets: { client_id: 'a', client_secret: 'b', organization_id: '1' },
    webhook_secret: 'webhook_secret',
  },
  paddle: {
    sign: (secret) => ({ 'paddle-signature': signPaddleBody(BODY, [secret], NOW.getTime() / 1_000) }),
    secrets: { api_key: 'pdl_sdbx_apikey_1' },
    webhook_secret: 'webhook_secret',
  },
  xero: {
    sign: (secret) => ({ 'x-xero-signature': signXeroBody(BODY, secret) }),
    secrets: { client_id: 'a', client_secret: 'b', tenant_id: 'c', sales_account: '200', payment_account: '090' },
    webhook_secret: 'webhook_key',
  },
  hubspot: {
    sign: (secret, url) => {
      const timestamp = String(NOW.getTime());
      const signature = signHubSpotRequest({ method: 'POST', url, body: BODY, timestamp }, secret);
      return { 'x-hubspot-request-timestamp': timestamp, 'x-hubspot-signature-v3': signature };
    },
    secrets: { access_token: 'pat-na1-token' },
    webhook_secret: 'client_secret',
  },
  whop: {
    sign: (secret) => signWhopBody(BODY, secret, { now: NOW }),
    secrets: { api_key: 'a', company_id: 'biz_1' },
    webhook_secret: 'webhook_secret',
  },
  chargebee: {
    sign: (secret) => ({ authorization: encodeBasic('farthing', secret) }),
    secrets: { site: 'a-test', api_key: 'b', webhook_username: 'farthing' },
    webhook_secret: 'webhook_password',
    is_body_unsigned: true,
  },
};

/** Runs the work, and returns the numbers of calls of the cryptographic functions, of bytes that were hashed, and the statements. */
async function countSteps(api: TestApi, work: () => Promise<void>) {
  const steps = { createHmac: 0, hashed_bytes: 0, timingSafeEqual: 0, createDecipheriv: 0, statements: [] as string[] };
  const original = { ...crypto };
  const onQuery = ({ sql }: { sql: string }) => void steps.statements.push(sql);
  const counted = {
    createHmac(...input: Parameters<typeof crypto.createHmac>) {
      steps.createHmac++;
      const hmac = original.createHmac(...input);
      const update = hmac.update.bind(hmac) as (data: crypto.BinaryLike) => crypto.Hmac;
      hmac.update = (data: crypto.BinaryLike) => {
        steps.hashed_bytes += Buffer.byteLength(data as Buffer);
        return update(data);
      };
      return hmac;
    },
    timingSafeEqual(...input: Parameters<typeof crypto.timingSafeEqual>) {
      steps.timingSafeEqual++;
      return original.timingSafeEqual(...input);
    },
    createDecipheriv(...input: Parameters<typeof crypto.createDecipheriv>) {
      steps.createDecipheriv++;
      return original.createDecipheriv(...input);
    },
  };
  Object.assign(crypto, counted);
  syncBuiltinESMExports();
  api.services.postgres.on('query', onQuery);
  try {
    await work();
  } finally {
    api.services.postgres.removeListener('query', onQuery);
    const { createHmac, timingSafeEqual, createDecipheriv } = original;
    Object.assign(crypto, { createHmac, timingSafeEqual, createDecipheriv });
    syncBuiltinESMExports();
  }
  return steps;
}

describe('refused webhooks of providers', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: NOW, config: { SECRETS_KEYS: KEY } });
  });
  after(() => api.stop());

  const connect = async (provider_type: string, secrets: object): Promise<Scope> => {
    const { scope } = await api.otherTenant();
    const connection = { id: `conn_${crypto.randomUUID()}`, ...scope, provider_type };
    const secret = createSealer([KEY]).seal(JSON.stringify({ [provider_type]: secrets }), connection);
    await api.services.postgres('connections').insert({ ...connection, name: 'A', has_account: true, secret });
    return scope;
  };
  const send = async (provider_type: string, { tenant_id, environment_id }: Scope, secret: string) => {
    const path = `/webhooks/${provider_type}/${tenant_id}/${environment_id}` as const;
    const headers = PROVIDERS[provider_type]!.sign(secret, `${api.url}/v1${path}`);
    return api.request<{ code: string }>('POST', path, { body: BODY, key: null, headers });
  };

  for (const [name, { secrets, webhook_secret, is_body_unsigned = false }] of Object.entries(PROVIDERS))
    it(`of ${name} take the same steps with and without a connection`, async () => {
      const connected = await connect(name, { ...secrets, [webhook_secret]: 'right' });
      const refused: Record<string, Scope> = {
        'a wrong signature': connected,
        // The ids have the length of known ones, because some signatures cover the address.
        'an unknown tenant': {
          tenant_id: connected.tenant_id.replace(/.{7}$/, 'unknown'),
          environment_id: connected.environment_id.replace(/.{7}$/, 'unknown'),
        },
        'an environment without a connection': (await api.otherTenant()).scope,
        'a connection without a webhook secret': await connect(name, secrets),
        'a connection with an empty webhook secret': await connect(name, { ...secrets, [webhook_secret]: '' }),
      };
      // The first webhook of a process prepares the credentials of no connection.
      await send(name, refused['an unknown tenant']!, 'wrong');
      const counts: Record<string, object> = {};
      for (const [what, scope] of Object.entries(refused))
        counts[what] = await countSteps(api, async () => {
          const { status, body } = await send(name, scope, 'wrong');
          expect([status, body?.code], what).to.deep.equal([
            401,
            describeWebhooks(name).wants_empty_answer ? undefined : 'permission_denied',
          ]);
        });
      const { 'a wrong signature': expected, ...others } = counts;
      expect(expected).to.include({ createDecipheriv: 1 });
      if (!is_body_unsigned) expect((expected as { hashed_bytes: number }).hashed_bytes).to.be.at.least(BODY.length);
      for (const [what, steps] of Object.entries(others)) expect(steps, what).to.deep.equal(expected);
      const accepted = await send(name, connected, 'right');
      expect(accepted.status, accepted.text).not.to.equal(401);
    });

  it('of Razorpay are not accepted with an earlier secret alone', async () => {
    const scope = await connect('razorpay', { ...PROVIDERS['razorpay']!.secrets, previous_webhook_secret: 'earlier' });
    expect((await send('razorpay', scope, 'earlier')).status).to.equal(401);
  });
});
