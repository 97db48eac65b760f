// docs/rules/imports.md, "JSON".
import { expect } from 'chai';
import fc from 'fast-check';
import { JsonRows } from '../../../../core/platform/import/json-rows.ts';

/** The rows, and what broke off behind them. */
function rowsOf(pieces: readonly string[]): { rows: string[]; why?: string } {
  const reading = new JsonRows();
  const rows: string[] = [];
  try {
    for (const piece of pieces) for (const row of reading.take(piece)) rows.push(row);
    for (const row of reading.end()) rows.push(row);
    return { rows };
  } catch (error) {
    return { rows, why: (error as Error).message };
  }
}

describe('the rows of a JSON file', () => {
  const TABLE: [file: string, rows: string[], why?: RegExp][] = [
    ['', []],
    [' \n ', []],
    ['[]', []],
    [' [ ] \n', []],
    ['[{"a":1}]', ['{"a":1}']],
    ['[ {"a":[1,{"b":"]}"}]} ,\n{} ]', ['{"a":[1,{"b":"]}"}]}', '{}']],
    ['[1, 0.10 ,"a,]\\"",null]', ['1', '0.10', '"a,]\\""', 'null']],
    ['[{"a":1} {"b":2}]', ['{"a":1}'], /row 2: must be valid JSON/],
    ['[,{}]', [], /row 1: must be valid JSON/],
    ['[{},]', ['{}'], /row 2: must be valid JSON/],
    ['[{},,{}]', ['{}'], /row 2: must be valid JSON/],
    ['[{}', ['{}'], /row 2: the array does not end/],
    ['[{"a":"', [], /row 1: the array does not end/],
    ['[{}]]', ['{}'], /stands behind the array/],
    ['{"a":1}\n\n{"b":2}\r\n', ['{"a":1}', '{"b":2}']],
    ['{"a":1}\nnot JSON\n{"b":2}', ['{"a":1}', 'not JSON', '{"b":2}']],
  ];
  for (const [file, rows, why] of TABLE)
    it(`${JSON.stringify(file)}`, () => {
      const found = rowsOf([file]);
      expect(found.rows).to.deep.equal(rows);
      if (why) expect(found.why).to.match(why);
      else expect(found.why).to.equal(undefined);
    });

  it('are the same however the file is cut', () => {
    const values = fc.array(fc.json({ maxDepth: 3 }), { maxLength: 6 });
    fc.assert(
      fc.property(values, fc.infiniteStream(fc.integer({ min: 1, max: 7 })), fc.boolean(), (rows, cuts, isArray) => {
        const file = isArray ? `[${rows.join(' ,\n')}]` : rows.join('\n');
        // A line that begins with a bracket is the beginning of an array.
        fc.pre(isArray || !file.startsWith('['));
        const pieces: string[] = [];
        for (let at = 0; at < file.length; ) {
          const length = cuts.next().value!;
          pieces.push(file.slice(at, at + length));
          at += length;
        }
        expect(rowsOf(pieces)).to.deep.equal({ rows });
      }),
    );
  });

  it('are no longer than a row may be', () => {
    expect(rowsOf([`["${'x'.repeat(1_048_577)}`]).why).to.match(/row 1: is longer than/);
    expect(rowsOf([`{}\n{"${'x'.repeat(1_048_577)}`]).why).to.match(/row 2: is longer than/);
  });
});
