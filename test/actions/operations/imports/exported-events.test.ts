/** An export of events comes back as it was: export and import are each other's opposite. docs/rules/imports.md, "Events". */
import { expect } from 'chai';
import fc from 'fast-check';
import { readRows } from '../../../../actions/operations/imports/rows.ts';
import { formatUs } from '../../../../core/foundation/time/instant.ts';
import { formatCsvHead, formatCsvLine } from '../../../../core/platform/export/csv.ts';
import { EVENT_COLUMNS as EXPORTED, type ExportedEvent } from '../../../../core/platform/export/events.ts';
import { EVENT_COLUMNS, parseEventRow } from '../../../../core/platform/import/event-row.ts';
import { anyText } from '../../../support/any-text.ts';

const AT_US = 1_772_323_200_123_456;

async function imported(events: readonly ExportedEvent[]): Promise<unknown[]> {
  const lines = events.map((event) =>
    formatCsvLine(
      EXPORTED,
      EXPORTED.map(({ toCell: of }) => of(event)),
    ),
  );
  const file = Buffer.from(formatCsvHead(EXPORTED) + lines.join(''));
  async function* pieces() {
    for (let from = 0; from < file.length; from += 50) yield file.subarray(from, from + 50);
  }
  const found: unknown[] = [];
  for await (const row of readRows({
    file_type: 'CSV',
    encoding: 'UTF-8',
    mapping: null,
    known: EVENT_COLUMNS,
    pieces: pieces(),
  })) {
    if ('fault' in row) throw new Error(row.fault.message);
    const { text, event_id } = parseEventRow(row);
    const { properties } = JSON.parse(text);
    found.push({
      ...JSON.parse(text),
      event_id,
      properties: properties === undefined ? '' : text.split('"properties":')[1]!.slice(0, -1),
    });
  }
  return found;
}

const asSent = ([event_id, event_name, external_customer_id, customer_id, , , source, properties]: ExportedEvent) => ({
  event_id,
  event_name,
  external_customer_id,
  ...(customer_id === '' ? {} : { customer_id }),
  timestamp: formatUs(AT_US),
  ...(source === '' ? {} : { source }),
  properties,
});

describe('an export of events that is imported', () => {
  const signs = fc.stringMatching(/^['=+@\-";,\t|\r\n \u2028\ufeff＝a1]{1,8}$/u);
  const any = fc.oneof(signs, anyText({ minLength: 1, maxLength: 30 }));
  const word = any.filter((text) => text.trim() !== '' && !text.includes('\0'));
  const optional = fc.oneof(fc.constant(''), word);
  const properties = fc
    .dictionary(fc.constantFrom('a', 'note', '=b'), fc.oneof(any, fc.integer()))
    .map((value) => JSON.stringify(value));
  const event = fc
    .tuple(
      word,
      word.filter((name) => name !== ''),
      word,
      optional,
      optional,
      properties,
    )
    .map(
      ([id, name, customer, customer_id, source, json]): ExportedEvent => [
        id,
        name,
        customer,
        customer_id,
        AT_US,
        AT_US,
        source,
        json,
      ],
    );

  it('states what was exported, whatever its texts are', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 4 }), async (events) => {
        expect(await imported(events)).to.deep.equal(events.map(asSent));
      }),
      { numRuns: 500 },
    );
  });

  it('has its ids: one that begins with a sign of a formula, and one with an apostrophe before it', async () => {
    const ids = ['-Xy9_abc', "'-Xy9_abc", "''-Xy9_abc", '=1;=2', "a;'=2", '@acme'];
    const events = ids.map((id): ExportedEvent => [id, 'n', id, '', AT_US, AT_US, '', '{"note":"a;=b, \'=c"}']);
    expect(await imported(events)).to.deep.equal(events.map(asSent));
  });
});
