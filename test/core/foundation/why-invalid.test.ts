import { expect } from 'chai';
import { z } from 'zod';
import { explainInvalid } from '../../../core/foundation/why-invalid.ts';

const TABLE: [what: string, shape: z.ZodType, value: unknown, why: string][] = [
  ['nothing', z.object({ a: z.string() }), {}, 'is required'],
  ['nothing, of some words', z.object({ a: z.enum(['x', 'y']) }), {}, 'is required'],
  ['nothing, of several shapes', z.object({ a: z.union([z.string(), z.array(z.string())]) }), {}, 'is required'],
  ['a number for a string', z.string(), 5, 'must be a string, not a number'],
  ['null for a string', z.string(), null, 'must be a string, not null'],
  ['a string for an object', z.object({}), 'x', 'must be an object, not a string'],
  ['an array for a map', z.record(z.string(), z.string()), [], 'must be an object, not an array'],
  ['an object for an array', z.array(z.string()), {}, 'must be an array, not an object'],
  ['a string for a truth', z.boolean(), 'yes', 'must be true or false, not a string'],
  ['a truth for a number', z.number(), true, 'must be a number, not true'],
  ['a fraction', z.int(), 1.5, 'must be a whole number'],
  ['a string for a whole number', z.int(), 'x', 'must be a number, not a string'],
  ['another word', z.enum(['EVENT', 'PERIOD', 'ALWAYS']), 'never', 'must be EVENT, PERIOD or ALWAYS'],
  ['another word than the one', z.literal('RECURRING'), 'ONETIME', 'must be RECURRING'],
  ['an empty string', z.string().min(1), '', 'must not be empty'],
  ['a short string', z.string().min(3), 'xy', 'must have at least 3 characters'],
  ['a long string', z.string().max(255), 'x'.repeat(256), 'must not be longer than 255 characters'],
  ['a string that is not as long as wanted', z.string().length(3), 'EURO', 'must have exactly 3 characters'],
  ['an empty array', z.array(z.string()).min(1), [], 'must not be empty'],
  ['a short array', z.array(z.string()).length(3), ['a'], 'must have exactly 3 entries'],
  ['a long array', z.array(z.string()).max(1), ['a', 'b'], 'must not have more than 1 entry'],
  ['a small number', z.number().min(1), 0, 'must be at least 1'],
  ['a number at an open bound', z.number().gt(0), 0, 'must be greater than 0'],
  ['a great number', z.number().max(1000), 1001, 'must be at most 1000'],
  ['a number at an upper open bound', z.number().lt(10), 10, 'must be less than 10'],
  ['a number between the steps', z.number().multipleOf(5), 7, 'must be a multiple of 5'],
  ['no address of mail', z.email(), 'x', 'must be an email address'],
  ['no URL', z.url(), 'x', 'must be a URL such as https://example.com/page'],
  ['no time', z.iso.datetime(), 'x', 'must be an RFC 3339 timestamp such as 2026-01-31T00:00:00Z'],
  [
    'a long key',
    z.record(z.string().max(1), z.string()),
    { ab: '' },
    'has a key that must not be longer than 1 character',
  ],
  ['neither of two shapes', z.union([z.string(), z.array(z.string())]), 5, 'must be a string or an array'],
  ['none of some words, nor empty', z.enum(['yes', 'no', '']), 'x', 'must be yes or no'],
  [
    'no branch, of which two share a word',
    z.union([z.boolean(), z.enum(['true', '1'])]),
    5,
    'must be true, false or 1',
  ],
  ['a rule without words', z.string().refine(() => false), 'x', 'is not valid'],
  ['a rule with words', z.string().refine(() => false, { error: 'must rhyme' }), 'x', 'must rhyme'],
  [
    'a shape with words',
    z.number({ error: 'must be a whole number from 1 to 9' }),
    'x',
    'must be a whole number from 1 to 9',
  ],
];

describe('why a value does not have the shape that is wanted', () => {
  for (const [what, shape, value, why] of TABLE) {
    it(`${what}: ${why}`, () => {
      const { error } = shape.safeParse(value, { error: explainInvalid });
      expect(error?.issues.map(({ message }) => message)).to.deep.equal([why]);
    });
  }
});
