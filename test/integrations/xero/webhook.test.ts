/** Webhooks of Xero: the signature, the check before a webhook is active, and the events. */
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { xero } from '../../../integrations/xero/provider.ts';
import { signXeroBody } from '../../support/providers/xero-fake.ts';

const { verifyWebhook, parseWebhook } = xero.account!;

/** The body of "Intent to receive". */
const INTENT = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}';

const event = (more: object) => ({
  resourceUrl: 'https://api.xero.com/api.xro/2.0/Invoices/717f2bfc-c6d4-41fd-b238-3f2f0c0cf777',
  resourceId: '717f2bfc-c6d4-41fd-b238-3f2f0c0cf777',
  eventDateUtc: '2026-06-21T01:15:39.902',
  eventType: 'UPDATE',
  eventCategory: 'INVOICE',
  tenantId: 'c2cc9b6e-9458-4c7d-93cc-f02b81b0594f',
  tenantType: 'ORGANISATION',
  ...more,
});

describe('integrations/xero/webhook', () => {
  const verify = (body: string, signature: string | undefined, secrets = ['key']) =>
    verifyWebhook!(secrets, {
      headers: { 'x-xero-signature': signature },
      body: Buffer.from(body),
      now: new Date('2026-06-21T01:15:40Z'),
    });
  const parse = (events: object[]) =>
    parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify({ ...JSON.parse(INTENT), events })) });

  it('accepts the signature of the webhook key, whose characters are the key', () => {
    const key = 'OSd0eLlVIY9ZhViEqlDUh4+6n6M+Lo+eDaEJheJ6OCCgWwIz2D3JIAU6jPMipHRbgKTLz2uJ+xiACXGDBLrgdA==';
    expect(() => verify(INTENT, signXeroBody(INTENT, key), [key])).not.to.throw();
    const decoded = createHmac('sha256', Buffer.from(key, 'base64')).update(INTENT).digest('base64');
    expect(() => verify(INTENT, decoded, [key])).to.throw();
  });

  it('refuses every other one with the same words', () => {
    const right = signXeroBody(INTENT, 'key');
    const forged: [string, string | undefined, string[]?][] = [
      [INTENT, undefined],
      [INTENT, ''],
      [`${INTENT} `, right],
      [INTENT, signXeroBody(INTENT, 'another')],
      [INTENT, `${right}AA`],
      [INTENT, Buffer.from(right, 'base64').toString('hex')],
      [INTENT, right, []],
    ];
    for (const [body, signature, secrets] of forged)
      expect(() => verify(body, signature, secrets))
        .to.throw('the signature is not valid')
        .with.property('http_status_code', 401);
  });

  it('has no events before it is active', () => {
    expect(parse([])).to.deep.equal([]);
  });

  it('reads the invoices of events, and the organisation', () => {
    const [updated, other] = parse([event({}), event({ eventCategory: 'CREDITNOTE', tenantId: 'another' })]);
    const { provider_event_id, ...rest } = updated!;
    expect(provider_event_id).to.match(/^[0-9a-f]{64}$/);
    expect(rest).to.deep.equal({
      event_type: 'INVOICE.UPDATE',
      provider_account_id: 'c2cc9b6e-9458-4c7d-93cc-f02b81b0594f',
      occurred_at: '2026-06-21T01:15:39.902Z',
      subjects: [{ kind: 'invoice', provider_entity_id: '717f2bfc-c6d4-41fd-b238-3f2f0c0cf777' }],
    });
    expect(other).to.deep.include({ provider_account_id: 'another', subjects: [] });
  });

  it('has one id per event, also in a repeated delivery', () => {
    const others = [{ eventDateUtc: '2026-06-21T01:15:39.903' }, { eventType: 'CREATE' }, { resourceId: 'b' }];
    const listIds = () => parse([event({}), ...others.map(event)]).map(({ provider_event_id }) => provider_event_id);
    expect(new Set(listIds()).size).to.equal(4);
    expect(listIds()).to.deep.equal(listIds());
  });

  for (const body of ['', '{', '{}', '[]', 'null', '{"events":[{}]}', '{"events":{}}'])
    it(`refuses ${body || 'an empty body'}`, () => {
      expect(() => parseWebhook!({ headers: {}, body: Buffer.from(body) }))
        .to.throw()
        .with.property('code', 'validation_error');
    });
});
