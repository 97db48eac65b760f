import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { completeKeys } from '../../../../core/foundation/json/complete-keys.ts';
import { jsonText } from '../../../../core/foundation/json/json-text.ts';
import { decimalText, orNull, timestampText } from '../../../../core/foundation/record.ts';
import { anyText } from '../../../support/any-text.ts';
import { samples } from '../../../support/samples.ts';

/** The text, and in how many steps it was made. */
function written(shape: z.ZodType, value: unknown): { text: string; steps: number } {
  const steps = jsonText(shape, value);
  for (let count = 0; ; count++) {
    const step = steps.next();
    if (step.done) return { text: step.value, steps: count };
  }
}

const Point = z.object({ at: timestampText, value: decimalText, unset: z.string().nullable() });
const Item = z.object({
  name: z.string(),
  points: z.array(Point).nullish(),
  metadata: orNull(z.record(z.string(), z.string())),
});
const Answer = z.object({
  total: decimalText,
  items: z.array(Item),
  open: z.array(z.unknown()).optional(),
  none: z.array(z.never()),
});

const point = fc.record({
  at: fc.constant(new Date('2026-01-31T01:02:03.120Z')),
  value: fc.integer().map((value) => new Decimal(value).div(8)),
  secret: fc.string(),
});
const item = fc.record(
  {
    name: anyText(),
    points: fc.oneof(fc.constant(null), fc.array(point, { maxLength: 80, size: 'max' })),
    metadata: fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
  },
  { requiredKeys: ['name'] },
);
const answer = fc.record({
  total: fc.constant(new Decimal('0.10')),
  items: fc.array(item, { maxLength: 80, size: 'max' }),
  open: fc.array(fc.jsonValue(), { maxLength: 40 }),
});

describe('jsonText', () => {
  const shapes: [what: string, shape: z.ZodType][] = [
    ['an object', Answer],
    ['what may be absent', Answer.nullish()],
    ['what has a default', Answer.default({ total: '0', items: [], none: [] })],
    ['what may have other keys', Answer.loose()],
    ['one of several', z.union([Answer, z.string()])],
    ['what no shape describes', z.unknown()],
  ];
  for (const [what, shape] of shapes)
    it(`${what}: as JSON.stringify writes what completeKeys makes`, () => {
      fc.assert(
        fc.property(answer, (value) => {
          expect(written(shape, value).text).to.equal(JSON.stringify(completeKeys(shape, value)));
        }),
        { numRuns: samples(30) },
      );
    });

  for (const value of [null, undefined, 'text', 7, [], {}])
    it(`${JSON.stringify(value) ?? 'nothing'} as it is`, () => {
      expect(written(z.unknown(), value).text).to.equal(JSON.stringify(value ?? null));
    });

  it('what is large is made in a step for each eight items, and eight points of an item; what is small in one', () => {
    const points = Array.from({ length: 500 }, () => ({ at: '2026-01-31T01:02:03Z', value: '1' }));
    const large = { items: [...Array.from({ length: 299 }, () => ({ name: 'x' })), { name: 'y', points }] };
    expect(written(Answer, large).steps).to.equal(Math.ceil(300 / 8) + Math.ceil(500 / 8));
    expect(written(Answer, { items: large.items.slice(0, 20) }).steps).to.equal(0);
  });

  it('refuses what cannot be written, as completeKeys does', () => {
    const items = Array.from({ length: 40 }, () => 'no object');
    expect(() => written(Answer, { items })).to.throw('an object was declared, the answer holds string');
  });
});
