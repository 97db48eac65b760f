import { expect } from 'chai';
import fc from 'fast-check';
import { checkBodySize, type EventsAt, VALUES_MAX } from '../../../../core/metering/event/body-size.ts';
import { samples } from '../../../support/samples.ts';

const TOO_MANY = `must not hold more than ${VALUES_MAX} values: send smaller requests`;

function refusalOf(text: string, events_at?: EventsAt): string | undefined {
  try {
    checkBodySize(Buffer.from(text), events_at);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const times = (count: number, text: string) => Array(count).fill(text).join(',');

describe('the size of a body of events', () => {
  const rows: [what: string, body: string, at: EventsAt | undefined, refusal: string | undefined][] = [
    ['as many values as there may be', `[${times(VALUES_MAX, '0')}]`, undefined, undefined],
    ['one more', `[${times(VALUES_MAX + 1, '0')}]`, undefined, `body: ${TOO_MANY}`],
    [
      'one event with as many keys as there may be',
      `{"events":[{${times(VALUES_MAX - 2, '"k":1')}}]}`,
      'events',
      undefined,
    ],
    ['one event with one more', `{"events":[{${times(VALUES_MAX - 1, '"k":1')}}]}`, 'events', `body: ${TOO_MANY}`],
    ['signs in texts', `["${'[{,'.repeat(VALUES_MAX)}\\",[{","\\\\"]`, undefined, undefined],
    [
      'too many events',
      `{"events":[${times(VALUES_MAX, '{}')}]}`,
      'events',
      'events: must not hold more than 1000 events',
    ],
    ['too many in a batch', `[${times(VALUES_MAX, '{}')}]`, 'body', 'body: must not hold more than 1000 events'],
    ['too many elsewhere', `{"events":[{"properties":[${times(VALUES_MAX, '0')}]}]}`, 'events', `body: ${TOO_MANY}`],
    ['too many in what is no body of many events', `{"a":[${times(VALUES_MAX, '0')}]}`, undefined, `body: ${TOO_MANY}`],
    [
      'a bulk body of a thousand',
      `{"events":[${times(1000, `{${times(300, '"k":1')}}`)}]}`,
      'events',
      `body: ${TOO_MANY}`,
    ],
    ['a text that does not end', `["${'a'.repeat(VALUES_MAX)}`, undefined, undefined],
    ['brackets that do not fit', `${']'.repeat(VALUES_MAX)}}}}}`, 'events', undefined],
  ];
  for (const [what, body, at, refusal] of rows)
    it(`${refusal === undefined ? 'takes' : 'refuses'} ${what}`, () => expect(refusalOf(body, at)).to.equal(refusal));

  it('says how many events there are', () => {
    const body = Buffer.from(`{"events":[${times(123_456, '{"a":1}')}]}`);
    expect(() => checkBodySize(body, 'events'))
      .to.throw()
      .with.nested.property('details.count', 123_456);
  });

  it('counts what JSON.parse finds: members and elements, and one more for what is empty', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const filled = times(VALUES_MAX - valuesIn(value) - 1, '0');
        const text = JSON.stringify(value);
        expect(refusalOf(`[${text},${filled}]`), text).to.equal(undefined);
        expect(refusalOf(`[${text},0,${filled}]`), text).to.equal(`body: ${TOO_MANY}`);
      }),
      { numRuns: samples(20) },
    );
  });
});

/** What stands inside of it; a value that is empty has one. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  return inner.length === 0 ? 1 : inner.reduce<number>((sum, one) => sum + 1 + valuesIn(one), 0);
}
