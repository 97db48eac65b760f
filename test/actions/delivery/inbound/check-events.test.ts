/** Limits of the events in one webhook. */
import { expect } from 'chai';
import { checkEvents } from '../../../../actions/delivery/inbound/check-events.ts';
import type { InboundEvent } from '../../../../integrations/account.ts';

const EVENT: InboundEvent = {
  ...{ provider_event_id: 'evt_1', event_type: 'invoice.paid', provider_account_id: null, occurred_at: null },
  subjects: [{ kind: 'invoice', provider_entity_id: 'in_1' }],
};
const repeat = <One>(one: One, count: number) => Array.from({ length: count }, () => one);
const withSubjects = (count: number): InboundEvent => ({ ...EVENT, subjects: repeat(EVENT.subjects[0]!, count) });

describe('actions/check-events', () => {
  it('accepts a thousand events, and ids of 255 characters', () => {
    expect(() => checkEvents(repeat(withSubjects(5), 1_000))).not.to.throw();
    expect(() => checkEvents([{ ...EVENT, provider_event_id: 'x'.repeat(255) }])).not.to.throw();
  });

  const refused: [name: string, events: readonly InboundEvent[], message: string][] = [
    ['more events', repeat(EVENT, 1_001), '1001 events'],
    ['more records', repeat(withSubjects(2_501), 2), '5002 records'],
    ['a longer id', [{ ...EVENT, provider_event_id: 'x'.repeat(256) }], '255 characters'],
    ['a longer name', [{ ...EVENT, event_type: 'x'.repeat(256) }], '255 characters'],
    [
      'a record with a longer id',
      [{ ...EVENT, subjects: [{ kind: 'invoice', provider_entity_id: 'x'.repeat(256) }] }],
      '255 characters',
    ],
  ];
  for (const [name, events, message] of refused)
    it(`refuses ${name}`, () => expect(() => checkEvents(events)).to.throw(message));
});
