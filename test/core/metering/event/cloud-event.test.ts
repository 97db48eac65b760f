// docs/rules/events.md, "CloudEvents".
import { expect } from 'chai';
import { fromCloudEvent, listExtensions } from '../../../../core/metering/event/cloud-event.ts';

const WHOLE = { specversion: '1.0', id: 'c-1', source: '/gw', type: 'call', subject: 'acme' };
const LONG = 'x'.repeat(1025);

function translated(change: object, data?: string) {
  const attributes = { ...WHOLE, ...change };
  return fromCloudEvent({
    attributes,
    data: data === undefined ? undefined : { text: data, value: JSON.parse(data) },
  });
}

describe('a CloudEvent', () => {
  it('becomes an event, its data as they stand', () => {
    const found = translated({ time: '2026-01-31T10:00:00Z' }, '{ "n": 0.10 }');
    expect(found).to.deep.equal({
      text: '{"event_id":"/gw c-1","event_name":"call","external_customer_id":"acme","timestamp":"2026-01-31T10:00:00Z","source":"/gw","properties":{ "n": 0.10 }}',
    });
  });

  it('without time and data has neither, and null is not set', () => {
    const text = '{"event_id":"/gw c-1","event_name":"call","external_customer_id":"acme","source":"/gw"}';
    expect(translated({})).to.deep.equal({ text });
    expect(translated({ time: null, dataschema: null, other: null, data: null }, 'null')).to.deep.equal({ text });
  });

  it('has one character for each byte', () => {
    const { text } = translated({ subject: 'é€' }) as { text: string };
    expect(JSON.parse(Buffer.from(text, 'latin1').toString('utf8')).external_customer_id).to.equal('é€');
  });

  it('tells apart what two sources have called alike', () => {
    const ids = [
      { source: 'a', id: 'b c' },
      { source: 'b', id: 'b c' },
      { source: 'a', id: 'c' },
    ].map((change) => JSON.parse((translated(change) as { text: string }).text).event_id);
    expect(ids).to.deep.equal(['a b c', 'b b c', 'a c']);
  });

  const REFUSED: [change: object, field: string, why: string | RegExp, data?: string][] = [
    [{ specversion: undefined }, 'specversion', 'is required'],
    [{ specversion: '0.3' }, 'specversion', 'must be 1.0'],
    [{ specversion: 1 }, 'specversion', 'must be a string'],
    [{ id: undefined }, 'id', 'is required'],
    [{ id: null }, 'id', 'is required'],
    [{ id: ' ' }, 'id', 'must not be blank'],
    [{ id: LONG }, 'id', /not be longer than 1024 characters, with the source/],
    [{ source: undefined }, 'source', 'is required'],
    [{ source: 'a b' }, 'source', /no blanks/],
    [{ type: undefined }, 'type', 'is required'],
    [{ type: LONG }, 'type', /1024/],
    [{ type: '' }, 'type', 'must not be blank'],
    [{ subject: undefined }, 'subject', 'is required'],
    [{ subject: 5 }, 'subject', 'must be a string'],
    [{ subject: 'a\0' }, 'subject', /NUL/],
    [{ subject: '\ud800' }, 'subject', /Unicode/],
    [{ time: '' }, 'time', /RFC 3339/],
    [{ time: 'yesterday' }, 'time', /RFC 3339/],
    [{ time: 5 }, 'time', /RFC 3339/],
    [{ time: '1799-01-01T00:00:00Z' }, 'time', /between the years/],
    [{ datacontenttype: 'text/xml' }, 'datacontenttype', /application\/json/],
    [{ data_base64: 'e30=' }, 'data_base64', /JSON object in data/],
    [{ timestamp: '2026-01-31T10:00:00Z' }, 'timestamp', /did you mean time\?/],
    [{ properties: {} }, 'properties', /did you mean data\?/],
    [{ tiem: '2026-01-31T10:00:00Z' }, 'tiem', /did you mean time\?/],
    [{ times: 'x' }, 'times', /did you mean time\?/],
    [{ external_customer_id: 'acme' }, 'external_customer_id', /lower-case letters and digits/],
    [{ traceParent: 'x' }, 'traceParent', /lower-case/],
    [{}, 'data', 'must be a JSON object', '[1]'],
    [{}, 'data', 'must be a JSON object', '"text"'],
    [{}, 'data', 'must be a JSON object', '5'],
  ];
  for (const [change, field, why, data] of REFUSED) {
    it(`is refused: ${JSON.stringify(change).slice(0, 60)}${data ?? ''} names ${field}`, () => {
      const { fault } = translated(change, data) as { fault: { field: string; why: string } };
      expect(fault.field).to.equal(field);
      expect(fault.why).to.match(why instanceof RegExp ? why : new RegExp(`^${why}$`));
    });
  }

  const EXTENSIONS = [
    'traceparent',
    'tracestate',
    'partitionkey',
    'sequence',
    'dataref',
    'sampledrate',
    'expirytime',
    'tier',
  ];
  it('may have extension attributes, which are named', () => {
    const change = Object.fromEntries(EXTENSIONS.map((name) => [name, 'x']));
    expect(translated(change)).to.have.property('text');
    expect(listExtensions({ ...WHOLE, ...change, dataschema: 'x' })).to.deep.equal(EXTENSIONS);
  });
});
