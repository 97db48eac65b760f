/**
 * The quick look at a bulk body against the long one (JSON.parse, `faultOfEvent`, spans found in the text): what the quick
 * one accepts the long one accepts, with the same ids and the same bytes of each event. On bodies made at random, bodies of
 * nasty pieces, and both with bytes changed.
 */
import { isUtf8 } from 'node:buffer';
import { expect } from 'chai';
import fc from 'fast-check';
import { findEventFault, findKeyFault, parseBulkEvents } from '../../../../core/metering/event/accept.ts';
import { checkBulk, type EventRules, eventSpan, idSpan } from '../../../../core/metering/event/check-body.ts';
import { canHold } from '../../../../core/metering/event/raw-keys.ts';
import { elementSpansUnder } from '../../../../core/metering/event-text.ts';
import { anyText } from '../../../support/any-text.ts';
import { leastOf, samples } from '../../../support/samples.ts';

const RAW: EventRules = { canHold };

type Accepted = { ids: (string | undefined)[]; events: string[] };

function quick(body: Buffer, rules: EventRules): Accepted | undefined {
  const checked = isUtf8(body) ? checkBulk(body, rules) : undefined;
  if (checked === undefined) return undefined;
  const indexes = Array.from({ length: checked.count }, (_, index) => index);
  return {
    ids: indexes.map((index) => {
      const { start, end } = idSpan(checked, index);
      return end === 0 ? undefined : body.toString('utf8', start, end);
    }),
    events: indexes.map((index) => {
      const { start, end } = eventSpan(checked, index);
      return body.toString('latin1', start, end);
    }),
  };
}

function long(body: Buffer, rules: EventRules): Accepted | undefined {
  try {
    const events = parseBulkEvents(JSON.parse(body.toString('utf8')));
    const spans = elementSpansUnder(body.toString('latin1'), 'events');
    const isGood = (event: unknown, index: number) =>
      rules === 'events'
        ? (findEventFault(event) ?? findKeyFault(body.toString('latin1'), spans[index]!)) === undefined
        : typeof event === 'object' && event !== null && !Array.isArray(event);
    if (!events.every(isGood)) return undefined;
    const characters = body.toString('latin1');
    return {
      ids: events.map((event) => {
        const { event_id } = event as { event_id?: unknown };
        return typeof event_id === 'string' && event_id.trim() !== '' ? event_id : undefined;
      }),
      events: elementSpansUnder(characters, 'events').map(({ start, end }) => characters.slice(start, end)),
    };
  } catch {
    return undefined;
  }
}

/** Whether the quick look accepted; if it did, the long one must agree. */
function agrees(body: Buffer, rules: EventRules = 'events'): boolean {
  const found = quick(body, rules);
  if (found !== undefined) expect(found, body.toString('latin1')).to.deep.equal(long(body, rules));
  return found !== undefined;
}

const GOOD = '"event_name":"call","external_customer_id":"acme"';
const bulk = (...events: string[]) => Buffer.from(`{"events":[${events.join(',')}]}`);

describe('the quick look at a bulk body', () => {
  const accepted: Record<string, string> = {
    'the least that an event must have': `{${GOOD}}`,
    'every field': `{"event_id":"e1",${GOOD},"customer_id":"c","timestamp":"2026-01-31T10:00:00.123Z","source":"s","properties":{"a":[1,{"b":null}]}}`,
    'blanks wherever JSON allows them': ` \t\r\n{ "event_id" : "e1" , ${GOOD} , "properties" : { } }\n`,
    'a null for what may be absent': `{"event_id":null,${GOOD},"customer_id":null,"timestamp":null,"source":null,"properties":null}`,
    'empty texts for what may be absent': `{"event_id":"",${GOOD},"customer_id":"","timestamp":"","source":""}`,
    'properties of any value': `{${GOOD},"properties":{"x":[true,false,null,-0,1e999,0.5E-7,[[]]],"":{"":""}}}`,
    'characters beyond ASCII': `{"event_id":"Größe","event_name":"für alle","external_customer_id":"ü😀","properties":{"é":"日本"}}`,
    'escapes in properties': `{${GOOD},"properties":{"a\\n\\"\\\\\\/\\b\\f\\r\\t":"\\ud800 \\u00e9"}}`,
    'a leap day': `{${GOOD},"timestamp":"2024-02-29T10:00:00Z"}`,
    'an offset': `{${GOOD},"timestamp":"2026-01-31t10:00:00.123456789+05:30"}`,
    'the zero time': `{${GOOD},"timestamp":"0001-01-01T00:00:00Z"}`,
    'a property that is no prototype': `{${GOOD},"properties":{"__proto__":{"event_name":7}}}`,
    'properties twice in properties': `{${GOOD},"properties":{"a":1,"a":2}}`,
  };
  for (const [what, event] of Object.entries(accepted)) {
    it(`takes ${what}`, () => {
      expect(agrees(bulk(event))).to.equal(true);
      expect(agrees(bulk(event, `{"event_id":"first",${GOOD}}`, event))).to.equal(true);
      expect(agrees(bulk(event), RAW)).to.equal(true);
    });
  }

  const left: Record<string, string | Buffer> = {
    'an empty body': '',
    'a byte order mark': `\ufeff{"events":[{${GOOD}}]}`,
    'something behind the body': `{"events":[{${GOOD}}]}x`,
    'a NUL behind the body': `{"events":[{${GOOD}}]}\0`,
    'a blank that JSON does not know': `{"events":\u00a0[{${GOOD}}]}`,
    'a form feed between values': `{"events":[\f{${GOOD}}]}`,
    'a key that no event has': bulk(`{${GOOD},"timestmap":"2026-01-31T10:00:00Z"}`),
    'a key of an event twice': bulk(`{${GOOD},"event_name":"other"}`),
    'a key of an event twice, once with an escape': bulk(`{${GOOD},"\\u0065vent_name":"other"}`),
    'a second key of the body': `{"events":[{${GOOD}}],"x":1}`,
    'the array twice': `{"events":[{${GOOD}}],"events":[]}`,
    'an escaped key of the body': `{"\\u0065vents":[{${GOOD}}]}`,
    'no event': '{"events":[]}',
    'no array': `{"events":{"0":{${GOOD}}}}`,
    'more events than allowed': `{"events":[${Array(1001).fill(`{${GOOD}}`).join(',')}]}`,
    'a trailing comma in the array': `{"events":[{${GOOD}},]}`,
    'a trailing comma in an event': `{"events":[{${GOOD},}]}`,
    'an array that does not end': `{"events":[{${GOOD}}`,
    'a string that does not end': `{"events":[{${GOOD},"x":"`,
    'a body that is cut in an escape': `{"events":[{${GOOD},"x":"\\u00`,
    'a body that is cut in a number': `{"events":[{${GOOD},"x":-`,
    'a body that is cut in a word': `{"events":[{${GOOD},"x":tru`,
    'bytes that are not UTF-8': Buffer.concat([
      Buffer.from(`{"events":[{${GOOD},"x":"`),
      Buffer.from([0xff]),
      Buffer.from('"}]}'),
    ]),
    ...Object.fromEntries(
      [
        '1',
        'null',
        '"text"',
        '[]',
        '{}',
        `{"event_name":"call"}`,
        `{"event_name":"","external_customer_id":"acme"}`,
        `{"event_name":" \t","external_customer_id":"acme"}`,
        `{"event_name":"\u00a0\u3000","external_customer_id":"acme"}`,
        `{"event_name":null,"external_customer_id":"acme"}`,
        `{"event_name":"call","external_customer_id":7}`,
        `{${GOOD},"event_name":"other"}`,
        `{${GOOD},"event_id":"a","event_id":"b"}`,
        `{${GOOD},"event_id":"a","\\u0065vent_id":"b"}`,
        `{${GOOD},"event_id":"\\ud800"}`,
        `{${GOOD},"event_id":"a\\u0000"}`,
        `{${GOOD},"source":"\\u0000"}`,
        `{${GOOD},"event_id":7}`,
        `{${GOOD},"event_id":"resv_1"}`,
        `{${GOOD},"event_id":"\\u0072esv_1:2"}`,
        `{${GOOD},"event_id":"${'x'.repeat(1025)}"}`,
        `{${GOOD},"source":{}}`,
        `{${GOOD},"properties":[]}`,
        `{${GOOD},"properties":"{}"}`,
        `{${GOOD},"timestamp":7}`,
        `{${GOOD},"timestamp":"yesterday"}`,
        `{${GOOD},"timestamp":"2026-02-29T10:00:00Z"}`,
        `{${GOOD},"timestamp":"2026-04-31T10:00:00Z"}`,
        `{${GOOD},"timestamp":"2026-13-01T10:00:00Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T24:00:00Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T10:60:00Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T10:00:60Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T10:00:00.Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T10:00:00.1234567890Z"}`,
        `{${GOOD},"timestamp":"2026-01-31T10:00:00"}`,
        `{${GOOD},"timestamp":"1899-12-31T23:59:59Z"}`,
        `{${GOOD},"timestamp":"2255-01-01T00:00:00Z"}`,
        `{${GOOD},"timestamp":"2254-12-31T23:59:59.999999Z"}`,
        ...[
          '01',
          '1.',
          '.5',
          '+1',
          '-',
          '1e',
          '1e+',
          '0x10',
          'NaN',
          'Infinity',
          'nul',
          'True',
          "'a'",
          '"\t"',
          '"\\x"',
          '"\\u00g0"',
          '"\u0000"',
          '[1,]',
          '[,1]',
          '{"a"}',
          '{"a":}',
          '{a:1}',
          '{"a":1,}',
          '[1 2]',
          '',
          '\\n',
        ].map((value) => `{${GOOD},"x":${value}}`),
        `{${GOOD},"x":${'['.repeat(65)}${']'.repeat(65)}}`,
      ].map((event) => [event.length > 80 ? `${event.slice(0, 80)}…` : event, `{"events":[${event}]}`]),
    ),
  };
  for (const [what, body] of Object.entries(left)) {
    it(`leaves to the long way: ${JSON.stringify(what)}`, () => {
      expect(quick(Buffer.from(body as string), 'events')).to.equal(undefined);
      // The same behind good events of which the walk has learnt what they look like.
      const behind = Buffer.from(
        body.toString('latin1').replace('"events":[', `"events":[{${GOOD}},{${GOOD}},`),
        'latin1',
      );
      agrees(behind);
      agrees(behind, RAW);
    });
  }

  it('takes events that are as deep as it follows, and any number of them up to the greatest', () => {
    expect(agrees(bulk(`{${GOOD},"properties":{"x":${'['.repeat(63)}${']'.repeat(63)}}}`))).to.equal(true);
    expect(agrees(bulk(...Array<string>(1000).fill(`{${GOOD}}`)))).to.equal(true);
  });

  it('reads no field of raw events but the id', () => {
    expect(agrees(bulk('{}', '{"event_id":"e","timestamp":7,"properties":[]}', '{"event_name":null}'), RAW)).to.equal(
      true,
    );
    expect(quick(bulk('{"event_id":7}'), RAW)).to.equal(undefined);
    expect(quick(bulk('{"event_id":"resv_1"}'), RAW)).to.equal(undefined);
    expect(quick(bulk('[]'), RAW)).to.equal(undefined);
  });

  it('leaves a raw event with a key that may be one of ours misspelt to the long way', () => {
    expect(agrees(bulk(`{${GOOD},"time":1,"customer_ip":"::1"}`, `{${GOOD},"other":{"timestmp":1}}`), RAW)).to.equal(
      true,
    );
    expect(quick(bulk(`{${GOOD}}`, `{${GOOD},"timestmp":1}`), RAW)).to.equal(undefined);
  });

  it('agrees with the long way about bodies made at random', () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.array(anyEvent, { minLength: 1, maxLength: 4 }), blanks, fc.boolean(), (events, blank, raw) => {
        const body = Buffer.from(`${blank}{${blank}"events"${blank}:[${events.join(`${blank},`)}]${blank}}${blank}`);
        if (agrees(body, raw ? RAW : 'events')) taken++;
      }),
      { numRuns: samples(3_000) },
    );
    expect(taken, 'and most of them are good').to.be.above(leastOf(500));
  });

  it('agrees with the long way about bodies with some bytes changed', () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom('set', 'drop', 'add', 'double'), nastyByte);
    const numRuns = samples(8_000);
    let taken = 0;
    fc.assert(
      fc.property(
        fc.array(anyEvent, { minLength: 1, maxLength: 4 }),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        (events, changes) => {
          // Twice, so that the second has the shape of the first.
          let bytes = [...bulk(...events.flatMap((event) => [event, event]))];
          for (const [where, how, byte] of changes) {
            const at = where % bytes.length;
            if (how === 'set') bytes[at] = byte;
            else if (how === 'drop') bytes.splice(at, 1);
            else if (how === 'add') bytes.splice(at, 0, byte);
            else bytes = [...bytes.slice(0, at), ...bytes.slice(Math.max(0, at - 20))];
          }
          if (agrees(Buffer.from(bytes))) taken++;
          agrees(Buffer.from(bytes), RAW);
        },
      ),
      { numRuns },
    );
    // One in two hundred of them is.
    if (numRuns >= 2_000) expect(taken, 'and some of them are still good').to.be.above(0);
  });

  it('agrees with the long way about events of one shape with any values', () => {
    let taken = 0;
    const keys = fc.uniqueArray(fc.constantFrom(...KEYS, 'other', 'x'), { minLength: 1, maxLength: 6 });
    const values = fc.array(
      fc.array(fc.oneof({ weight: 6, arbitrary: text }, timestamp, value), { minLength: 8, maxLength: 8 }),
      { minLength: 2, maxLength: 5 },
    );
    fc.assert(
      fc.property(keys, values, blanks, fc.boolean(), (names, rows, blank, raw) => {
        const events = rows.map(
          (row) =>
            `{${GOOD},${names.map((name, at) => `"${name}":${blank}${row[at]}`).join(',')},"properties":{"a":${row[6]},"b":[1,{"c":${row[7]}${blank}}]}}`,
        );
        if (agrees(bulk(...events), raw ? RAW : 'events')) taken++;
      }),
      { numRuns: samples(4_000) },
    );
    expect(taken, 'and many of them are good').to.be.above(leastOf(200));
  });
});

const KEYS = ['event_id', 'customer_id', 'source', 'timestamp', 'properties', 'event_name'];
const blanks = fc.constantFrom('', '', '', ' ', '\n\t', '\r');
const nastyByte = fc.oneof(fc.constantFrom(...Buffer.from('"\\{}[],:0-.eEtfnuZT \n\0é')), fc.nat(255));

const text = fc.oneof(
  { weight: 1, arbitrary: fc.nat(9).map((each) => JSON.stringify(`resv_${each}`)) },
  { weight: 5, arbitrary: fc.stringMatching(/^[a-z0-9_.:-]{1,20}$/).map((each) => JSON.stringify(each)) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map((each) => JSON.stringify(each)) },
  { weight: 1, arbitrary: anyText({ maxLength: 6 }).map((each) => JSON.stringify(each)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '""',
      '" "',
      '"\u00a0"',
      '"\u3000x"',
      '"\\u0041"',
      '"\\ud83d"',
      '"\\/"',
      '"日本"',
      `"${'é'.repeat(600)}"`,
      `"${'é'.repeat(512)}"`,
    ),
  },
);
const timestamp = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .date({ noInvalidDate: true, min: new Date('1890-01-01'), max: new Date('2260-01-01') })
      .map((date) => JSON.stringify(date.toISOString())),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '""',
      'null',
      '"2026-02-28T23:59:59Z"',
      '"2026-02-30T00:00:00Z"',
      '"2026-06-31T00:00:00Z"',
      '"2026-01-31t10:00:00z"',
      '"2026-01-31T10:00:00-08:00"',
      '"0001-01-01T00:00:00Z"',
    ),
  },
);
const value: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.oneof(
      text,
      fc.double().map((number) => String(number)),
      fc.integer().map(String),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'null',
      'true',
      'false',
      '-0',
      '1e999',
      '1E+2',
      '0.10',
      '[]',
      '{}',
      '[ ]',
      '{ "a" : 1 }',
    ),
  },
  { weight: 1, arbitrary: fc.json({ maxDepth: 3 }) },
);
const member = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(
      fc.constantFrom('"event_id"', '"customer_id"', '"source"'),
      fc.oneof({ weight: 30, arbitrary: text }, value),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('"timestamp"'), fc.oneof({ weight: 30, arbitrary: timestamp }, value)) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('"properties"'),
      fc.oneof(
        {
          weight: 8,
          arbitrary: fc
            .dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }))
            .map((each) => JSON.stringify(each)),
        },
        value,
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.oneof(text, fc.constantFrom('"__proto__"', '"event_names"', '"sourcE"', '"\\u0065vent_id"', '"event_name"')),
      value,
    ),
  },
);
const required = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.constantFrom(
      '"event_name":"call","external_customer_id":"acme"',
      '"external_customer_id":"böhm", "event_name":" job"',
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(text, text)
      .map(([name, customer]) => `"event_name":${name},"external_customer_id":${customer}`),
  },
  { weight: 1, arbitrary: fc.constant('"event_name":"call"') },
);
const anyEvent = fc
  .tuple(required, fc.array(member, { maxLength: 3 }), blanks, fc.boolean())
  .map(([always, members, blank, isLast]) => {
    const more = members.map(([key, each]) => `${key}${blank}:${blank}${each}`);
    return `{${blank}${(isLast ? [...more, always] : [always, ...more]).join(`,${blank}`)}${blank}}`;
  });
