// docs/rules/imports.md, "Mappings".
import { expect } from 'chai';
import { EVENT_FIELDS } from '../../../../../core/platform/import/event-row.ts';
import { defineImportMapping } from '../../../../../core/platform/import/mapping/define.ts';
import { compileMapping, toSnakeCase } from '../../../../../core/platform/import/mapping/mapped-row.ts';
import { importMappingFields } from '../../../../../core/platform/import/mapping/record.ts';

const define = (request: object) =>
  defineImportMapping(importMappingFields.parse({ name: 'm', ...request }), EVENT_FIELDS);
const read = (request: object, header: string[], cells: string[]) =>
  JSON.parse(JSON.stringify(compileMapping(define(request), header)(cells)));

const COST = [
  { field: 'event_name', value: 'cost' },
  { field: 'external_customer_id', columns: ['Tags.customer', 'Account'] },
  { field: 'timestamp', columns: ['Day'] },
  { field: 'properties.cost', columns: ['Cost'], type: 'NUMBER' },
];

describe('a mapping', () => {
  it('names the column of each field, in any case; the first cell that is not empty counts', () => {
    const header = [' ACCOUNT ', 'day', 'cost', 'tags'];
    const terms = { fields: COST, decimal_separator: 'COMMA', date_format: 'DAY_FIRST', time_zone: 'Europe/Berlin' };
    expect(read({ ...terms, other_columns: 'IGNORE' }, header, ['a', '20.10.2026', '1.234,50', ''])).to.deep.equal({
      event_name: 'cost',
      external_customer_id: 'a',
      timestamp: '2026-10-19T22:00:00Z',
      properties: { cost: '1234.50' },
    });
    for (const tags of ['{"customer":"b","x":{}}', '"x": 1,"customer":"b"'])
      expect(read({ ...terms, other_columns: 'IGNORE' }, header, ['a', '20.10.2026', '1', tags])).to.include({
        external_customer_id: 'b',
      });
  });

  it('finds only the keys that the JSON of a cell has', () => {
    const fields = [...COST, { field: 'source', columns: ['Tags.constructor'], value: 'none' }];
    const values = read({ fields }, ['Account', 'Day', 'Cost', 'Tags'], ['a', '2026-10-20', '1', '{"x":1}']);
    expect(values.source).to.equal('none');
  });

  for (const [decimal_separator, cost] of [
    ['POINT', '12345678901234567.890'],
    ['COMMA', '1.250'],
  ] as const)
    it(`keeps the digits of a number in JSON, with a decimal ${decimal_separator}`, () => {
      const fields = [...COST.slice(0, 3), { field: 'properties.cost', columns: ['Tags.cost'], type: 'NUMBER' }];
      const header = ['Account', 'Day', 'Tags'];
      const values = read({ fields, decimal_separator }, header, ['a', '2026-10-20', `{"cost":${cost},"x":null}`]);
      expect(values.properties.cost).to.equal(cost);
    });

  it('joins columns, and takes the value where all are empty', () => {
    const fields = [
      ...COST,
      { field: 'event_id', columns: ['A', 'B'], combine: 'JOIN' },
      { field: 'source', columns: ['C'], value: 'none' },
    ];
    const header = ['Account', 'Day', 'Cost', 'A', 'B', 'C'];
    const values = read({ fields }, header, ['a', '2026-10-20', '1', 'li0', 'x/y', '']);
    expect([values.event_id, values.source]).to.deep.equal(['li0 x/y', 'none']);
  });

  it('makes properties of the other columns; with a decimal comma their numbers are read, too', () => {
    const terms = { fields: COST, other_columns: 'PROPERTIES', decimal_separator: 'COMMA' };
    const header = ['Account', 'Day', 'Cost', 'Quantity', 'id', 'text', 'empty'];
    expect(read(terms, header, ['a', '2026-10-20', '1', '1.234', '007', 'a,b', '']).properties).to.deep.equal({
      cost: '1',
      Quantity: '1234',
      id: '007',
      text: 'a,b',
    });
  });

  it('has the names of CUR 2.0 for columns of a CUR', () => {
    for (const [name, snake] of [
      ['lineItem/UnblendedCost', 'line_item_unblended_cost'],
      ['resourceTags/user:team', 'resource_tags_user_team'],
      ['product/instanceSKU', 'product_instance_sku'],
      ['line_item_usage_amount', 'line_item_usage_amount'],
    ] as const)
      expect(toSnakeCase(name)).to.equal(snake);
  });

  it('takes the terms of its preset that it does not state, and may leave out a field of it', () => {
    const mapping = define({
      preset: 'aws_cur',
      time_zone: 'Europe/Berlin',
      fields: [{ field: 'event_id' }, { field: 'event_name', value: 'x' }],
    });
    expect(mapping).to.deep.include({ preset: 'AWS_CUR', property_names: 'SNAKE_CASE', time_zone: 'Europe/Berlin' });
    const names = mapping.fields.map(({ field }) => field);
    expect(names).to.include('external_customer_id').and.not.include('event_id');
    expect(mapping.fields.find(({ field }) => field === 'event_name')!.value).to.equal('x');
  });

  const ROW_FAULTS: [cells: string[], why: RegExp][] = [
    [['a', '2026-10-20', '12 EUR', ''], /^properties.cost: "12 EUR" is no number with a decimal POINT/],
    [['a', '10/20/2026', '1', ''], /^timestamp: "10\/20\/2026" is no date in the form YEAR_FIRST/],
    [['a', '', '1', ''], /^timestamp: is required: Day is empty/],
    [['', '2026-10-20', '1', ''], /^external_customer_id: is required: Tags, Account is empty/],
    [
      ['a', '2026-10-20', '1', `{"customer":"${'x'.repeat(1_048_576)}"}`],
      /^row: is longer than 1048576 characters after/,
    ],
    [['a', '2026-10-20', '1', '[1]'], /^Tags: must be a JSON object/],
  ];
  for (const [cells, why] of ROW_FAULTS)
    it(`refuses a row: ${why.source}`, () => {
      expect(() => read({ fields: COST }, ['Account', 'Day', 'Cost', 'Tags'], cells)).to.throw(why);
    });

  const HEADER_FAULTS: [request: object, header: string[], why: RegExp][] = [
    [{}, ['Account', 'Day'], /^Cost: is no column of the file, and the mapping needs it for properties.cost/],
    [{}, ['Account', 'Day', 'Cost', 'x'], /^x: is a column that the mapping does not name/],
    [{ other_columns: 'IGNORE' }, Array(1_001).fill('x'), /^header: must not have more than 1000 columns/],
    [{ other_columns: 'IGNORE' }, ['Account', 'A'.repeat(256)], /^header: column 2 has a name longer than 255/],
    [{ other_columns: 'IGNORE' }, ['Account', 'Day', 'Cost', ' Cost'], /^Cost: stands twice in the header/],
    [{ other_columns: 'IGNORE' }, ['Account', 'Day', 'COST', 'cost'], /^Cost: stands in the header in several cases/],
    [{ other_columns: 'PROPERTIES' }, ['Account', 'Day', 'Cost', ''], /column 4 has no name/],
    [
      { other_columns: 'PROPERTIES', property_names: 'SNAKE_CASE' },
      ['Account', 'Day', 'Cost', 'a/b', 'A_B'],
      /^A_B: becomes properties.a_b, which another column is/,
    ],
  ];
  for (const [request, header, why] of HEADER_FAULTS)
    it(`refuses a file: ${why.source}`, () => {
      expect(() => read({ fields: COST, ...request }, header, header)).to.throw(why);
    });

  const REFUSED: [request: object, why: RegExp][] = [
    [{ fields: [{ field: 'costumer', columns: ['a'] }] }, /^fields\[0\].field: must be one of event_id, event_name/],
    [{ fields: [{ field: 'source.a', columns: ['a'] }] }, /^fields\[0\].field: must be one of/],
    [{ fields: [{ field: 'properties.', columns: ['a'] }] }, /^fields\[0\].field: must be one of/],
    [{ fields: [COST[0], COST[0]] }, /^fields\[1\].field: stands twice/],
    [{ fields: [COST[3], { field: 'properties', columns: ['x'] }] }, /^fields\[0\].field: stands beside properties/],
    [
      { preset: 'FOCUS', fields: [{ field: 'properties', columns: ['x'] }] },
      /^fields\[0\].field: stands beside properties.BilledCost/,
    ],
    [
      { other_columns: 'PROPERTIES', fields: [...COST.slice(0, 3), { field: 'properties', columns: ['x'] }] },
      /^other_columns: cannot be PROPERTIES beside the field properties/,
    ],
    [{ fields: [COST[0], COST[1]] }, /^fields: must have timestamp/],
    [{ preset: 'FOCUS', fields: [{ field: 'external_customer_id' }] }, /^fields: must have external_customer_id/],
    [{ fields: [COST[0], COST[1], { ...COST[2], is_optional: true }] }, /^fields: cannot have timestamp as optional/],
    [{ fields: [{ field: 'source' }] }, /^fields\[0\].columns: is required, or a value/],
    [{ name: 'focus' }, /^name: is the name of a preset/],
    [{ preset: 'FOCUS', entity_type: 'CUSTOMERS' }, /^preset: makes EVENTS, not CUSTOMERS/],
    [{ entity_type: 'CUSTOMERS', other_columns: 'PROPERTIES' }, /^other_columns: can be PROPERTIES for EVENTS alone/],
  ];
  for (const [request, why] of REFUSED)
    it(`is refused: ${why.source}`, () => {
      expect(() => define(request)).to.throw(why);
    });
});
