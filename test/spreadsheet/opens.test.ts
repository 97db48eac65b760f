/**
 * What LibreOffice makes of our files: opened in Calc the columns of money add up to what the interface says, to the digit, and nothing in them is a
 * formula (docs/rules/exports.md, "Formulas"). Needs `soffice` (Debian: libreoffice-calc-nogui), so it is asked for by name.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { csvRecords } from '../support/csv-records.ts';
import { fixed, startWorld, tiers, type World } from '../support/world.ts';

const MARCH = 'start_time=2026-03-01T00:00:00Z&end_time=2026-04-01T00:00:00Z';
/** Commas, quotes, UTF-8, from the first line on; numbers as numbers, whatever the language of the machine. */
const AS_CSV = 'CSV:44,34,76,1,,1033,false,true';

type Cell = {
  readonly value: string;
  readonly isNumber: boolean;
  readonly isDate: boolean;
  readonly isFormula: boolean;
};

describe('a spreadsheet', function () {
  this.timeout(180_000);
  let world: World;
  let dir: string;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-sheet-'));
    world = await startWorld({ now: '2026-02-01T00:00:00Z' });
    await world.meter('tokens');
    await world.plan('Pro', [
      fixed('19.90', { invoice_cadence: 'ADVANCE' }),
      tiers('tokens', [
        [3, '0.37'],
        [null, '0.013', '1'],
      ]),
    ]);
    await world.on('2026-03-01');
    for (const name of ['acme', '=1+2', '-Größe; "GmbH"', '+49 30', '@sum\n=1+1']) {
      await world.subscribe(name, 'Pro');
      await world.use(name, 'tokens', 12_345, { at: '2026-03-10T10:00:00Z' });
    }
    await world.on('2026-04-01');
    await world.finalize();
    world.at('2026-04-02');
    await world.waitForPipeline();
  });
  after(async () => {
    await world.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** By the names of its columns, as Calc has them. */
  async function opened(path: string): Promise<Record<string, Cell>[]> {
    const { status, text } = await world.api.request('GET', path);
    expect(status, text).to.equal(200);
    writeFileSync(join(dir, 'file.csv'), text);
    const profile = `-env:UserInstallation=file://${join(dir, 'profile')}`;
    const convert = ['--headless', '--convert-to', 'fods', `--infilter=${AS_CSV}`, '--outdir', dir];
    await promisify(execFile)('soffice', [profile, ...convert, join(dir, 'file.csv')]);
    const [head, ...rows] = rowsOf(readFileSync(join(dir, 'file.fods'), 'utf8'));
    return rows.map((cells) => Object.fromEntries(head!.map(({ value }, column) => [value, cells[column]!])));
  }

  const total = (rows: Record<string, Cell>[], column: string) =>
    sumDecimals(
      rows.map((row) => {
        expect(row[column]!.isNumber, `${column}: ${row[column]!.value}`).to.equal(true);
        return new Decimal(row[column]!.value);
      }),
    ).toFixed();

  it('shows the sums of the invoices', async () => {
    const rows = await opened('/exports/invoice?start_time=2026-03-01T00:00:00Z&end_time=2026-04-02T00:00:00Z');
    const { items } = await world.get('/invoices?limit=100');
    expect(rows).to.have.length(items.length);
    for (const column of ['subtotal', 'total', 'amount_remaining'] as const)
      expect(total(rows, column), column).to.equal(sumDecimals(items.map((one) => new Decimal(one[column]))).toFixed());
  });

  it('shows the usage and its cost', async () => {
    const rows = await opened(`/exports/usage_analytics?${MARCH}`);
    expect(rows).to.have.length(5);
    expect(total(rows, 'total_usage')).to.equal('61725');
    const { items } = await world.get('/invoices?limit=100');
    const lines = items.flatMap(({ line_items }) => line_items!);
    const usage = lines.filter(({ price_type }) => price_type === 'USAGE');
    const rounded = rows.map((row) => new Decimal(row.total_cost!.value).toDecimalPlaces(2));
    expect(sumDecimals(rounded).toFixed()).to.equal(
      sumDecimals(usage.map(({ amount }) => new Decimal(amount))).toFixed(),
    );
  });

  it('reads the first example of the documentation with its names and dates', async () => {
    const page = readFileSync(new URL('../../docs/rules/exports.md', import.meta.url), 'utf8');
    const path = /\$URL\/v1(\/exports\/[^"]+)"/.exec(page)![1]!;
    const rows = await opened(path);
    expect(rows).to.have.length(5);
    expect(rows.map((row) => row.customer_external_id!.value)).to.include('acme');
    for (const row of rows) {
      expect([row.start_time!.isDate, row.start_time!.value]).to.deep.equal([true, '2026-03-01']);
      expect(row.total_cost!.isNumber).to.equal(true);
    }
  });

  it('opens every export with all its columns, and no cell of it is a formula', async () => {
    const until = 'start_time=2026-03-01T00:00:00Z&end_time=2026-04-02T00:00:00Z&instant_format=spreadsheet';
    for (const path of [
      ...['invoice', 'invoice_lines', 'payments', 'credit_notes', 'credit_topups', 'credit_usage'].map(
        (kind) => `/exports/${kind}?${until}`,
      ),
      '/exports/customers?instant_format=spreadsheet',
      '/exports/subscriptions?instant_format=spreadsheet',
    ]) {
      const { text } = await world.api.request('GET', path);
      const rows = await opened(path);
      expect(rows, path).to.have.length(csvRecords(text).length);
      for (const row of rows) {
        expect(Object.keys(row), path).to.have.length(text.split('\r\n')[0]!.split(',').length);
        expect(Object.values(row).filter(({ isFormula }) => isFormula)).to.deep.equal([]);
      }
    }
  });

  it('finds no formula in what people and producers have written', async () => {
    for (const path of [
      `/exports/usage_analytics?${MARCH}`,
      `/exports/events?${MARCH}`,
      '/events/usage/export?amounts=true&start_time=2026-03-01&end_time=2026-04-01',
    ]) {
      const rows = await opened(path);
      expect(rows.length, path).to.be.greaterThan(4);
      const formulas = rows.flatMap((row) => Object.values(row).filter(({ isFormula }) => isFormula));
      expect(formulas, path).to.deep.equal([]);
    }
  });
});

/** Of the flat file of OpenDocument: what repeats is there as often as it says, empty cells too. */
function rowsOf(text: string): Cell[][] {
  const table = /<table:table [\s\S]*?<\/table:table>/.exec(text)![0];
  return [...table.matchAll(/<table:table-row[^>]*>([\s\S]*?)<\/table:table-row>/g)]
    .map(([, row]) =>
      [...row!.matchAll(/<table:table-cell([^>]*?)(?:\/>|>([\s\S]*?)<\/table:table-cell>)/g)].flatMap(cellsOf),
    )
    .filter((cells) => cells.some(({ value }) => value !== ''));
}

function cellsOf([, attributes, content = '']: RegExpMatchArray): Cell[] {
  const attribute = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(attributes!)?.[1];
  const shown = [...content.matchAll(/<text:p>([\s\S]*?)<\/text:p>/g)].map(([, paragraph]) => paragraph).join('\n');
  const cell = {
    value: attribute('office:value') ?? attribute('office:date-value') ?? shown,
    isDate: attribute('office:value-type') === 'date',
    isNumber: attribute('office:value-type') === 'float',
    isFormula: attribute('table:formula') !== undefined,
  };
  // The rest of a row is one cell that repeats thousands of times.
  const times = Number(attribute('table:number-columns-repeated') ?? 1);
  return Array<Cell>(times > 1000 ? 1 : times).fill(cell);
}
