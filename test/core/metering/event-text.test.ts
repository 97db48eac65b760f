import { expect } from 'chai';
import fc from 'fast-check';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import {
  elementSpans,
  elementSpansUnder,
  NO_PROPERTIES,
  type Property,
  properties,
  readEvent,
} from '../../../core/metering/event-text.ts';
import { anyText } from '../../support/any-text.ts';
import { measureCpuMs } from '../../support/cpu-time.ts';
import { samples } from '../../support/samples.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

describe('event text: an event where it stands in the text of the producer', () => {
  it('finds each of very many properties, of two equal keys the last, and long texts with escapes', () => {
    const members = Array.from({ length: 20_000 }, (_, index) => `"k${index}":${index}`);
    const long = `"t\\u0065xt":"${'\\n'.repeat(1_000)}"`;
    const found = properties(`{${members.join(',')},"k7":"last",${long}}`);
    const values: unknown[] = [];
    const took_ms = measureCpuMs(() => members.forEach((_, index) => values.push(found.get(`k${index}`))));
    // It takes some milliseconds. A walk over all keys for each would take seconds.
    expect(took_ms).to.be.lessThan(1_000);
    const expected = members.map((_, index) => ({ kind: 'number', text: String(index) }));
    expect(values).to.deep.equal(expected.with(7, { kind: 'string', text: 'last' }));
    expect(found.get('none')).to.equal(undefined);
    for (let time = 0; time < 2; time++)
      expect(found.get('text')).to.deep.equal({ kind: 'string', text: '\n'.repeat(1_000) });
  });

  it('reads the fields, trims the name and leaves ids as they are', () => {
    const text =
      ' { "event_name" : " api.call\\n" , "event_id":" e1", "external_customer_id":"acme","customer_id":null,' +
      '"timestamp":"2026-01-01T00:00:00Z","source":"gw","other":{"event_id":"no"},"properties":{"v":1e3} } ';
    const event = readEvent(text);
    expect(event).to.include({
      event_id: ' e1',
      event_name: 'api.call',
      external_customer_id: 'acme',
      customer_id: undefined,
      timestamp: '2026-01-01T00:00:00Z',
      source: 'gw',
    });
    expect(event.properties?.get('v')).to.deep.equal({ kind: 'number', text: '1e3' });
    expect(event.properties?.json()).to.equal('{"v":1e3}');
    expect(text.slice(0, event.end)).to.equal(text.trimEnd());
  });

  it('keeps the exact text of numbers', () => {
    for (const number of ['9007199254740993.25', '0.1000', '1E400', '-0', '123456789012345678901234567890']) {
      expect(properties(`{"v": ${number} }`).get('v')).to.deep.equal({ kind: 'number', text: number });
    }
  });

  it('takes the last of two equal keys, also when one of them is written with escapes', () => {
    const text = '{"event_name":"a","event\\u005fname":"b","properties":{"v":1,"\\u0076":2,"w":3,"w":null}}';
    const event = readEvent(text);
    expect(event.event_name).to.equal('b');
    expect(event.properties?.get('v')?.text).to.equal('2');
    expect(event.properties?.get('w')?.kind).to.equal('null');
  });

  it('knows only what was sent: nothing is inherited, and a key with a dot is a key', () => {
    const sent = properties('{"a":{"b":1},"a.b":2,"__proto__":3,"":4}');
    expect(sent.get('a.b')?.text).to.equal('2');
    expect(sent.get('__proto__')?.text).to.equal('3');
    expect(sent.get('')?.text).to.equal('4');
    for (const key of ['constructor', 'toString', 'hasOwnProperty', 'b']) expect(sent.get(key)).to.equal(undefined);
    expect(NO_PROPERTIES.get('a')).to.equal(undefined);
  });

  it('blank ids are absent: the server makes one', () => {
    const event = readEvent('{"event_name":"a","event_id":"  ","external_customer_id":""}');
    expect(event.event_id).to.equal(undefined);
    expect(event.external_customer_id).to.equal(undefined);
  });

  for (const [text, field] of [
    ['{"event_name":5}', 'event_name: must be a string'],
    ['{"event_name":"a","event_id":{}}', 'event_id: must be a string'],
    ['{"event_name":"a","timestamp":1767225600}', 'timestamp: must be a string'],
    ['{"event_name":"a","properties":[]}', 'properties: must be an object'],
    ['{"event_name":"a","properties":"{}"}', 'properties: must be an object'],
    ['{"event_name":"  "}', 'event_name: is required'],
    ['{"event_name":"a","event_name":null}', 'event_name: is required'],
    ['{}', 'event_name: is required'],
    ['[]', 'event: must be a JSON object'],
    ['null', 'event: must be a JSON object'],
  ] as const) {
    it(`refuses ${text}: ${field}`, () => expect(() => readEvent(text)).to.throw(field));
  }

  it('ends on text that is not JSON, instead of walking for ever', () => {
    for (const text of ['{"a', '{"a"', '{"a":', '{"a":[', '[}', '[,', '{"a":"\\', '[1 2]', '{"a":}']) {
      expect(() => readEvent(text), text).to.throw();
      expect(() => elementSpans(`[${text}`), text).to.throw();
    }
  });

  it('finds in any object what JSON.parse finds', () => {
    fc.assert(
      fc.property(fc.dictionary(anyText(), fc.jsonValue()), noise(), (object, spacing) => {
        const text = written(object as Json, spacing);
        const parsed = parseJson(text) as Record<string, Json>;
        const read = properties(text);
        expect(new Set(read.keys())).to.deep.equal(new Set(Object.keys(parsed)));
        for (const key of Object.keys(parsed)) expect(valueOf(read.get(key))).to.deep.equal(parsed[key]);
        for (const key of ['missing', 'constructor']) {
          if (!Object.hasOwn(parsed, key)) expect(read.get(key)).to.equal(undefined);
        }
      }),
      { numRuns: samples(500) },
    );
  });

  it('reads any event as JSON.parse does, at its place in an array', () => {
    const event = fc.record(
      {
        event_id: anyText({ minLength: 1 }).filter((id) => id.trim() !== ''),
        event_name: anyText().filter((name) => name.trim() !== ''),
        source: fc.string(),
        properties: fc.dictionary(fc.string(), fc.jsonValue()),
        anything: fc.jsonValue(),
      },
      { requiredKeys: ['event_name'] },
    );
    fc.assert(
      fc.property(fc.array(event), noise(), (events, spacing) => {
        const text = written(events as Json, spacing);
        const spans = elementSpans(text);
        expect(spans.length).to.equal(events.length);
        for (const [index, span] of spans.entries()) {
          const parsed = parseJson(text.slice(span.start, span.end)) as (typeof events)[number];
          expect(JSON.stringify(parsed)).to.equal(JSON.stringify(events[index]));
          const read = readEvent(text, span.start, span.end);
          expect(read.event_name).to.equal(parsed.event_name.trim());
          expect(read.event_id).to.equal(parsed.event_id);
          expect(read.source).to.equal(parsed.source);
          expect(read.end).to.equal(span.end);
          expect(read.properties && parseJson(read.properties.json())).to.deep.equal(parsed.properties);
        }
      }),
      { numRuns: samples(300) },
    );
  });

  it('finds the array under a key of a body, in bytes when the body is decoded as latin1', () => {
    const body = Buffer.from('{"x":[1], "events" : [ {"n":"é𝄞"}, {"n":"\\"]"} ] }', 'utf8');
    const spans = elementSpansUnder(body.toString('latin1'), 'events');
    expect(spans.map(({ start, end }) => JSON.parse(body.subarray(start, end).toString('utf8')))).to.deep.equal([
      { n: 'é𝄞' },
      { n: '"]' },
    ]);
    expect(() => elementSpansUnder('{"events":{}}', 'events')).to.throw('events: must be an array');
    expect(() => elementSpansUnder('{}', 'events')).to.throw('events: is required');
    expect(elementSpans(' [ ] ')).to.deep.equal([]);
  });

  it('keeps the members of many objects apart, also of one with very many', () => {
    const sources = [3, 20_000, 3, 70, 16_000, 300].map((count) => {
      const members = Array.from({ length: count }, (_, index) => [`k${index}`, index * count]);
      return { count, found: properties(JSON.stringify(Object.fromEntries(members))) };
    });
    for (const { count, found } of sources) {
      expect(found.keys()).to.have.length(count);
      expect(found.get(`k${count - 1}`)).to.deep.equal({ kind: 'number', text: String((count - 1) * count) });
      expect(found.get('k0')?.text).to.equal('0');
    }
  });

  it('walks any depth of nesting', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(properties(`{"a":${deep},"b":1}`).get('b')?.text).to.equal('1');
  });
});

function valueOf(property: Property | undefined): Json | undefined {
  if (property === undefined) return undefined;
  return property.kind === 'string' ? property.text : (parseJson(property.text) as Json);
}

/** Numbers that decide where blanks stand and which characters are written as escapes. */
function noise(): fc.Arbitrary<() => number> {
  return fc.array(fc.nat(255), { minLength: 1, maxLength: 50 }).map((numbers) => {
    let at = 0;
    return () => numbers[at++ % numbers.length]!;
  });
}

/** JSON text as a producer with other habits than JSON.stringify would write it. */
function written(value: Json, next: () => number): string {
  const blank = () => ['', '', '', ' ', '\n', '\t', ' \r\n'][next() % 7]!;
  const string = (text: string) => {
    let out = '';
    for (let at = 0; at < text.length; at++) {
      const unit = text[at]!;
      const plain = JSON.stringify(unit).slice(1, -1);
      out += next() % 5 === 0 ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}` : plain;
    }
    return `"${out}"`;
  };
  const write = (part: Json): string => {
    if (typeof part === 'string') return blank() + string(part) + blank();
    if (Array.isArray(part)) return `${blank()}[${part.length ? part.map(write).join(',') : blank()}]${blank()}`;
    if (part === null || typeof part !== 'object') return blank() + JSON.stringify(part) + blank();
    const members = Object.entries(part).map(([key, member]) => `${blank()}${string(key)}${blank()}:${write(member)}`);
    return `${blank()}{${members.length ? members.join(',') : blank()}}${blank()}`;
  };
  return write(value);
}
