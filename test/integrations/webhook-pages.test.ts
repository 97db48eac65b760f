/** docs/integrations: the events that the page of a provider names are those that this service uses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { listCapable } from '../../integrations/find-capability.ts';

/** A webhook with one event of this name, which has every record that such an event may have. */
const BODIES: Readonly<Record<string, (event: string) => object>> = {
  stripe(type) {
    const references = { invoice: 'in_1', payment_intent: 'pi_1', setup_intent: 'seti_1', charge: 'ch_1' };
    return { id: 'evt_1', type, created: 1_700_000_000, data: { object: { id: 'x_1', object: 'x', ...references } } };
  },
  razorpay(event) {
    const ids = { payment: 'pay_1', invoice: 'inv_1', payment_link: 'plink_1', refund: 'rfnd_1', dispute: 'disp_1' };
    const payload = Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, { entity: { id } }]));
    return { entity: 'event', event, payload };
  },
  quickbooks(type) {
    return [{ id: '1', type, intuitentityid: '7', intuitaccountid: '9' }];
  },
};
/** QuickBooks offers operations per record, and its page names both in a sentence. */
const NAMED: Readonly<Record<string, (section: string) => string[]>> = {
  stripe: listNamed,
  razorpay: listNamed,
  quickbooks(section) {
    const [, operations = '', records = ''] =
      /events ([\w, ]+) of ([\w ]+)\./.exec(section.replaceAll('\n', ' ')) ?? [];
    return records
      .split(' and ')
      .flatMap((record) =>
        operations.split(/, | and /).map((one) => `qbo.${record}.${one.replace(/e?$/, 'ed')}.v1`.toLowerCase()),
      );
  },
};
/** Events that exist and are not used. */
const UNUSED: Readonly<Record<string, readonly string[]>> = {
  stripe: [
    'invoice.created',
    'invoice.finalized',
    'charge.succeeded',
    'customer.updated',
    'customer.subscription.updated',
  ],
  razorpay: ['token.confirmed', 'settlement.processed', 'subscription.activated', 'virtual_account.credited'],
  quickbooks: ['qbo.customer.updated.v1', 'qbo.creditmemo.created.v1', 'qbo.account.updated.v1'],
};

describe('docs/integrations: webhooks', () => {
  for (const [name, { parseWebhook }] of Object.entries(listCapable('account'))) {
    const page = readFileSync(join(import.meta.dirname, `../../docs/integrations/${name}.md`), 'utf8');
    const section = page.split(/^## /m).find((part) => part.startsWith('Webhooks'))!;
    const parse = (event: string) =>
      parseWebhook!({ headers: {}, body: Buffer.from(JSON.stringify(BODIES[name]!(event))) })[0]!;

    it(`${name}: each event that is named has an effect`, () => {
      const named = NAMED[name]!(section);
      expect(named).to.have.length.above(5);
      for (const event of named) expect(parse(event).subjects, event).to.not.deep.equal([]);
    });

    it(`${name}: others have none, and are not named`, () => {
      for (const event of UNUSED[name]!) {
        expect(parse(event).subjects, event).to.deep.equal([]);
        expect(section).to.not.include(`\`${event}\``);
      }
    });
  }
});

/** In the first column of the table. A name that begins with a dot has the record of the name before it, and `*` is any word. */
function listNamed(section: string): string[] {
  const cells = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => {
    let record = '';
    return [...cell.matchAll(/`([\w.*]+)`/g)].map(([, text = '']) => {
      const event = text.startsWith('.') ? `${record}${text}` : text.replace('*', 'created');
      record = event.slice(0, event.lastIndexOf('.'));
      return event;
    });
  });
}
