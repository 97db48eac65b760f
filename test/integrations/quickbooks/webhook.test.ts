/** Webhooks of QuickBooks: the signature, and the events of both forms of body. */
import { expect } from 'chai';
import { quickbooks } from '../../../integrations/quickbooks/provider.ts';
import { signIntuitBody } from '../../support/providers/quickbooks-fake.ts';

const { verifyWebhook, parseWebhook } = quickbooks.account!;

const cloudEvent = (more: object) => ({
  specversion: '1.0',
  id: '88cd52aa-33b6-4351-9aa4-47572edbd068',
  source: 'intuit.dsnBgbseACLLRZNxo2dfc4evmEJdxde58xeeYcZliOU=',
  datacontenttype: 'application/json',
  time: '2026-09-10T21:31:25.179Z',
  intuitentityid: '1234',
  intuitaccountid: '310687',
  type: 'qbo.invoice.updated.v1',
  data: {},
  ...more,
});

describe('integrations/quickbooks/webhook', () => {
  const verify = (body: string, signature: string | undefined, secrets = ['verifier']) =>
    verifyWebhook!(secrets, {
      headers: { 'intuit-signature': signature },
      body: Buffer.from(body),
      now: new Date('2026-09-10T21:31:26Z'),
    });
  const parse = (body: unknown) => parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify(body)) });

  it('accepts the signature of the verifier token', () => {
    expect(() => verify('[]', signIntuitBody('[]', 'verifier'))).not.to.throw();
  });

  it('refuses every other one with the same words', () => {
    const right = signIntuitBody('[]', 'verifier');
    const forged: [string, string | undefined, string[]?][] = [
      ['[]', undefined],
      ['[]', ''],
      ['[]', 'x'],
      ['[ ]', right],
      ['[]', signIntuitBody('[]', 'another')],
      ['[]', `${right}AA`],
      ['[]', Buffer.from(right, 'base64').toString('hex')],
      ['[]', right, []],
    ];
    for (const [body, signature, secrets] of forged)
      expect(() => verify(body, signature, secrets))
        .to.throw('the signature is not valid')
        .with.property('http_status_code', 401);
  });

  it('reads CloudEvents of several companies', () => {
    const events = parse([
      cloudEvent({}),
      cloudEvent({ id: 'second', type: 'qbo.payment.created.v1', intuitaccountid: '999', intuitentityid: '7' }),
      cloudEvent({ id: 'third', type: 'qbo.vendor.deleted.v1' }),
    ]);
    expect(events).to.deep.equal([
      {
        provider_event_id: '88cd52aa-33b6-4351-9aa4-47572edbd068',
        event_type: 'qbo.invoice.updated.v1',
        provider_account_id: '310687',
        occurred_at: '2026-09-10T21:31:25.179Z',
        subjects: [{ kind: 'invoice', provider_entity_id: '1234' }],
      },
      {
        provider_event_id: 'second',
        event_type: 'qbo.payment.created.v1',
        provider_account_id: '999',
        occurred_at: '2026-09-10T21:31:25.179Z',
        subjects: [{ kind: 'payment', provider_entity_id: '7' }],
      },
      {
        provider_event_id: 'third',
        event_type: 'qbo.vendor.deleted.v1',
        provider_account_id: '310687',
        occurred_at: '2026-09-10T21:31:25.179Z',
        subjects: [],
      },
    ]);
  });

  it('reads the older form, and a repeated delivery has the same ids', () => {
    const entity = { name: 'Payment', id: '145', operation: 'Update', lastUpdated: '2026-09-10T21:31:25-0700' };
    const company = (realmId: string, entities: object[]) => ({ realmId, dataChangeEvent: { entities } });
    const body = {
      eventNotifications: [
        company('1', [entity, { ...entity, name: 'Customer', operation: 'Merge' }]),
        company('2', [entity]),
      ],
    };
    const events = parse(body);
    expect(
      events.map(({ provider_account_id, event_type, subjects }) => [provider_account_id, event_type, subjects]),
    ).to.deep.equal([
      ['1', 'Payment.Update', [{ kind: 'payment', provider_entity_id: '145' }]],
      ['1', 'Customer.Merge', []],
      ['2', 'Payment.Update', [{ kind: 'payment', provider_entity_id: '145' }]],
    ]);
    expect(new Set(events.map(({ provider_event_id }) => provider_event_id)).size).to.equal(3);
    expect(parse(body)).to.deep.equal(events);
  });

  for (const body of [
    '',
    '{',
    '{}',
    '[{}]',
    'null',
    '"text"',
    '{"eventNotifications":[{}]}',
    '[{"id":"1","type":"qbo.invoice.updated.v1"}]',
  ])
    it(`refuses ${body || 'an empty body'}`, () => {
      const webhook = { headers: {}, body: Buffer.from(body) };
      expect(() => parseWebhook!(webhook))
        .to.throw()
        .with.property('code', 'validation_error');
    });
});
