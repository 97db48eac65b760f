/** `npm run demo`: the real command, on made data, on files that cannot be read, on a running service, on the real trace. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { type DemoInvoice, differences } from '../../demo/invoices.ts';
import { expectedInvoices } from '../../demo/recompute.ts';
import { generateUsage, readUsage } from '../../demo/usage-file.ts';
import {
  type Command,
  processesBelow,
  ROOT,
  runScript,
  startServiceProcess,
  stillAlive,
  temporaryDirectory,
} from '../support/service.ts';

const TRACE = join(ROOT, '../shared/data/llm-inference-trace-code.csv');
const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';

describe('npm run demo', function () {
  this.timeout(120_000);
  const directory = temporaryDirectory();
  /** Where the temporary service keeps its data, so that the test sees that they are gone. */
  const settings = { TMPDIR: directory.path };
  const left = () => readdirSync(directory.path).filter((name) => name.startsWith('farthing-demo-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(directory.path, name), text);
    return join(directory.path, name);
  };

  after(() => directory.remove());

  it('bills made data, proves the invoice, and leaves nothing behind', async () => {
    const demo = runScript('demo', ['--rows', '2500', '--seed', '7'], settings);
    expect(await demo.ended, demo.stdout() + demo.stderr()).to.deep.equal({ code: 0, signal: null });
    expect(demo.stderr()).to.equal('');
    expect(demo.stdout()).to.match(/^events {7}2,500 sent in 3 batches/m);
    expect(demo.stdout()).to.match(/^re-send .* nothing changed/m);
    expect(demo.stdout()).to.match(/^billing .* every total equal the recomputation/m);
    expect(demo.stdout()).to.match(/^a year .* 23 invoices of three customers .* as computed/m);
    expect(left()).to.deep.equal([]);
  });

  it('names the line of what cannot be billed, and bills nothing', async () => {
    const future = file('future.csv', [HEADER, '2199-02-28 00:00:00,1,1'].join('\n'));
    const demo = runScript('demo', ['--file', future], settings);
    expect(await demo.ended).to.deep.equal({ code: 1, signal: null });
    expect(demo.stdout()).to.equal('');
    expect(demo.stderr().trimEnd()).to.match(/^demo: .*: line 2: .* is not over yet$/);
  });

  it('stops and removes its service on Ctrl-C', async () => {
    const demo = runScript('demo', ['--rows', '20000'], settings);
    await saidBy(demo, /^events /m);
    const processes = processesBelow(demo.pid);
    expect(processes.length).to.be.at.least(2);
    demo.child.kill('SIGINT');
    expect(await demo.ended).to.deep.equal({ code: 130, signal: null });
    expect(await stillAlive(processes)).to.deep.equal([]);
    expect(left()).to.deep.equal([]);
  });

  describe('on a running service', () => {
    let service: Awaited<ReturnType<typeof startServiceProcess>>;
    let running: Record<string, string>;
    before(async () => {
      service = await startServiceProcess({
        DATA_DIR: join(directory.path, 'service'),
        BILLING_INTERVAL_SECONDS: '1',
        BOOTSTRAP_API_KEY: 'sk_test_demo',
      });
      running = { ...settings, FARTHING_URL: service.url, FARTHING_API_KEY: 'sk_test_demo' };
    });
    after(async () => expect(await service.stop()).to.deep.equal({ code: 0, signal: null }));

    const billed = async (args: string[]) => {
      const demo = runScript('demo', args, running);
      expect(await demo.ended, demo.stdout() + demo.stderr()).to.deep.equal({ code: 0, signal: null });
      return demo.stdout();
    };

    it('finds everything there when it runs again', async () => {
      const totals: string[][] = [];
      for (let run = 0; run < 2; run++)
        totals.push(
          [...(await billed(['--rows', '1200'])).matchAll(/^ {2}(Invoice INV\S+|Total.*)/gm)].map(([, line]) => line!),
        );
      expect(totals[0]).to.have.length(4);
      expect(totals[1]).to.deep.equal(totals[0]);
    });

    it('says in one line that the key is wrong', async () => {
      const wrongKey = runScript('demo', [], { ...running, FARTHING_API_KEY: 'sk_wrong' });
      expect(await wrongKey.ended).to.deep.equal({ code: 1, signal: null });
      expect(wrongKey.stderr().trimEnd().split('\n')).to.have.length(1);
    });

    it('bills months apart, with CRLF, a last row without an end, and amounts of less than a cent', async () => {
      const rows = [
        '2023-01-31 23:59:59.9999999,1,1',
        '2023-03-01 00:00:00,5000000,1000',
        '2023-03-01 00:00:01.5,15000000,1001',
      ];
      const path = file('months.csv', [HEADER, ...rows].join('\r\n'));
      expect(await billed(['--file', path])).to.match(/^billing {6}4 invoices, 12 lines and every total/m);
    });

    // The real trace is no part of the project: this row is here where the file is.
    if (existsSync(TRACE))
      it(`bills ${basename(TRACE)}`, async () => {
        const usage = '8,819 calls, 18,059,974 context tokens, 245,896 generated tokens, as in the file';
        expect(await billed(['--file', TRACE])).to.contain(usage);
      });
  });
});

describe('what the demo does not read', () => {
  for (const [name, lines, said] of [
    [
      'a day that there is not',
      [HEADER, '2023-02-28 00:00:00,1,1', '2023-02-29 00:00:00,1,1'],
      /^x: line 3: .* is no instant/,
    ],
    ['tokens that are not whole', [HEADER, '2023-02-28 00:00:00,1.5,1'], /^x: line 2: must be a UTC timestamp/],
    [
      'an empty row in between',
      [HEADER, '2023-02-28 00:00:00,1,1', '', '2023-02-28 00:00:00,1,1'],
      /^x: line 3: must be/,
    ],
    ['another header', ['time,a,b', '2023-02-28 00:00:00,1,1'], /^x: line 1: the header must be/],
    ['no rows', [HEADER, ''], /^x: has no rows$/],
  ] as const) {
    it(`names the line of ${name}`, () => {
      expect(() => readUsage('x', lines.join('\n'))).to.throw(said);
    });
  }
});

describe('the check of the demo', () => {
  const rows = readUsage('x', [HEADER, '2023-01-10 00:00:00,1000001,1001', '2023-01-11 00:00:00,0,0'].join('\n')).rows;
  const expected = expectedInvoices(rows, '2023-01-01T00:00:00Z', '2023-02-01T00:00:00Z');
  const sold = new Map([
    ['p1', 'fee'],
    ['p2', 'calls'],
    ['p3', 'context_tokens'],
    ['p4', 'generated_tokens'],
  ] as const);
  const line = (price_id: string, quantity: string, amount: string) => ({
    price_id,
    quantity,
    amount,
    display_name: null,
  });
  const invoice = (fields: Partial<DemoInvoice>): DemoInvoice => ({
    id: 'inv',
    invoice_number: 'INV-1',
    invoice_status: 'FINALIZED',
    billing_reason: 'SUBSCRIPTION_CYCLE',
    period_start: '2023-01-01T00:00:00Z',
    period_end: '2023-02-01T00:00:00.000Z',
    subtotal: '3.53',
    total: '3.53',
    line_items: [line('p2', '2', '0'), line('p3', '1000001', '3.50'), line('p4', '1001', '0.030')],
    ...fields,
  });
  const opening = invoice({
    billing_reason: 'SUBSCRIPTION_CREATE',
    subtotal: '20',
    total: '20.00',
    line_items: [line('p1', '1', '20')],
  });

  // 1,000,000 at 0.000003 and 1 at 0.0000025 with 0.5 once: 3.5000025. Two packages of 0.015. Two calls at 0.002: 0.004.
  it('agrees with an invoice that is right, however its decimals are written', () => {
    expect(differences([opening, invoice({})], expected, sold)).to.deep.equal([]);
  });

  for (const [name, wrong] of [
    ['a cent in a line', invoice({ line_items: [line('p2', '2', '0.01'), ...invoice({}).line_items.slice(1)] })],
    ['a quantity', invoice({ line_items: [line('p2', '3', '0'), ...invoice({}).line_items.slice(1)] })],
    ['a fraction of a cent', invoice({ total: '3.531' })],
    ['a total', invoice({ total: '3.54' })],
    ['a line that is missing', invoice({ line_items: invoice({}).line_items.slice(1) })],
    ['a line too many', invoice({ line_items: [...invoice({}).line_items, line('p9', '0', '0')] })],
    ['a draft', invoice({ invoice_status: 'DRAFT' })],
    ['another period', invoice({ period_end: '2023-02-02T00:00:00Z' })],
  ] as const) {
    it(`names ${name}`, () => {
      expect(differences([opening, wrong], expected, sold)).to.be.an('array').that.is.not.empty;
    });
  }

  it('the made data are the same for the same seed and others for another', () => {
    const made = (seed: number) => generateUsage({ seed, rows: 200 });
    expect(made(1)).to.deep.equal(made(1));
    expect(made(1).digest).not.to.equal(made(2).digest);
    expect(made(3).rows).to.have.length(200);
  });
});

function saidBy({ child, stdout }: Command, pattern: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => pattern.test(stdout()) && resolve();
    child.stdout!.on('data', look);
    child.once('close', () => reject(new Error(`it ended without saying ${pattern}:\n${stdout()}`)));
    look();
  });
}
