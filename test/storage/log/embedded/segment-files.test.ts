/** Files of the embedded log: what is in them when, which of them are taken away, and what is said when one is not as it was. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type EmbeddedLogOptions, openEmbeddedLog } from '../../../../storage/log/embedded/embedded.ts';
import { openSegmentFiles } from '../../../../storage/log/embedded/segment-files.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';
import { entry, eventually, Reader, settled, textOf } from '../contract.ts';

describe('files of the embedded log', () => {
  let database: FreshDatabase;
  let place: string;
  let directory: string;
  beforeEach(async () => {
    database = await freshDatabase();
    place = mkdtempSync(join(tmpdir(), 'farthing-log-'));
    directory = join(place, 'log');
  });
  afterEach(async () => {
    await database.close();
    rmSync(place, { recursive: true });
  });

  const open = (more: Partial<EmbeddedLogOptions> = {}) =>
    openEmbeddedLog(database.postgres, {
      partition_count: 1,
      append_timeout_ms: 5_000,
      linger_ms: 0,
      sole_owner: true,
      directory,
      inline_bytes_max: 1_000,
      segment_bytes_max: 10_000,
      ...more,
    });
  const large = (text: string) => entry(0, text.padEnd(2_000, '.'));
  const files = () => readdirSync(directory).sort();
  const asked = async (sql: string) => (await database.postgres.raw(sql)).rows;

  it('keeps a small group in Postgres and a large one in a file, side by side in their order', async () => {
    const log = await open();
    await log.append([entry(0, 'small')]);
    await log.append([large('a'), entry(0, 'small, in a large group')]);
    await log.append([entry(0, 'last')]);
    expect(await asked(`select body is null as in_file, length from log_records order by "offset"`)).to.deep.equal([
      { in_file: false, length: null },
      { in_file: true, length: 2_004 },
      { in_file: true, length: 27 },
      { in_file: false, length: null },
    ]);
    expect(files()).to.have.length(1);
    const reader = new Reader();
    const consumer = await (await open({ sole_owner: false })).consume(reader);
    await reader.until(() => reader.records.length === 4);
    expect(reader.inOrder().map((record) => textOf(record).replaceAll('.', ''))).to.deep.equal([
      'small',
      'a',
      'small, in a large group',
      'last',
    ]);
    await consumer.stop();
    await log.close();
  });

  it('begins another file when one is full, and never goes on with one of an earlier process', async () => {
    const first = await open();
    for (let count = 0; count < 6; count++) await first.append([large(`${count}`)]);
    expect(files()).to.have.length(2);
    const before = files().map((name) => readFileSync(join(directory, name)));
    const second = await open();
    await second.append([large('again')]);
    expect(files()).to.have.length(3);
    expect(
      files()
        .slice(0, 2)
        .map((name) => readFileSync(join(directory, name))),
    ).to.deep.equal(before);
    await Promise.all([first.close(), second.close()]);
  });

  it('takes away at its start what no record refers to, and nothing else', async () => {
    const first = await open();
    for (let count = 0; count < 6; count++) await first.append([large(`${count}`)]);
    await first.close();
    const [old, young] = files();
    // Killed between making a file and writing its first record; and between a row and its file.
    writeFileSync(join(directory, '77.segment'), 'bytes that no row knows');
    const files_alone = await openSegmentFiles(database.postgres, { directory });
    await files_alone.write([Buffer.from('bytes without a record')]);
    await database.postgres.raw('insert into log_segments default values');
    await database.postgres.raw(`delete from log_records where "offset" < 5`);
    writeFileSync(join(directory, 'notes.txt'), 'not ours');
    const second = await open();
    expect(files()).to.deep.equal([young, 'notes.txt']);
    expect(await asked('select segment from log_segments')).to.deep.equal([{ segment: young!.split('.')[0] }]);
    expect(existsSync(join(directory, old!))).to.equal(false);
    await Promise.all([second.close(), files_alone.close()]);
  });

  it('takes a file away when the consumer has gone far enough past it', async () => {
    const log = await open({ batch_events_max: 500 });
    await log.append([large('old')]);
    const [old] = files();
    const reader = new Reader();
    const consumer = await log.consume(reader);
    // A new file is begun, and the first one is behind more records than are kept.
    for (let round = 0; round < 12; round++) {
      await log.append(Array.from({ length: 100 }, () => entry(0, 'x'.repeat(100))));
      await settled(log);
    }
    await eventually(async () => {
      await log.append([entry(0, 'one more')]);
      if (existsSync(join(directory, old!))) throw new Error('the old file is still there');
    });
    const referred = await asked(
      "select distinct segment || '.segment' as name from log_records where segment is not null",
    );
    expect(files()).to.include.members(referred.map(({ name }: { name: string }) => name));
    expect(reader.errors).to.deep.equal([]);
    await consumer.stop();
    await log.close();
  });

  it('does not let the row of a file go while a record refers to it', async () => {
    const log = await open();
    await log.append([large('kept')]);
    const refused = await database.postgres.raw('delete from log_segments').catch((error: Error) => error);
    expect(String(refused)).to.match(/violates foreign key constraint/);
    await log.close();
  });

  const harms: Record<string, { harm: (path: string) => void; says: RegExp }> = {
    'is missing': { harm: (path) => rmSync(path), says: /segment \d+ of the event log cannot be read: ENOENT/ },
    'is cut short': { harm: (path) => truncateSync(path, 2_500), says: /is damaged: 2004 bytes at 2004/ },
    'has other bytes': {
      harm: (path) => {
        const bytes = readFileSync(path);
        bytes[2_100]! ^= 1;
        writeFileSync(path, bytes);
      },
      says: /is damaged: 2004 bytes at 2004/,
    },
  };
  for (const [what, { harm, says }] of Object.entries(harms)) {
    it(`says so when a file ${what}, steps over nothing, and goes on when it is back`, async () => {
      const log = await open();
      await log.append([large('a')]);
      await log.append([large('b')]);
      await log.append([large('c')]);
      await log.close();
      const path = join(directory, files()[0]!);
      const good = readFileSync(path);
      harm(path);
      const again = await open({ batch_events_max: 1 });
      const reader = new Reader();
      const consumer = await again.consume(reader);
      await reader.until(() => reader.errors.length >= 2);
      expect(String(reader.errors[1])).to.match(says);
      expect(reader.records.map((record) => textOf(record)[0]).join()).to.equal(what === 'is missing' ? '' : 'a');
      writeFileSync(path, good);
      await reader.until(() => reader.records.length === 3);
      expect(reader.records.map((record) => textOf(record)[0]).join()).to.equal('a,b,c');
      await consumer.stop();
      await again.close();
    });
  }

  it('refuses records in files when it is opened without their directory', async () => {
    const log = await open();
    await log.append([large('a')]);
    await log.close();
    const other = await openEmbeddedLog(database.postgres, { partition_count: 1, append_timeout_ms: 5_000 });
    const reader = new Reader();
    const consumer = await other.consume(reader);
    await reader.until(() => reader.errors.length > 0);
    expect(String(reader.errors[0])).to.match(/opened without their directory/);
    await consumer.stop();
    await other.close();
  });

  it('answers 503 while no file can be made, and begins another one afterwards', async () => {
    const log = await open();
    await log.append([large('a')]);
    rmSync(directory, { recursive: true });
    writeFileSync(directory, 'in the way');
    for (let count = 0; count < 3; count++) await log.append([large('fills the open file')]);
    const refused = await log.append([large('b')]).catch((error: unknown) => error);
    expect((refused as { code: string }).code).to.equal('service_unavailable');
    await log.append([entry(0, 'a small one needs no file')]);
    rmSync(directory);
    const back = await open();
    await log.append([large('c')]);
    expect(files()).to.have.length(1);
    await Promise.all([log.close(), back.close()]);
  });
});
