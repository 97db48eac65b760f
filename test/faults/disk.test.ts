/** That a disk of its own forgets what was not synced when the power is lost, and that it can be full; and files that break. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { register } from 'prom-client';
import { measureStores } from '../../storage/monitoring/store-metrics.ts';
import { ruleNamed } from '../ops/rules.ts';
import { evaluate, parseSamples } from '../support/promql.ts';
import { temporaryDirectory } from '../support/service.ts';
import { freshDatabase } from '../support/stores.ts';
import { mountDisk } from './disk.ts';
import { flip, tear, zero } from './files.ts';

describe('a disk of its own', () => {
  it('keeps what was synced and forgets the rest when the power is lost', async () => {
    const disk = await mountDisk({ megabytes: 64 });
    const file = openSync(join(disk.path, 'synced'), 'w');
    writeSync(file, 'first');
    fsyncSync(file);
    writeSync(file, ' second');
    closeSync(file);
    writeFileSync(join(disk.path, 'never'), 'never synced');
    const after = await disk.losePower();
    try {
      expect(readFileSync(join(after.path, 'synced'), 'utf8')).to.equal('first');
      expect(existsSync(join(after.path, 'never')) && readFileSync(join(after.path, 'never'), 'utf8')).to.be.oneOf([
        false,
        '',
      ]);
    } finally {
      await after.unmount();
    }
  });

  it('can be full for a while', async () => {
    const disk = await mountDisk({ megabytes: 64 });
    try {
      const free = await disk.fill();
      const write = () => writeFileSync(join(disk.path, 'more'), Buffer.alloc(2_000_000));
      expect(write).to.throw(/ENOSPC/);
      await free();
      expect(write).not.to.throw();
    } finally {
      await disk.unmount();
    }
  });

  it("is told by 'FarthingDiskNearlyFull' before it is full", async () => {
    const disk = await mountDisk({ megabytes: 64 });
    const { postgres, clickhouse, close } = await freshDatabase();
    try {
      measureStores({ postgres, clickhouse, data_dir: disk.path, clock: () => new Date() });
      const isFiring = async () => {
        const scrape = { at_seconds: 0, samples: parseSamples(await register.metrics()) };
        return evaluate(ruleNamed('FarthingDiskNearlyFull'), [scrape]).map(({ labels }) => labels.disk);
      };
      expect(await isFiring()).to.deep.equal([]);
      const free = await disk.fill();
      expect(await isFiring()).to.deep.equal(['data']);
      await free();
      expect(await isFiring()).to.deep.equal([]);
    } finally {
      await disk.unmount();
      await close();
    }
  });
});

describe('a file', () => {
  it('can be torn, zeroed, and have a bit flipped', () => {
    const directory = temporaryDirectory();
    const path = join(directory.path, 'file');
    const after = (change: () => void) => {
      writeFileSync(path, 'abcdef');
      change();
      return readFileSync(path, 'latin1');
    };
    expect(after(() => tear(path, { keep: 2 }))).to.equal('ab');
    expect(after(() => zero(path, { from: 2, length: 2 }))).to.equal('ab\0\0ef');
    expect(after(() => zero(path, { from: 4 }))).to.equal('abcd\0\0');
    expect(after(() => flip(path, { at: 0 }))).to.equal('`bcdef');
    directory.remove();
  });
});
