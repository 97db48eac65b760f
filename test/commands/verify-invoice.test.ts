/** The program that checks invoices, as whoever gets a proof runs it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { VERIFIER } from '../support/verifier.ts';

describe('npm run verify-invoice', () => {
  const golden = join(import.meta.dirname, '..', 'golden');
  const [proof, events] = [join(golden, 'invoice-proof.json'), join(golden, 'invoice-proof-events.ndjson')];
  const directory = mkdtempSync(join(tmpdir(), 'farthing-test-'));
  after(() => rmSync(directory, { recursive: true }));
  const changed = (from: string, to: string) => {
    const text = readFileSync(proof, 'utf8');
    expect(text).to.include(from);
    const file = join(directory, 'proof.json');
    writeFileSync(file, text.replace(from, to));
    return file;
  };
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [VERIFIER, ...args], { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };

  it('ends with 0 where all agrees', () => {
    const { status, said } = run(proof, events);
    expect(status).to.equal(0);
    expect(said.split('\n')[0]).to.match(/^VERIFIED: invoice .*: all that can be computed agrees$/);
  });

  it('ends with 0 without events, and says that the quantities are taken as stated', () => {
    const { status, said } = run(proof);
    expect(status).to.equal(0);
    expect(said.split('\n')[0]).to.match(
      /^AMOUNTS AGREE: invoice .*: the quantities of \d+ lines? are taken as stated, and not counted from events$/,
    );
    expect(said).to.match(/its quantity of [0-9.]+: no events were given/);
    expect(said).to.not.include('VERIFIED');
  });

  it('says VERIFIED without events of an invoice without usage', () => {
    const document = JSON.parse(readFileSync(proof, 'utf8'));
    for (const [field, value] of Object.entries(document.invoice))
      if (/^\d+\.\d+$/.test(String(value))) document.invoice[field] = '0';
    Object.assign(document, { lines: [], coupons: [], taxes: [] });
    const file = join(directory, 'without-usage.json');
    writeFileSync(file, JSON.stringify(document));
    expect(run(file).said.split('\n')[0]).to.match(/^VERIFIED: /);
  });

  it('ends with 1 where something differs, and names line, field and digit', () => {
    const { status, said } = run(changed('"subtotal": "', '"subtotal": "9'), events);
    expect(status).to.equal(1);
    expect(said.split('\n')[0]).to.match(/^NOT VERIFIED: invoice .*: \d+ differences?$/);
    expect(said).to.match(
      /^DIFFERS: invoice: subtotal: stated 9\d+\.\d+, computed \d+\.\d+ \(first at digit 1 of 3 before the point/m,
    );
  });

  it('accepts no line whose seal was taken away, with forged events or without', () => {
    const document = JSON.parse(readFileSync(proof, 'utf8'));
    document.lines[0].seal = null;
    const file = join(directory, 'unsealed.json');
    writeFileSync(file, JSON.stringify(document));
    for (const given of [[events], []]) {
      const { status, said } = run(file, ...given);
      expect(status).to.equal(1);
      expect(said).to.match(/^DIFFERS: .*: seal: stated nothing/m);
    }
  });

  it('finds out a total whose tax is on no line', () => {
    const document = JSON.parse(readFileSync(proof, 'utf8'));
    for (const { line } of document.lines) delete line.tax_amount;
    for (const field of ['total', 'amount_due', 'amount_remaining'])
      document.invoice[field] = String(Number(document.invoice[field]) + 1000);
    document.invoice.total_tax = '1000';
    const file = join(directory, 'untaxed.json');
    writeFileSync(file, JSON.stringify(document));
    expect(run(file, events).status).to.equal(1);
  });

  it('takes nothing that is inside of a property for a number', () => {
    const text = readFileSync(events, 'utf8').replace('"properties":{"n":3,', '"properties":{"n":{"number":"3"},');
    const file = join(directory, 'events.ndjson');
    writeFileSync(file, text);
    const { status, said } = run(proof, file);
    expect(status).to.equal(1);
    expect(said).to.include('not counted: its n is no number');
  });

  it('ends with 2 where it cannot be checked', () => {
    expect(run().status).to.equal(2);
    expect(run('none.json').status).to.equal(2);
    expect(run(proof, '--frob').status).to.equal(2);
    expect(run(changed('"farthing-invoice-proof-1"', '"another"'), events)).to.deep.equal({
      status: 2,
      said: 'NOT CHECKED: the format is "another", and not farthing-invoice-proof-1\n',
    });
  });
});
