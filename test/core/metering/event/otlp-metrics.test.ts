// docs/rules/opentelemetry.md.
import { expect } from 'chai';
import {
  formatProperties,
  fromOtlpMetrics,
  OtlpMetrics,
  type PointEvent,
} from '../../../../core/metering/event/otlp-metrics.ts';
import { checkSizes } from '../../../../core/metering/event/otlp-sizes.ts';

type Fields = Record<string, unknown>;
const text = (key: string, stringValue: string) => ({ key, value: { stringValue } });
const POINT = {
  attributes: [text('external_customer_id', 'acme'), text('region', 'eu')],
  startTimeUnixNano: '1769853600000000000',
  timeUnixNano: '1769853660123456789',
  asInt: '12',
};
const point = (change: Fields = {}) => ({ ...POINT, ...change });
const sum = (points: object[], change: Fields = {}) => ({
  name: 'calls',
  sum: { aggregationTemporality: 1, isMonotonic: true, dataPoints: points, ...change },
});
const textOf = ({ identity }: PointEvent) => `${identity.common}${identity.own}`;
const read = (metrics: object[], resource: object[] = []) =>
  fromOtlpMetrics(
    OtlpMetrics.parse({ resourceMetrics: [{ resource: { attributes: resource }, scopeMetrics: [{ metrics }] }] }),
  );
const histogram = (change: Fields) => ({
  name: 'tokens',
  histogram: {
    aggregationTemporality: 1,
    dataPoints: [{ ...point(), asInt: undefined, count: '2', sum: 7.5, ...change }],
  },
});

describe('metrics of OpenTelemetry', () => {
  it('a delta of a sum is an event', () => {
    const { events, faults } = read([sum([point()])], [text('service.name', 'gateway')]);
    expect(faults).to.deep.equal([]);
    expect(events[0]!.fields).to.deep.equal({
      event_name: 'calls',
      external_customer_id: 'acme',
      timestamp: '2026-01-31T10:01:00.123456789Z',
      source: 'gateway',
    });
    expect(formatProperties(events[0]!)).to.equal('{"value":12,"region":"eu"}');
  });

  it('the customer may be that of the resource', () => {
    const { events } = read([sum([point({ attributes: [] })])], [text('external_customer_id', 'initech')]);
    expect(events[0]!.fields.external_customer_id).to.equal('initech');
    expect(formatProperties(events[0]!)).to.equal('{"value":12}');
  });

  const NUMBERS: [change: Fields, properties: string][] = [
    [{ asInt: '9007199254740993' }, '{"value":9007199254740993}'],
    [{ asInt: 5 }, '{"value":5}'],
    [{ asInt: undefined, asDouble: 0.1 }, '{"value":0.1}'],
    [{ asInt: undefined, asDouble: 1e21 }, '{"value":1e+21}'],
  ];
  for (const [change, properties] of NUMBERS) {
    it(`numbers keep their digits: ${properties}`, () => {
      const { events } = read([sum([point({ attributes: [text('external_customer_id', 'a')], ...change })])]);
      expect(formatProperties(events[0]!)).to.equal(properties);
    });
  }

  it('of a histogram sum and count', () => {
    const { events } = read([histogram({})]);
    expect(formatProperties(events[0]!)).to.equal('{"value":7.5,"count":2,"region":"eu"}');
  });

  it('of an empty histogram, whose count protocol buffers omit', () => {
    const { events, faults } = read([histogram({ count: undefined, sum: 0 })]);
    expect(faults).to.deep.equal([]);
    expect(formatProperties(events[0]!)).to.equal('{"value":0,"count":0,"region":"eu"}');
  });

  it('cumulative metrics of another kind or unit are other series; the id of a delta has neither', () => {
    const listAll = (aggregationTemporality: number) => {
      const { histogram: points } = histogram({});
      const total = sum([point()], { aggregationTemporality });
      const measured = { name: 'calls', histogram: { ...points, aggregationTemporality } };
      return read([total, { ...total, unit: 'By' }, measured]).events;
    };
    const cumulative = listAll(2);
    expect(new Set(cumulative.map((event) => event.cumulative!.series))).to.have.property('size', 3);
    expect(new Set(cumulative.map(textOf))).to.have.property('size', 3);
    expect(new Set(listAll(1).map(textOf))).to.have.property('size', 1);
  });

  it('a point without a value is passed over, and so is a metric of no kind', () => {
    expect(read([sum([point({ flags: 1, asInt: undefined })]), { name: 'none' }])).to.deep.equal({
      events: [],
      faults: [],
    });
  });

  it('the same point is the same event, in whichever order its attributes stand; any other is another', () => {
    const identity = (change: Fields, resource: object[] = []) =>
      textOf(read([sum([point(change)])], resource).events[0]!);
    const turned = { attributes: POINT.attributes.toReversed() };
    expect(identity(turned)).to.equal(identity({}));
    const others = [
      identity({}),
      identity({ timeUnixNano: '1769853660123456790' }),
      identity({ startTimeUnixNano: '1769853600000000001' }),
      identity({ attributes: [text('external_customer_id', 'acme')] }),
      identity({}, [text('service.instance.id', '2')]),
    ];
    expect(new Set(others).size).to.equal(others.length);
  });

  it('ids of points without attributes of a scope stay what they were', () => {
    const { events } = read([sum([point()])], [text('service.name', 'gateway')]);
    expect(textOf(events[0]!)).to.equal(
      JSON.stringify([
        ['["service.name",{"stringValue":"gateway"}]'],
        '',
        '',
        'calls',
        ['["external_customer_id",{"stringValue":"acme"}]', '["region",{"stringValue":"eu"}]'],
        POINT.startTimeUnixNano,
        POINT.timeUnixNano,
      ]),
    );
  });

  const some = (length: number) => Array.from({ length }, () => ({}));
  const of = (metric: object, scope: object = {}) => [{ scopeMetrics: [{ scope, metrics: [metric] }] }];
  const TOO_MUCH: [what: string, resourceMetrics: object[], why: RegExp][] = [
    ['resources', some(20_001), /20000 resources, scopes and metrics/],
    ['metrics', [{ scopeMetrics: [{ metrics: some(15_000) }, { metrics: some(5_000) }] }], /20000 resources/],
    ['points', of({ sum: { dataPoints: some(10_001) } }), /10000 data points/],
    ['points of no kind', of({ Sum: { data_points: some(10_001) } }), /10000 data points/],
    ['attributes of a resource', [{ resource: { attributes: some(1_001) } }], /1000 attributes of one/],
    ['attributes of a scope', of({}, { attributes: some(1_001) }), /1000 attributes of one/],
    [
      'attributes of points',
      of({ gauge: { dataPoints: Array(201).fill({ attributes: some(1_000) }) } }),
      /200000 attr/,
    ],
  ];
  for (const [what, resourceMetrics, why] of TOO_MUCH)
    it(`refused before anything is made of them: too many ${what}`, () => {
      expect(() => checkSizes({ resourceMetrics })).to.throw(why);
    });

  it('as much as may be, and what has no shape, passes', () => {
    checkSizes({ resourceMetrics: [{ resource: { attributes: some(1_000) } }, ...some(19_000)] });
    for (const odd of [null, 5, [], { resourceMetrics: 5 }, { resourceMetrics: [null, { scopeMetrics: [5] }] }])
      checkSizes(odd);
  });

  const REFUSED: [what: string, metric: object, why: RegExp][] = [
    [
      'cumulative without a start',
      sum([point({ startTimeUnixNano: '0' })], { aggregationTemporality: 2 }),
      /startTimeUnixNano is required/,
    ],
    [
      'cumulative that ends before its start',
      sum([point({ timeUnixNano: '1769853599999999999' })], { aggregationTemporality: 2 }),
      /lies before startTimeUnixNano/,
    ],
    ['no temporality', sum([point()], { aggregationTemporality: undefined }), /must be delta/],
    ['a level', sum([point()], { isMonotonic: false }), /level/],
    ['a gauge', { name: 'temperature', gauge: { dataPoints: [point()] } }, /gauge says no usage/],
    ['a summary', { name: 'latency', summary: { dataPoints: [{ ...point(), asInt: undefined }] } }, /summary/],
    ['no name', { ...sum([point()]), name: '' }, /name is required/],
    ['no customer', sum([point({ attributes: [] })]), /external_customer_id is required/],
    ['no time', sum([point({ timeUnixNano: '0' })]), /timeUnixNano is required/],
    ['no value', sum([point({ asInt: undefined })]), /must be a number/],
    ['not a number', sum([point({ asInt: undefined, asDouble: 'NaN' })]), /must be a number/],
    ['digits lost', sum([point({ asInt: 2 ** 53 })]), /must be a number/],
    ['a value below 0', sum([point({ asInt: '-4' })]), /below 0 is no usage/],
    ['a fraction below 0', sum([point({ asInt: undefined, asDouble: -0.5 })]), /below 0 is no usage/],
    ['a kind that nobody knows', { name: 'x', Sum: { dataPoints: [point()] } }, /Sum is no kind of metric/],
    ['a histogram without a count', histogram({ count: undefined }), /count must be a whole number/],
    ['a histogram without a sum', histogram({ sum: undefined }), /sum must be a number/],
    ['a name of ours', sum([point({ attributes: [...POINT.attributes, text('value', 'x')] })]), /attribute value/],
    [
      'a list',
      sum([point({ attributes: [...POINT.attributes, { key: 'tags', value: { arrayValue: { values: [] } } }] })]),
      /tags must be a text/,
    ],
  ];
  for (const [what, metric, why] of REFUSED) {
    it(`refused by name: ${what}`, () => {
      const { events, faults } = read([metric]);
      expect(events).to.deep.equal([]);
      expect(faults).to.have.length(1);
      expect(faults[0]!.why).to.match(why);
    });
  }
});
