// docs/rules/imports.md, "CSV".
import { expect } from 'chai';
import { parseColumns, toCellValues } from '../../../../core/platform/import/csv-columns.ts';

const KNOWN = ['external_id', 'name', 'metadata'];

describe('the columns of a CSV file', () => {
  it('are fields, and keys of maps, which may hold dots; empty cells say nothing', () => {
    const columns = parseColumns(['external_id', ' name ', 'metadata.a.b', 'metadata.__proto__'], KNOWN);
    expect(toCellValues(columns, ['x', '', '1', '2'])).to.deep.equal({
      external_id: 'x',
      metadata: Object.assign(Object.create(null), { 'a.b': '1', ['__proto__']: '2' }),
    });
    expect(toCellValues(columns, ['x', '', '', ''])).to.deep.equal({ external_id: 'x' });
  });

  const REFUSED: [header: string[], why: RegExp][] = [
    [['external_id', ''], /column 2 has no name/],
    [['external_id', 'external_id'], /external_id: stands twice/],
    [['extrenal_id'], /extrenal_id: is no column of such a file: external_id, name, metadata/],
    [['metadata', 'metadata.a'], /metadata.a: stands beside metadata/],
    [['external_id;name;metadata.tier'], /header: separates columns by semicolons: they must be separated by commas/],
    [['external_id\tname'], /separates columns by tabs/],
    [['what;ever'], /what;ever: is no column/],
    [['.a'], /\.a: is no column/],
    [Array.from({ length: 1_001 }, (_, i) => `metadata.${i}`), /more than 1000 columns/],
  ];
  for (const [header, why] of REFUSED)
    it(`are refused: ${header.slice(0, 3).join()}`, () => {
      expect(() => parseColumns(header, KNOWN)).to.throw(why);
    });
});
