import { expect } from 'chai';
import fc from 'fast-check';
import { parseJson } from '../../../../core/foundation/json/parse.ts';
import { anyJson } from '../../../support/any-text.ts';
import { samples } from '../../../support/samples.ts';

describe('parsing the JSON of others', () => {
  // Each key that comes first is one that Node 24 then takes the second for; Node 20 and 22 read them all without help.
  for (const [seen, text, value] of [
    ['{"a1":1,"\\\\u0":2}', '{"a1":1,"\\u0064ay":2}', { a1: 1, day: 2 }],
    ['{"a2":1,"\\\\":2}', '{"a2":1,"\\n":2}', { a2: 1, '\n': 2 }],
    ['{"a3":1,"x\\\\":2}', '{"a3":1,"x\\"":2}', { a3: 1, 'x"': 2 }],
    ['{"\\\\u00":1}', '[{"\\u00fcber":{"\\u00fcber":[null]}}]', [{ über: { über: [null] } }]],
  ] as const)
    it(`reads ${text} after ${seen}`, () => {
      for (let time = 0; time < 3; time++) parseJson(seen);
      expect(JSON.stringify(parseJson(text))).to.equal(JSON.stringify(value));
    });

  it('says what the value said, whatever its keys are, and of two equal keys the last', () => {
    const escaped = (text: string) =>
      text.replace(/[^\n -~]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
    fc.assert(
      fc.property(anyJson(), fc.constantFrom(0, 1, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(JSON.stringify(parseJson(text), null, indent)).to.equal(text);
        expect(JSON.stringify(parseJson(escaped(text)), null, indent)).to.equal(text);
      }),
      { numRuns: samples(1_000) },
    );
    expect(parseJson('{"\\u0061":1,"a":2,"__pr\\u006fto__":{"b":[]}}')).to.deep.equal(
      JSON.parse('{"a":2,"__proto__":{"b":[]}}'),
    );
  });

  it('refuses what is not JSON, also behind a key with an escape', () => {
    for (const text of ['', '{', '{"\\n":1', '{"\\n":1,}', '{"\\n" 1}', '["\\n":1]', '{"\\x":1}', '{"\\n":01}'])
      expect(() => parseJson(text), text).to.throw(SyntaxError);
  });
});
