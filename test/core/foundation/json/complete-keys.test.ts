import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { completeKeys } from '../../../../core/foundation/json/complete-keys.ts';
import { orNull, timestampText } from '../../../../core/foundation/record.ts';

type Tree = { name: string; children: Tree[] };
const Tree: z.ZodType<Tree> = z.object({
  name: z.string(),
  get children() {
    return z.array(Tree);
  },
});

describe('completeKeys', () => {
  const rows: [what: string, shape: z.ZodType, value: unknown, answer: unknown][] = [
    ['unset keys become null', z.object({ a: z.string(), b: z.string().optional() }), {}, { a: null, b: null }],
    ['extra keys are dropped', z.object({ a: z.string() }), { a: 'x', secret: 'y' }, { a: 'x' }],
    ['null stays null', z.object({ a: z.object({ b: z.string() }) }), { a: null }, { a: null }],
    [
      'inner objects are completed',
      z.object({ a: z.object({ b: z.string() }).nullish() }),
      { a: {} },
      { a: { b: null } },
    ],
    ['array items are completed', z.array(z.object({ a: z.string() })), [{}, { a: 'x' }], [{ a: null }, { a: 'x' }]],
    ['record values are completed', z.record(z.string(), z.object({ a: z.string() })), { k: {} }, { k: { a: null } }],
    [
      'what is wrapped decides',
      z.object({ a: z.object({ b: z.string() }).default({ b: '' }).readonly() }),
      { a: {} },
      { a: { b: null } },
    ],
    ['a pipe encodes as its end', z.preprocess((x) => x, z.object({ a: z.string() })), {}, { a: null }],
    [
      'a recursive shape',
      Tree,
      { name: 'r', children: [{ name: 'c' }] },
      { name: 'r', children: [{ name: 'c', children: null }] },
    ],
    [
      'an intersection has both',
      z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })),
      { b: 'x' },
      { a: null, b: 'x' },
    ],
    ['a tuple', z.tuple([z.object({ a: z.string() }), z.string()]), [{}, 'x'], [{ a: null }, 'x']],
    ['a date', z.object({ at: z.string() }), { at: new Date('2026-01-31T01:02:03Z') }, { at: '2026-01-31T01:02:03Z' }],
    [
      'timestamps, whichever way they were made',
      z.object({
        a: timestampText,
        b: z.array(z.iso.datetime()),
        c: orNull(timestampText),
        d: timestampText.nullish(),
      }),
      {
        a: '2026-01-31T01:02:00.000Z',
        b: ['2026-01-31T01:02:10.500Z', new Date('2026-01-31T01:02:03.120Z')],
        c: '2026-01-31T01:02:03.123Z',
        d: '2026-01-31T01:02:00Z',
      },
      {
        a: '2026-01-31T01:02:00Z',
        b: ['2026-01-31T01:02:10.5Z', '2026-01-31T01:02:03.12Z'],
        c: '2026-01-31T01:02:03.123Z',
        d: '2026-01-31T01:02:00Z',
      },
    ],
    [
      'a text that only looks like a timestamp stays',
      z.string(),
      '2026-01-31T01:02:00.000Z',
      '2026-01-31T01:02:00.000Z',
    ],
    ['a decimal', z.object({ n: z.string() }), { n: new Decimal('1e-30') }, { n: '0.000000000000000000000000000001' }],
    ['a negative zero', z.string(), new Decimal('-0'), '0'],
    ['a bigint', z.string(), 12345678901234567890n, '12345678901234567890'],
    ['unknown values keep their keys', z.unknown(), { a: [new Decimal('1.50'), undefined] }, { a: ['1.5', null] }],
    [
      'false, 0 and "" are values',
      z.object({ a: z.boolean(), b: z.number(), c: z.string() }),
      { a: false, b: 0, c: '' },
      { a: false, b: 0, c: '' },
    ],
    [
      'a union by its literal',
      z.union([z.object({ kind: z.literal('a'), x: z.string() }), z.object({ kind: z.literal('b'), y: z.string() })]),
      { kind: 'b' },
      { kind: 'b', y: null },
    ],
    [
      'a union by its keys',
      z.union([z.object({ a: z.string() }), z.object({ b: z.string(), c: z.string() })]),
      { c: 'x' },
      { b: null, c: 'x' },
    ],
    ['a union of an object and a text', z.union([z.object({ a: z.string() }), z.string()]), 'x', 'x'],
    ['a union of an object and an array', z.union([z.object({ a: z.string() }), z.array(z.string())]), ['x'], ['x']],
    [
      'the name __proto__ is a name',
      z.record(z.string(), z.string()),
      JSON.parse('{"__proto__":"x"}'),
      JSON.parse('{"__proto__":"x"}'),
    ],
  ];
  for (const [what, shape, value, answer] of rows) {
    it(what, () => expect(JSON.stringify(completeKeys(shape, value))).to.equal(JSON.stringify(answer)));
  }

  const refused: [string, z.ZodType, unknown][] = [
    ['NaN', z.number(), Number.NaN],
    ['an infinite decimal', z.string(), new Decimal(Number.POSITIVE_INFINITY)],
    ['a text where an object was declared', z.object({ a: z.string() }), 'x'],
    ['an object where an array was declared', z.array(z.string()), { a: 'x' }],
  ];
  for (const [what, shape, value] of refused) {
    it(`refuses ${what}, never answering null for it`, () =>
      expect(() => completeKeys(shape, value)).to.throw(TypeError));
  }

  it('has exactly the declared keys, whatever it is given', () => {
    const shape = z.object({ a: z.unknown(), b: z.unknown(), c: z.unknown() });
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        expect(Object.keys(completeKeys(shape, value) as object)).to.deep.equal(['a', 'b', 'c']);
      }),
    );
  });
});
