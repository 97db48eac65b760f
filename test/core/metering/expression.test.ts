import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { properties } from '../../../core/metering/event-text.ts';
import { compileExpression } from '../../../core/metering/expression.ts';
import { measureCpuMs } from '../../support/cpu-time.ts';
import { toDecimal } from '../../support/exact-decimal.ts';
import { samples } from '../../support/samples.ts';

describe('expression: a quantity computed from the properties of an event', () => {
  const values: [expression: string, properties: string, value: string][] = [
    ['token * duration * pixel', '{"token":10,"duration":3,"pixel":100}', '3000'],
    ['total / 4', '{"total":10}', '2.5'],
    ['properties.usage.tokens * 2', '{"usage":{"tokens":3}}', '6'],
    ['properties["a/b"] + properties.c', '{"a/b":4,"c":1}', '5'],
    ['properties["usage.tokens"]', '{"usage.tokens":3,"usage":{"tokens":5}}', '3'],
    ['properties.usage["tokens in"] + properties.usage.more.x', '{"usage":{"tokens in":"7","more":{"x":1}}}', '8'],
    ['properties.usage.tokens + properties.none.at.all + a', '{"usage":{},"a":1}', '1'],
    ['properties.call["modél"] == "große" ? 2 : 1', '{"call":{"modél":"große"}}', '2'],
    ['properties + 1', '{"properties":4}', '5'],
    ['input * 2 + output', '{"input":10,"output":5}', '25'],
    ['a * 3', '{"a":"2"}', '6'],
    ['amount * 1.0', '{"amount":"5.5"}', '5.5'],
    ['amount * 1.0', '{"amount":" 5.5 "}', '5.5'],
    ['max(a, 3)', '{"a":2}', '3'],
    ['min(a, 3)', '{"a":2}', '2'],
    ['ceil(a / 60)', '{"a":61}', '2'],
    ['ceil(a / 60)', '{"a":60}', '1'],
    ['ceil(a / 60)', '{"a":-61}', '-1'],
    ['floor(a / 60)', '{"a":-61}', '-2'],
    ['round(a / 2)', '{"a":-5}', '-3'],
    ['floor(a)', '{"a":2.9}', '2'],
    ['floor(a)', '{"a":-2.1}', '-3'],
    ['ceil(a)', '{"a":-2.9}', '-2'],
    ['round(a)', '{"a":0.5}', '1'],
    ['round(a)', '{"a":-0.5}', '-1'],
    ['round(a)', '{"a":2.5}', '3'],
    ['round(a)', '{"a":0.49999999999999999999}', '0'],
    ['pow(a, 10)', '{"a":2}', '1024'],
    ['pow(a, -2)', '{"a":4}', '0.0625'],
    ['pow(a, 0.5)', '{"a":9}', '3'],
    ['pow(a, 0)', '{}', '1'],
    ['sqrt(a)', '{"a":2}', '1.414213562373095048801689'],
    ['log(a)', '{"a":10}', '2.302585092994045684017991'],
    ['log(a)', '{"a":1}', '0'],
    ['abs(a)', '{"a":-1.5}', '1.5'],
    ['double(a) / 3', '{"a":1}', '0.333333333333333333333333'],
    ['a / 3 * 3', '{"a":1}', '1'],
    ['ceil(a / 3 * 3)', '{"a":2}', '2'],
    ['ceil(a / 3 * 300)', '{"a":2}', '200'],
    ['a / 72 * 3933 * b - 8', '{"a":1000,"b":1e-25}', '-7.999999999999999999994538'],
    ['floor(a / b * b)', '{"a":1,"b":3}', '1'],
    ['round(a / 3 * 1.5)', '{"a":1}', '1'],
    ['ceil((a / 3 * 3) / b)', '{"a":2,"b":1}', '2'],
    ['a / 3 * 3 > 2 ? 100 : 0', '{"a":2}', '0'],
    ['a / 3 * 3 >= 2 ? 100 : 0', '{"a":2}', '100'],
    ['a / 3 * 3 == 2 ? 100 : 0', '{"a":2}', '100'],
    ['(a > 0 ? a / 3 : 0) * 3 != 2 ? 100 : 0', '{"a":2}', '0'],
    ['ceil(max(a / 3 * 3, 2))', '{"a":2}', '2'],
    ['ceil(sqrt(a) * sqrt(a))', '{"a":2}', '2'],
    ['ceil(-(a / 3) * 3 + 0.5)', '{"a":2}', '-1'],
    ['ceil(a * 1e-30 / 3)', '{"a":1}', '1'],
    [
      'ceil(a * b * c)',
      '{"a":1.000000000000000000000001,"b":1.000000000000000000000001,"c":1.000000000000000000000001}',
      '2',
    ],
    ['v * 1e30', '{"v":2.5e-29}', '25'],
    ['v * 1', '{"v":1.2345678901234567e-9}', '0.000000001234567890123457'],
    ['a / 1000', '{"a":1}', '0.001'],
    ['2 * a / 0.3', '{"a":0.15}', '1'],
    ['floor(min(a, 6) * 1.5)', '{"a":5.7}', '8'],
    ['ceil(a / 1000)', '{"a":1500}', '2'],
    ['duration <= 10 ? 0 : ceil(duration / 15) * 15', '{"duration":8}', '0'],
    ['duration <= 10 ? 0 : ceil(duration / 15) * 15', '{"duration":10.001}', '15'],
    ['duration <= 10 ? 0 : ceil(duration / 15) * 15', '{"duration":16}', '30'],
    ['a + b', '{"a":0.1,"b":0.2}', '0.3'],
    ['a + 0.1', '{"a":0.2}', '0.3'],
    ['a * 9007199254740993.25', '{"a":1}', '9007199254740993.25'],
    ['a + 9007199254740993', '{}', '9007199254740993'],
    ['a * 1', '{"a":9007199254740993.25}', '9007199254740993.25'],
    ['"é𝄞" == m ? 1.25 * a : 9007199254740993.75', '{"a":2,"m":"x"}', '9007199254740993.75'],
    ['a + b', '{"a":5}', '5'],
    ['-a', '{"a":5}', '-5'],
    ['-(a - 1.5)', '{"a":5}', '-3.5'],
    ['tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)', '{"tokens":7,"model":"gpt"}', '15'],
    ['tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)', '{"tokens":7,"model":"GPT"}', '14'],
    ['tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)', '{"tokens":7}', '14'],
    ["model != 'a\\'b' ? t : 0", '{"t":3,"model":"a\'b"}', '0'],
    ['a > 1 && b > 1 || !(a == b) ? 1 : 2', '{"a":2,"b":1}', '1'],
    ['a == 1.0 ? 1 : 2', '{"a":"1"}', '1'],
    ['a > 0 || b / a > 1 ? 1 : 2', '{"a":1}', '1'],
    ['b / a > 1 || a == 0 ? 1 : 2', '{"a":0,"b":1}', '1'],
    ['a == 0 ? 0 : b / a', '{"a":0,"b":1}', '0'],
    ['true ? a : 0', '{"a":4}', '4'],
    ['max * max(max, 2)', '{"max":3}', '9'],
    ['1e3 * a', '{"a":2}', '2000'],
    ['a', '{"a":1,"a":2}', '2'],
    ['a * 0.5', '{"a":0.000000000000000000000001}', '0.000000000000000000000001'],
    ['constructor + toString', '{}', '0'],
  ];
  for (const [expression, sent, value] of values) {
    it(`${expression} of ${sent} is ${value}`, () => expect(evaluated(expression, sent)).to.equal(value));
  }

  const unusable: [expression: string, properties: string, reason: string][] = [
    ['a / 0', '{"a":1}', 'the expression divides by zero'],
    ['a / b', '{"a":1}', 'the expression divides by zero'],
    ['0 / a', '{}', 'the expression divides by zero'],
    ['ceil(a / b)', '{"a":1}', 'the expression divides by zero'],
    ['pow(a, -1)', '{}', 'the expression divides by zero'],
    ['a * 2', '{"a":"abc-secret"}', 'property "a" is not a number'],
    ['a * 2', '{"a":""}', 'property "a" is not a number'],
    ['a * 2', '{"a":true}', 'property "a" is not a number'],
    ['a * 2', '{"a":null}', 'property "a" is null'],
    ['a * 2', '{"a":{"secret":1}}', 'property "a" is not a number'],
    ['a * 2', '{"a":"Infinity"}', 'property "a" is not a number'],
    ['a * 2', '{"a":1e30}', 'property "a" is too large'],
    ['m == "x" ? 1 : 0', '{"m":5}', 'property "m" is not text'],
    ['sqrt(a)', '{"a":-1}', 'the expression takes the square root of a negative number'],
    ['log(a)', '{"a":0}', 'the expression takes the logarithm of a number that is not positive'],
    ['log(a)', '{"a":-1}', 'the expression takes the logarithm of a number that is not positive'],
    ['pow(a, 0.5)', '{"a":-1}', 'the result of the expression is not a number'],
    ['pow(a, 1000)', '{"a":1000}', 'the result of the expression is too large'],
    ['pow(a, b)', '{"a":2,"b":100000000000000000000}', 'the result of the expression is too large'],
    ['pow(pow(pow(a, 99999), 99999), 99999)', '{"a":1.5}', 'the result of the expression is too large'],
    ['properties.usage.tokens', '{"usage":5}', 'property "usage" is not an object'],
    ['properties.usage.tokens', '{"usage":null}', 'property "usage" is null'],
    ['properties.usage.tokens', '{"usage":{"tokens":"many"}}', 'property "usage.tokens" is not a number'],
    [
      'properties.usage.tokens',
      `{"usage":{"text":"${'x'.repeat(50_000)}","tokens":1}}`,
      'the expression costs more than 1000 units of work',
    ],
    ['a * 1000000000000', '{"a":1000000000000}', 'the result of the expression is too large'],
  ];
  for (const [expression, sent, reason] of unusable) {
    it(`${expression} of ${sent}: ${reason}`, () => {
      expect(compileExpression(expression).evaluate(properties(sent))).to.deep.equal({ unusable: reason });
    });
  }

  const refused: [expression: string, why: string][] = [
    ['1 + 2', 'must use at least one property'],
    ['', 'is not a CEL expression'],
    ['a +', 'is not a CEL expression'],
    ['a b', 'is not a CEL expression'],
    ['a > 1', 'must give a number, not true or false'],
    ['a == "x"', 'must give a number, not true or false'],
    ['"x"', 'must give a number, not text'],
    ['a > 1 ? "x" : "y"', 'must give a number, not text'],
    ['a > 1 ? 1 : "y"', 'two results are not of the same type'],
    ['a ? 1 : 2', 'uses a number where ? : takes a condition'],
    ['a && b ? 1 : 2', 'uses a number where && takes a condition'],
    ['!a ? 1 : 2', 'uses a number where ! takes a condition'],
    ['a + true', 'uses true or false where + takes a number'],
    ['a + "x"', 'uses text where + takes a number'],
    ['a == "x" ? a : 0', 'has a ? : whose two results'],
    ['a == "x" ? a * 2 : 0', 'uses the property a both as text and as a number'],
    ['a == b && b == "x" && a > 1 ? 1 : 0', 'uses the property a both as text and as a number'],
    ['a == true ? 1 : 2', 'compares values of different types'],
    ['a % 2', 'has no %'],
    ['max(a)', 'calls max with 1 arguments, it takes 2'],
    ['max(a, b, 1)', 'calls max with 3 arguments, it takes 2'],
    ['sqrt(a, b)', 'calls sqrt with 2 arguments, it takes 1'],
    ['tan(a)', 'has no tan()'],
    ['int(a)', 'has no int()'],
    ['a.b', 'write properties.a.b for a value inside an object, properties["a.b"] for the property of that name'],
    ['has(a.b) ? 1 : 0', 'has no such fields or macros'],
    ['properties[1]', 'has no [ ] without a name in quotes'],
    ['a.max(b)', 'has no methods: .max()'],
    ['a["b"]', 'write properties.a.b'],
    ['a in b ? 1 : 0', 'has no in'],
    ['[a].map(x, x)', 'has no macros'],
    ['[a, 1] == [1, a] ? 1 : 0', 'has no lists'],
    ['{"a": a}', 'has no maps'],
    ['a + 1u', 'only numbers, text, true and false'],
    ['a == null ? 1 : 0', 'only numbers, text, true and false'],
    ['a == b"x" ? 1 : 0', 'only numbers, text, true and false'],
    ['a.__proto__', 'has an unclear path'],
    ['constructor("x")', 'has no constructor()'],
    ['toString() + a', 'has no toString()'],
    [`a${' + a'.repeat(150)}`, 'is longer than 512 characters'],
    [`a${'+a'.repeat(150)}`, 'has more than 200 parts'],
    ['('.repeat(500), 'nests more than 48 brackets'],
    [`${'max(a,'.repeat(49)}a${')'.repeat(49)}`, 'nests more than 48 brackets'],
    ['a + 1e400', 'is too large'],
  ];
  for (const [expression, why] of refused) {
    it(`refuses ${expression.slice(0, 60)}: ${why}`, () => {
      expect(() => compileExpression(expression))
        .to.throw(why)
        .with.property('code', 'validation_error');
      expect(() => compileExpression(expression)).to.throw(/^aggregation\.expression: /);
    });
  }

  it('refuses what would be slow to refuse in a few milliseconds', () => {
    const texts = ['('.repeat(512), '[a,('.repeat(128), '!'.repeat(512), `${'('.repeat(48)}${'!'.repeat(464)}`];
    const took_ms = measureCpuMs(() => {
      for (const text of texts) expect(() => compileExpression(text)).to.throw('aggregation.expression');
    });
    expect(took_ms).to.be.lessThan(1000);
  });

  it('knows the properties that it reads', () => {
    expect(compileExpression('b * a + b + max(c, 1)').identifiers).to.deep.equal(['b', 'a', 'c']);
    expect(compileExpression('properties.a.b + properties["c/d"]').identifiers).to.deep.equal(['a.b', 'c/d']);
  });

  it('never says what a property holds', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 3 }), (secret) => {
        const result = compileExpression('x * 2').evaluate(
          new Map([['x', { kind: 'string', text: `s3cr3t${secret}` }]]),
        );
        expect(result.unusable).to.equal('property "x" is not a number');
      }),
    );
  });

  it('calculates as decimal.js does with enough digits', () => {
    const number = fc
      .tuple(fc.integer({ min: -10_000_000, max: 10_000_000 }), fc.nat(9))
      .map(([n, places]) => new Decimal(n).div(new Decimal(10).pow(places)));
    const Wide = Decimal.clone({ precision: 400 });
    fc.assert(
      fc.property(number, number, number, (a, b, c) => {
        const sent = `{"a":${a.toFixed()},"b":"${b.toFixed()}","c":${c.toExponential()}}`;
        const exactly = new Wide(a).times(b).minus(c).plus('0.125').times(c);
        expect(evaluated('(a * b - c + 0.125) * c', sent)).to.equal(plain(exactly));
        expect(evaluated('a < b ? max(a, c) : min(b, c)', sent)).to.equal(
          plain(a.lessThan(b) ? Decimal.max(a, c) : Decimal.min(b, c)),
        );
        if (!b.isZero()) {
          const quotient = new Wide(a).div(b);
          expect(evaluated('a / b', sent)).to.equal(plain(quotient));
          expect(evaluated('floor(a / b)', sent)).to.equal(plain(quotient.floor()));
          expect(evaluated('floor(a / b * b)', sent)).to.equal(plain(new Wide(a).floor()));
          expect(evaluated('ceil(a / b * c)', sent)).to.equal(plain(new Wide(a).times(c).div(b).ceil()));
          expect(evaluated('a / b * c == a * c / b ? 1 : 0', sent)).to.equal('1');
          expect(evaluated('ceil(a / b)', sent)).to.equal(plain(quotient.ceil()));
          expect(evaluated('round(a / b)', sent)).to.equal(plain(quotient.round()));
        }
      }),
      { numRuns: samples(2000) },
    );
  });
});

function evaluated(expression: string, sent: string): string {
  const result = compileExpression(expression).evaluate(properties(sent));
  if (result.unusable !== undefined) throw new Error(result.unusable);
  return toDecimal(result.value).toFixed();
}

/** The text of a result: 24 places, half away from zero. */
function plain(value: Decimal): string {
  const rounded = value.toDecimalPlaces(24, Decimal.ROUND_HALF_UP);
  return rounded.isZero() ? '0' : rounded.toFixed();
}
