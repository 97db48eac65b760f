import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import { IdentityHasher } from '../../core/metering/event/identity.ts';
import { EventReader, type ReadEvent } from '../../pipeline/steps/read-events.ts';
import { anyText } from '../support/any-text.ts';

const SCOPE = { tenant_id: 'acme', environment_id: 'live' };
const RECEIVED_US = 1_790_000_000_000_000;

describe('reading events', () => {
  it('finds in the bytes what JSON.parse makes of them, whatever was sent', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { minLength: 1, maxLength: 30 }), (sent) => {
        const { events, dead_letters: dead } = read(sent.map(({ text }) => text));
        expect(dead).to.deep.equal([]);
        for (const [index, event] of events.entries())
          expect(seen(event)).to.deep.equal(wanted(index, sent[index]!.text));
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the others in their columns when one cannot be read', () => {
    const good = (id: string) => `{"event_id":"${id}","event_name":"call","external_customer_id":"c-${id}"}`;
    const bad = [
      '{"event_id":"x"}',
      '{"event_name":3}',
      '7',
      good('y').replace('"call"', '" "'),
      '{"event_id":"z","event_name":"a"}',
    ];
    const { events, dead_letters: dead } = read([good('a'), bad[0]!, bad[1]!, good('b'), ...bad.slice(2), good('c')]);
    expect(
      events.map(({ event_id, external_customer_id, position }) => [event_id, external_customer_id, position]),
    ).to.deep.equal([
      ['a', 'c-a', 0],
      ['b', 'c-b', 3],
      ['c', 'c-c', 7],
    ]);
    expect(dead.map(({ position, reason }) => [position, reason])).to.deep.equal([
      [1, 'event_name: is required'],
      [2, 'event_name: must be a string'],
      [4, 'event: must be a JSON object'],
      [5, 'event_name: is required'],
      [6, 'external_customer_id: is required'],
    ]);
  });

  const sound = { event_id: 'e', event_name: 'n', external_customer_id: 'c', customer_id: 'i', source: 's' };
  for (const field of Object.keys(sound))
    it(`takes no ${field} that POST /events would refuse`, () => {
      const texts = ['cut \ud83d', '\udfff', 'a\0', 'x'.repeat(1025), `${'é'.repeat(1024)}\n`];
      const good = ['\ud83d\ude00', 'x'.repeat(1024), 'é'.repeat(1024), `${'\t'.repeat(1023)}.`];
      const { events, dead_letters: dead } = read(
        [...texts, ...good].map((text) => JSON.stringify({ ...sound, [field]: text })),
      );
      expect(events).to.have.length(good.length);
      expect(dead.map(({ reason }) => reason)).to.deep.equal(
        [
          'must be well-formed Unicode',
          'must be well-formed Unicode',
          'must not hold a NUL',
          'must not be longer than 1024 characters',
          'must not be longer than 1024 characters',
        ].map((why) => `${field}: ${why}`),
      );
    });

  it('a null behind a value takes it back, and a second properties the place of the first', () => {
    const [event] = read([
      '{"event_id":"a","event_name":"n","external_customer_id":"c","customer_id":"gone","customer_id":null,"source":"s","source":null,"properties":{"x":1,"y":2},"properties":{"z":3}}',
    ]).events;
    expect(event!.customer_id).to.equal('');
    expect(event!.source).to.equal('');
    expect(event!.properties.keys()).to.deep.equal(['z']);
    expect(event!.content_crc).to.equal(crc32('n\0c\0\0\0\0{"z":3}'));
  });
});

describe('the hash of what an event says', () => {
  const plain = '{"event_id":"a","event_name":"call","external_customer_id":"c","source":"s","properties":{"n":1}}';
  const foreign = plain.replace('"c"', '"Zoë 7"');
  const hashOf = (text: string, ...others: string[]) => read([text, ...others]).events[0]!.content_hash;

  it('is the same for ever: it is stored', () => {
    expect(hashOf(plain)).to.equal(2_006_277_638);
    expect(hashOf(foreign)).to.equal(3_171_423_619);
  });

  it('is the same whatever comes along with it and however its signs are written', () => {
    expect(hashOf(plain, foreign)).to.equal(hashOf(plain));
    expect(hashOf(plain.replace('"s"', '"\\u0073"'))).to.equal(hashOf(plain));
    expect(hashOf(escaped(foreign))).to.equal(hashOf(foreign));
  });

  it('is another for anything that differs, and for a border between two fields', () => {
    const others = [
      plain.replace('call', 'calls'),
      plain.replace('"c"', '"d"'),
      plain.replace('"s"', '""'),
      plain.replace('1}', '1.0}'),
      plain.replace('1}', '2}'),
      plain.replace('"source":"s"', '"customer_id":"s"'),
      plain.replace('"properties"', '"timestamp":"2026-01-31T10:00:00Z","properties"'),
    ];
    expect(new Set([plain, ...others].map((text) => hashOf(text))).size).to.equal(others.length + 1);
  });
});

const someText = fc
  .oneof(fc.string({ minLength: 1, maxLength: 12 }), anyText({ minLength: 1, maxLength: 8 }))
  .map((text) => text.replaceAll('\0', ''));
const named = someText.filter((text) => text.trim() !== '' && Buffer.from(text).toString() === text);
const anyEvent = fc
  .record(
    {
      event_name: named,
      external_customer_id: named,
      event_id: named,
      customer_id: fc.oneof(someText, fc.constant(null)),
      source: fc.oneof(someText, fc.constant('gateway'), fc.constant(null)),
      timestamp: fc.constantFrom('2026-01-31T10:00:00Z', '1969-12-31T23:59:59.999999Z', null),
      properties: fc.oneof(fc.dictionary(someText, fc.jsonValue()), fc.constant(null)),
    },
    { requiredKeys: ['event_name', 'external_customer_id', 'event_id'] },
  )
  .chain((event) =>
    fc.constantFrom(JSON.stringify(event), JSON.stringify(event, null, 1), escaped(JSON.stringify(event))),
  )
  .map((text) => ({ text }));

/** The same JSON in nothing but ASCII. */
function escaped(text: string): string {
  return text.replace(/[\u007f-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function read(texts: readonly string[]) {
  const body = Buffer.from(`[${texts.join(',')}]`);
  const record = {
    partition: 0,
    kind: 'events',
    received_at_us: RECEIVED_US,
    generated_ids: null,
    offset: 7n,
  } as const;
  // Fewer than there are: the columns grow.
  return new EventReader().read([{ ...SCOPE, ...record, event_count: 1, body }]);
}

function seen(event: ReadEvent) {
  const { event_id, event_name, external_customer_id, customer_id, source, timestamp_us, position } = event;
  const { id_high, id_low, content_crc, properties_json } = event;
  const given = { event_id, event_name, external_customer_id, customer_id, source, timestamp_us, position };
  return {
    ...given,
    id_high,
    id_low,
    content_crc,
    properties: JSON.parse(properties_json),
    text: JSON.parse(event.text()),
  };
}

function wanted(position: number, text: string) {
  const event = JSON.parse(text);
  const hasher = new IdentityHasher(SCOPE);
  hasher.hash(event.event_id);
  const timestamp_us = event.timestamp ? instants[event.timestamp as keyof typeof instants] : RECEIVED_US;
  const head = [event.event_name.trim(), event.external_customer_id, event.customer_id ?? '', event.source ?? ''];
  const written = propertiesText(text);
  return {
    event_id: event.event_id,
    event_name: event.event_name.trim(),
    external_customer_id: event.external_customer_id,
    customer_id: event.customer_id ?? '',
    source: event.source ?? '',
    timestamp_us,
    position,
    id_high: hasher.high,
    id_low: hasher.low,
    content_crc: crc32(`${[...head, event.timestamp ? timestamp_us : ''].join('\0')}\0${written}`),
    properties: event.properties ?? {},
    text: event,
  };
}

const instants = { '2026-01-31T10:00:00Z': 1_769_853_600_000_000, '1969-12-31T23:59:59.999999Z': -1 };

/** The member stands last in what is sent, if it is there. */
function propertiesText(text: string): string {
  const { properties } = JSON.parse(text);
  if (properties === undefined || properties === null) return '{}';
  const key = text.lastIndexOf('"properties"', text.length - JSON.stringify(properties).length);
  return text.slice(text.indexOf('{', key), text.lastIndexOf('}', text.lastIndexOf('}') - 1) + 1);
}
