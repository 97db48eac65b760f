import { expect } from 'chai';
import { formatExact, formatExactValue, parseEvents, parseExact } from '../../console/client/exact-json.ts';
import {
  addToTail,
  buildListFilters,
  countNew,
  type EventRow,
  findSampleRate,
  formatProperties,
  joinRows,
  parsePropertyFilter,
} from '../../console/pages/events/event-rows.ts';

function buildRow(id: string): EventRow {
  const at = '2026-11-01T00:00:00Z';
  return {
    id,
    event_name: 'call',
    external_customer_id: 'c',
    timestamp: at,
    received_at: at,
    properties: {},
    source: '',
  };
}

const ids = (rows: readonly EventRow[]) => rows.map(({ id }) => id).join('');

describe('console: rows of events', () => {
  it('adds new events before the tail, each once', () => {
    const tail = addToTail([buildRow('b'), buildRow('a')], [buildRow('c'), buildRow('b')]);
    expect(ids(tail)).to.equal('cba');
    expect(addToTail(tail, [buildRow('a')])).to.equal(tail);
    expect(ids(joinRows(tail, [buildRow('b'), buildRow('z')]))).to.equal('cbaz');
  });

  it('builds the filters of the lists beside that of all events', () => {
    expect(buildListFilters({ from: '2026-11-01' })).to.deep.equal({});
    const search = { customer: 'northwind', name: 'call', from: '2026-11-01', to: '2026-11-03' };
    expect(buildListFilters(search)).to.deep.equal({
      external_customer_id: 'northwind',
      event_name: 'call',
      start_time: '2026-11-01T00:00:00Z',
      end_time: '2026-11-03T00:00:00Z',
    });
  });

  it('bounds the tail', () => {
    const many = Array.from({ length: 400 }, (_, at) => buildRow(`e${at}`));
    expect(addToTail([], many)).to.have.length(300);
  });

  it('counts the rows that are newer than the first shown', () => {
    const rows = [buildRow('c'), buildRow('b'), buildRow('a')];
    expect(countNew(rows, 'a')).to.equal(2);
    expect(countNew(rows, 'c')).to.equal(0);
    expect(countNew(rows, undefined)).to.equal(3);
  });

  it('writes properties in one line', () => {
    expect(formatProperties({ model: 'wren-2', tokens: 12, note: 'a b', ok: true, list: [1] })).to.equal(
      'model=wren-2 tokens=12 note="a b" ok=true list=[1]',
    );
  });

  for (const [text, expected] of [
    ['model=wren-2', { key: 'model', value: 'wren-2' }],
    ['a=b=c', { key: 'a', value: 'b=c' }],
    ['=b', null],
    ['a=', null],
    ['a', null],
    [undefined, null],
  ] as const)
    it(`parses the filter ${text}`, () => {
      expect(parsePropertyFilter(text)).to.deep.equal(expected);
    });

  it('finds the rate of the sample', () => {
    expect(findSampleRate(20, 400)).to.equal(21);
    expect(findSampleRate(20, 0)).to.equal(null);
    expect(findSampleRate(0, 5)).to.equal(null);
  });
});

describe('console: exact JSON', () => {
  for (const text of [
    '{"tokens":12345678901234567890,"cost":0.1000000000000000055511,"text":"12 \\" 3","deep":[1,{"n":-1e400}],"no":null}',
    '{}',
  ])
    it(`keeps every digit of ${text}`, () => {
      expect(formatExact(parseExact(text))).to.equal(text);
    });

  it('keeps the digits of the properties of events, and reads other numbers', () => {
    const text =
      '{"items":[{"count":12,"properties":{"n":9007199254740993,"rate":[0.1234567890123456789]}}],"more":2.5}';
    const parsed = parseEvents(text) as { items: { count: number; properties: Record<string, unknown> }[] };
    expect(parsed).to.deep.include({ more: 2.5 });
    expect(parsed.items[0]!.count).to.equal(12);
    expect(formatExact(parsed)).to.equal(text);
    expect(formatProperties(parsed.items[0]!.properties)).to.equal('n=9007199254740993 rate=[0.1234567890123456789]');
  });

  it('refuses text that is no JSON', () => {
    for (const text of ['{', '{"a":01}', '{"a":1,}']) expect(() => parseExact(text)).to.throw(SyntaxError);
  });

  it('shows a value with its digits', () => {
    const { tokens, model } = parseExact('{"tokens":12345678901234567890,"model":"a"}') as Record<string, unknown>;
    expect(formatExactValue(tokens)).to.equal('12345678901234567890');
    expect(formatExactValue(model)).to.equal('a');
    expect(formatExactValue(parseExact('{"a":[1.50]}'))).to.equal('{"a":[1.50]}');
  });
});
