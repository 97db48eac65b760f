/** Blocks as the engine reads them: every value comes back as it was. */
import { expect } from 'chai';
import {
  bits64Column,
  decimalColumn,
  instantColumn,
  int64Column,
  labelColumn,
  type NativeColumn,
  nullableColumn,
  textArrayColumn,
  textColumn,
  tupleColumn,
  uint16Column,
  uint32Column,
  uint64Column,
} from '../../../storage/events/native.ts';
import { writeRows } from '../../../storage/events/rows.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

type Row = { id: number; say: string; scaled: bigint; words: string[] };

const SCALE = 10n ** 24n;
const TEXTS = [
  '',
  'plain',
  'tab\tline\nreturn\r back\\slash \0 quote\' "',
  'é',
  '日本語 🙂',
  'x'.repeat(127),
  'x'.repeat(128),
  'é'.repeat(100),
  `${'long '.repeat(10_000)}end`,
  '\n\nDROP TABLE native_test',
];
const DECIMALS = [
  0n,
  1n,
  -1n,
  SCALE,
  -SCALE,
  123456789012345678901234567890n,
  -(10n ** 75n),
  10n ** 75n,
  2n ** 64n,
  -(2n ** 128n),
];

const COLUMNS: NativeColumn<Row>[] = [
  uint32Column('id', (row) => row.id),
  textColumn('say', (row) => row.say),
  labelColumn('tag', (row) => row.say),
  uint16Column('small', (row) => row.id % 65_536),
  uint64Column('large', (row) => row.id * 1e11 + 1),
  int64Column('signed', (row) => (row.id % 2 === 0 ? 1 : -1) * (row.id * 1e11 + 1)),
  bits64Column(
    'bits',
    () => 0xffffffff,
    (row) => row.id,
  ),
  instantColumn('at', 6, (row) => -1 + row.id * 1_000_000),
  decimalColumn('amount', 24, (row) => row.scaled),
  nullableColumn('perhaps', 24, (row) => (row.id % 2 === 0 ? null : row.scaled)),
  tupleColumn('pair', [int64Column('first', (row) => -row.id), textColumn('second', (row) => row.say)]),
  textArrayColumn('words', (row) => row.words),
];

describe('native blocks', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
    const structure = COLUMNS.map((column) => `${column.name} ${column.type}`).join(', ');
    await database.clickhouse.command({
      query: `CREATE TABLE native_test (${structure}) ENGINE = MergeTree ORDER BY id`,
    });
  });
  after(() => database.close());
  beforeEach(() => database.clickhouse.command({ query: 'TRUNCATE TABLE native_test' }));

  const write = (rows: Row[], writer: string) => {
    const attempt = { writer, attempt: 1n };
    return writeRows(database.clickhouse, { table: 'native_test', columns: COLUMNS }, { rows, attempt });
  };
  const read = async (what: string) => {
    const answer = await database.clickhouse.query({
      query: `SELECT ${what} FROM native_test ORDER BY id`,
      format: 'JSONCompactEachRow',
    });
    return answer.json<unknown[]>();
  };

  it('bring back texts of every length and sign', async () => {
    await write(
      TEXTS.map((say, id) => ({ id, say, scaled: 0n, words: TEXTS.slice(0, id) })),
      'texts',
    );
    const back = await read('say, tag, pair.2, words');
    expect(back).to.deep.equal(TEXTS.map((say, id) => [say, say, say, TEXTS.slice(0, id)]));
  });

  it('bring back numbers to the last digit', async () => {
    await write(
      DECIMALS.map((scaled, id) => ({ id, say: '', scaled, words: [] })),
      'numbers',
    );
    const back = await read('isNull(perhaps), large, signed, toString(bits), toUnixTimestamp64Micro(at), small');
    const sign = (id: number) => (id % 2 === 0 ? 1 : -1);
    expect(back).to.deep.equal(
      DECIMALS.map((_scaled, id) => [
        id % 2 === 0 ? 1 : 0,
        String(id * 1e11 + 1),
        String(sign(id) * (id * 1e11 + 1)),
        String((0xffffffffn << 32n) | BigInt(id)),
        String(-1 + id * 1_000_000),
        id,
      ]),
    );
    const decimals = await read('toString(amount), toString(perhaps)');
    for (const [id, scaled] of DECIMALS.entries()) {
      expect(decimals[id]![0], `row ${id}`).to.equal(plain(scaled));
      expect(decimals[id]![1], `row ${id}`).to.equal(id % 2 === 0 ? null : plain(scaled));
    }
  });

  it('hold many rows and many labels', async () => {
    const rows = Array.from({ length: 70_000 }, (_, id) => ({
      id,
      say: `label ${id % 66_000}`,
      scaled: BigInt(id),
      words: [],
    }));
    await write(rows, 'many');
    const wrong = await database.clickhouse.query({
      query: `SELECT count() AS n, countIf(say != concat('label ', toString(id % 66000)) OR toString(tag) != say) AS wrong FROM native_test`,
      format: 'JSONEachRow',
    });
    expect(await wrong.json()).to.deep.equal([{ n: '70000', wrong: '0' }]);
  });
});

/** The decimal text of an integer times 10^-24, as the engine writes it: no zeros at the end. */
function plain(scaled: bigint): string {
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(25, '0');
  const fraction = digits.slice(-24).replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -24)}${fraction === '' ? '' : `.${fraction}`}`;
}
