/** The rows of a CSV end with LF, CRLF or CR, each of them wherever it stands. docs/rules/imports.md, "CSV". */
import { expect } from 'chai';
import fc from 'fast-check';
import { readRows } from '../../../../actions/operations/imports/rows.ts';
import { samples } from '../../../support/samples.ts';

const KNOWN = ['external_id', 'name'];

async function read(text: string, piece_bytes: number): Promise<unknown[]> {
  const file = Buffer.from(text);
  async function* pieces() {
    for (let from = 0; from < file.length; from += piece_bytes) yield file.subarray(from, from + piece_bytes);
  }
  const found: unknown[] = [];
  for await (const row of readRows({
    file_type: 'CSV',
    encoding: 'UTF-8',
    mapping: null,
    known: KNOWN,
    pieces: pieces(),
  }))
    found.push('fault' in row ? row.fault.message : row.value);
  return found;
}

describe('line ends of a CSV', () => {
  const ends = fc.constantFrom('\n', '\r\n', '\r');
  const quoted = fc.stringMatching(/^[a \r\n,]{0,4}$/);

  it('may differ from line to line, however the file comes in pieces; within quotes they are text', () =>
    fc.assert(
      fc.asyncProperty(
        ends,
        fc.array(fc.tuple(quoted, ends), { maxLength: 6 }),
        fc.integer({ min: 1, max: 40 }),
        async (first, rows, piece_bytes) => {
          const lines = rows.map(([name, end], n) => `x${n},"${name}"${end}`);
          const wanted = rows.map(([name], n) => ({ external_id: `x${n}`, ...(name === '' ? {} : { name }) }));
          expect(await read(`external_id,name${first}${lines.join('')}`, piece_bytes)).to.deep.equal(wanted);
        },
      ),
      { numRuns: samples(500) },
    ));

  it('in one column, and without quotes', async () => {
    const three = ['x1', 'x2', 'x3'].map((external_id) => ({ external_id }));
    for (const text of ['external_id\r\nx1\nx2\nx3\n', 'external_id\nx1\r\nx2\r\nx3', 'external_id\rx1\n\rx2\r\nx3\r'])
      expect(await read(text, 3), JSON.stringify(text)).to.deep.equal(three);
  });
});
