/** Numbers in JSON retain their digits when they are parsed and written. */
import { expect } from 'chai';
import fc from 'fast-check';
import { JsonNumber, parseExactJson, writeExactJson } from '../../integrations/exact-json.ts';

describe('integrations/exact-json', () => {
  it('writes a number with its digits', () => {
    const amounts = ['0.1', '-0.30', '12345678901234567.12', '1000', '-0.00000001'].map((text) => new JsonNumber(text));
    expect(writeExactJson({ amounts, name: 'a "quoted" 12', none: undefined, nothing: null, is: true })).to.equal(
      '{"amounts":[0.1,-0.3,12345678901234567.12,1000,-0.00000001],"name":"a \\"quoted\\" 12","nothing":null,"is":true}',
    );
  });

  it('reads a number as its digits, and leaves numbers in texts', () => {
    expect(
      parseExactJson('{"a":0.30,"b":[-12345678901234567.12,1E2],"c":"it is 5, \\"6\\" \\\\","7":true}'),
    ).to.deep.equal({
      a: '0.30',
      b: ['-12345678901234567.12', '1E2'],
      c: 'it is 5, "6" \\',
      '7': true,
    });
  });

  for (const text of ['{"a":01}', '{"a":1.}', '[1-2]', '{"a":-}', '', '{"a":"1}', '<h1>'])
    it(`refuses ${JSON.stringify(text)}`, () => expect(() => parseExactJson(text)).to.throw(SyntaxError));

  for (const end of ['', '\\', '\\\n'])
    it(`refuses a megabyte of quotes without an end: ${JSON.stringify(end)}`, () => {
      const text = `{"a":"${'\\"'.repeat(500_000)}${end}`;
      expect(() => parseExactJson(text)).to.throw(SyntaxError);
    });

  it('refuses a text that is no decimal number', () => {
    for (const text of ['', '1,5', 'NaN', '1e3', '0x1', '1"', '--1']) expect(() => new JsonNumber(text)).to.throw();
  });

  it('reads what it writes', () => {
    const digits = fc.tuple(fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }), fc.nat(9)).map(([value, places]) => {
      const text = String(value < 0n ? -value : value).padStart(places + 1, '0');
      const [whole, rest] = [text.slice(0, text.length - places), text.slice(text.length - places)];
      return `${value < 0n ? '-' : ''}${whole}${places === 0 ? '' : `.${rest}`}`;
    });
    fc.assert(
      fc.property(fc.array(digits), fc.string(), (amounts, text) => {
        const numbers = amounts.map((amount) => new JsonNumber(amount));
        const written = writeExactJson({ numbers, text });
        expect(parseExactJson(written)).to.deep.equal({ numbers: numbers.map((number) => number.text), text });
        expect(JSON.parse(written).numbers).to.deep.equal(amounts.map(Number).map((number) => number + 0));
      }),
    );
  });
});
