import { expect } from 'chai';
import { z } from 'zod';
import {
  anyCase,
  decimalText,
  metadata,
  optionalKey,
  orDefault,
  orNull,
  requiredKey,
  status,
  timestampText,
  wholeNumber,
} from '../../../core/foundation/record.ts';

describe('decimalText', () => {
  const rows: [string | number, string][] = [
    ['1.50', '1.5'],
    ['007', '7'],
    ['-0', '0'],
    ['100', '100'],
    [12.5, '12.5'],
    [-0.5, '-0.5'],
    [1e-7, '0.0000001'],
    [-1.25e-7, '-0.000000125'],
    [1e19, '10000000000000000000'],
    [0, '0'],
  ];
  for (const [input, text] of rows)
    it(`${JSON.stringify(input)} → ${text}`, () => expect(decimalText.parse(input)).to.equal(text));

  const refused = [
    '',
    'abc',
    '1e5',
    ' 1',
    null,
    undefined,
    true,
    {},
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    1e-30,
  ];
  for (const input of [...refused, 0.1 + 0.2, 2 ** 53 + 2])
    it(`${String(input)} is refused`, () => expect(decimalText.safeParse(input).success).to.equal(false));
});

describe('the pieces of records', () => {
  it('timestampText yields UTC', () => {
    expect(timestampText.parse('2024-05-01T02:00:00+02:00')).to.equal('2024-05-01T00:00:00.000Z');
    expect(timestampText.safeParse('2024-05-01').success).to.equal(false);
  });

  it('an enumeration is understood in any case and yielded as specified', () => {
    expect(anyCase(['15MIN', 'grouped_invoicing']).parse('Grouped_Invoicing')).to.equal('grouped_invoicing');
    expect(status.parse('PUBLISHED')).to.equal('published');
    expect(status.safeParse('gone').error?.issues[0]?.message).to.include('published');
    expect(status.safeParse(undefined).success).to.equal(false);
  });

  it('orNull reads missing, null and "" as null; orDefault as the default', () => {
    const shape = z.object({ a: orNull(z.string()), b: orDefault(wholeNumber, 1), c: metadata });
    expect(shape.parse({})).to.deep.equal({ a: null, b: 1, c: null });
    expect(shape.parse({ a: '', b: null, c: null })).to.deep.equal({ a: null, b: 1, c: null });
    expect(shape.parse({ a: 'x', b: '0', c: { k: 'v' } })).to.deep.equal({ a: 'x', b: 0, c: { k: 'v' } });
    expect(shape.safeParse({ b: 1.5 }).success).to.equal(false);
    expect(shape.safeParse({ c: { k: 1 } }).success).to.equal(false);
  });

  it('have a JSON schema for requests and for answers', () => {
    const shape = z.object({ a: orNull(decimalText), b: status, c: timestampText, d: metadata });
    expect(z.toJSONSchema(shape, { io: 'input' }).required).to.deep.equal(['b', 'c']);
    expect(z.toJSONSchema(shape, { io: 'output' }).required).to.deep.equal(['a', 'b', 'c', 'd']);
  });
});

describe('keys', () => {
  const unseen = ['   ', '\t', '\u200b', '\u200d\ufeff', '\u00a0', '\u3164', '\u2060 \u00ad', '\u202e'];
  for (const text of unseen)
    it(`in which nothing is seen are refused: ${JSON.stringify(text)}`, () => {
      for (const shape of [requiredKey, optionalKey]) {
        const { success, error } = shape.safeParse(text);
        expect(success).to.equal(false);
        expect(error!.issues[0]!.message).to.match(/^must not be blank/);
      }
    });

  it('"" is none where one may be left out, and refused where not', () => {
    expect(optionalKey.parse('')).to.equal(null);
    expect(optionalKey.parse(null)).to.equal(null);
    expect(requiredKey.safeParse('').success).to.equal(false);
  });

  for (const text of [' a', 'a\u200bb', '👩\u200d💻', '-', 'ключ'])
    it(`are kept as they are sent: ${JSON.stringify(text)}`, () => {
      expect(requiredKey.parse(text)).to.equal(text);
      expect(optionalKey.parse(text)).to.equal(text);
    });
});
