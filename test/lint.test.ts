// Proves that oxlint.config.mjs finds what it is there for: each faulty line below is linted as if it stood in that file.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';

const ROOT = join(import.meta.dirname, '..');
const { formattedFiles } = (await import(pathToFileURL(join(ROOT, 'process/formatted-files.mjs')).href)) as {
  formattedFiles: (root: string) => string[];
};
const { ORDER } = (await import(pathToFileURL(join(ROOT, 'oxlint.config.mjs')).href)) as {
  ORDER: Record<string, string[]>;
};
const FLOATING = 'typescript(no-floating-promises)';
const MISUSED = 'typescript(no-misused-promises)';
const RESTRICTED = 'eslint(no-restricted-imports)';
const KNEX = "import type { Knex } from 'knex';\n";
const MODEL = "import { Model } from 'objection';\nclass Row extends Model {}\n";

/** File, faulty text, the rule that must speak; null where the text is right. */
const CASES: [file: string, text: string, rule: string | null][] = [
  ['storage/knex-insert.ts', `${KNEX}export const f = async (db: Knex) => { db('t').insert({ a: 1 }); };`, FLOATING],
  ['storage/knex-raw.ts', `${KNEX}export const f = async (db: Knex) => { db.raw('select 1'); };`, FLOATING],
  [
    'storage/knex-where.ts',
    `${KNEX}export const f = async (db: Knex) => { db('t').delete().where('id', 1); };`,
    FLOATING,
  ],
  [
    'storage/model-patch.ts',
    `${MODEL}export const f = async () => { Row.query().patch({}).where('id', 1); };`,
    FLOATING,
  ],
  ['storage/awaited.ts', `${MODEL}export const f = async () => { await Row.query().patch({}).where('id', 1); };`, null],
  [
    'storage/refined.ts',
    `${KNEX}export const f = async (db: Knex) => { const q = db('t'); void q.where('id', 1); return q; };`,
    null,
  ],
  ['storage/condition.ts', `${KNEX}export const f = async (db: Knex) => (db('t').first() ? 1 : 2);`, MISUSED],
  [
    'storage/each.ts',
    `${KNEX}export const f = (db: Knex) => [1].forEach(async (id) => { await db('t').where({ id }); });`,
    MISUSED,
  ],
  ['api/await-nothing.ts', 'export const f = async () => await (3 as number);', 'typescript(await-thenable)'],
  ['api/loose.ts', 'export const f = (a: unknown) => a == null;', 'eslint(eqeqeq)'],
  ['api/any.ts', 'export const f = (a: any) => a;', 'typescript(no-explicit-any)'],
  ['test/any.ts', 'export const f = (a: any) => a;', 'typescript(no-explicit-any)'],
  ['console/verifies.ts', "import { f } from '../commands/verify-invoice.mjs';\nexport const g = f;", null],
  ['console/audits.ts', "import { f } from '../commands/audit.ts';\nexport const g = f;", RESTRICTED],
  ['api/talks.ts', "console.log('here');", 'eslint(no-console)'],
  ['api/main.ts', "console.log('http://localhost');", null],
  [
    'core/clean.ts',
    "import { z } from 'zod';\nimport { Decimal } from './decimal.ts';\nexport const f = [z, Decimal];",
    null,
  ],
  ['core/foundation/decimal.ts', "export { Decimal } from 'decimal.js';", null],
  ['core/deep/reads.ts', "import { readFileSync } from 'node:fs';\nexport const f = readFileSync;", RESTRICTED],
  ['core/deep/asks.ts', "import type { Knex } from 'knex';\nexport type F = Knex;", RESTRICTED],
  ['core/deep/counts.ts', "import { Decimal } from 'decimal.js';\nexport const f = Decimal;", RESTRICTED],
  ['core/deep/stores.ts', "import { f } from '../../storage/awaited.ts';\nexport const g = f;", RESTRICTED],
  ['core/catalog/price/up.ts', "import { f } from '../../invoicing/invoice/down.ts';\nexport const g = f;", RESTRICTED],
  ['core/catalog/price/type.ts', "import type { F } from '../../rating/down.ts';\nexport type G = F;", RESTRICTED],
  ['core/foundation/up.ts', "import { g } from '../metering/clean.ts';\nexport const f = g;", RESTRICTED],
  [
    'core/catalog/price/reads.ts',
    "import { readFileSync } from 'node:fs';\nexport const f = readFileSync;",
    RESTRICTED,
  ],
  ['core/invoicing/invoice/down.ts', "import { g } from '../../catalog/price/clean.ts';\nexport const f = g;", null],
  ['actions/catalog/plans/up.ts', "import { f } from '../../lifecycle/down.ts';\nexport const g = f;", RESTRICTED],
  ['actions/catalog/plans/asks.ts', "import type { Knex } from 'knex';\nexport type F = Knex;", RESTRICTED],
  ['actions/catalog/plans/clean.ts', "import { f } from '../../../core/rating/down.ts';\nexport const g = f;", null],
  ['actions/lifecycle/down.ts', "import { g } from '../catalog/plans/clean.ts';\nexport const f = g;", null],
  ['core/catalog/price/beside.ts', "import { f } from '../payments/clean.ts';\nexport const g = f;", null],
  [
    'core/invoicing/document/translations/up.ts',
    "import { f } from '../../../platform/clean.ts';\nexport const g = f;",
    RESTRICTED,
  ],
  ['actions/credits/grants/up.ts', "import { f } from '../../alerts/clean.ts';\nexport const g = f;", RESTRICTED],
  ['actions/credits/grants/beside.ts', "import { f } from '../alerts/clean.ts';\nexport const g = f;", null],
  ['api/catalog/plans/up.ts', "import { f } from '../../lifecycle/clean.ts';\nexport const g = f;", RESTRICTED],
  ['api/catalog/plans/asks.ts', "import type { Knex } from 'knex';\nexport type F = Knex;", RESTRICTED],
  ['api/catalog/plans/beside.ts', "import { f } from '../lifecycle/clean.ts';\nexport const g = f;", null],
  ['api/lifecycle/down.ts', "import { g } from '../catalog/plans/clean.ts';\nexport const f = g;", null],
  ['api/http/clean.ts', "import { f } from '../../actions/lifecycle/down.ts';\nexport const g = f;", null],
  ['api/http/up.ts', "import { f } from '../foundation/clean.ts';\nexport const g = f;", RESTRICTED],
  ['api/operations/tasks/up.ts', "import { f } from '../../resources.ts';\nexport const g = f;", RESTRICTED],
  ['api/resources.ts', "import { f } from './operations/tasks/clean.ts';\nexport const g = f;", null],
  ['storage/queue/up.ts', "import { f } from '../usage/clean.ts';\nexport const g = f;", RESTRICTED],
  ['storage/queue/down.ts', "import { f } from '../models/catalog/clean.ts';\nexport const g = f;", null],
  ['storage/log/embedded/beside.ts', "import { f } from '../events/clean.ts';\nexport const g = f;", null],
  ['storage/log/embedded/acts.ts', "import { f } from '../../../actions/clean.ts';\nexport const g = f;", RESTRICTED],
  ['storage/foundation/stores.ts', "import type { F } from '../log/clean.ts';\nexport type G = F;", null],
  ['storage/models/catalog/up.ts', "import { f } from '../reporting/clean.ts';\nexport const g = f;", RESTRICTED],
  ['storage/models/catalog/acts.ts', "import { f } from '../../../actions/clean.ts';\nexport const g = f;", RESTRICTED],
  ['storage/models/operations/down.ts', "import { f } from '../reporting/clean.ts';\nexport const g = f;", null],
  ['storage/models/operations/up.ts', "import { f } from '../../reporting/clean.ts';\nexport const g = f;", RESTRICTED],
  ['storage/models/operations/lower.ts', "import { f } from '../../log/clean.ts';\nexport const g = f;", null],
  ['storage/acts.ts', "import { f } from '../actions/clean.ts';\nexport const g = f;", RESTRICTED],
  ['actions/clean.ts', "import { f } from '../storage/awaited.ts';\nexport const g = f;", null],
  ['actions/listens.ts', "import { f } from '../api/loose.ts';\nexport const g = f;", RESTRICTED],
  ['actions/asks.ts', "import type { Knex } from 'knex';\nexport type F = Knex;", RESTRICTED],
  ['api/deep/works.ts', "import { f } from '../../pipeline/clean.ts';\nexport const g = f;", RESTRICTED],
  ['pipeline/clean.ts', "import { g } from '../actions/clean.ts';\nexport const f = g;", null],
  ['pipeline/ticks.ts', "import { f } from '../scheduler/clean.ts';\nexport const g = f;", RESTRICTED],
  ['scheduler/clean.ts', "import { g } from '../actions/clean.ts';\nexport const f = g;", null],
  ['scheduler/serves.ts', "import { f } from '../api/loose.ts';\nexport const g = f;", RESTRICTED],
  ['integrations/stores.ts', "import { f } from '../storage/awaited.ts';\nexport const g = f;", RESTRICTED],
  ['process/works.ts', "import { g } from '../actions/clean.ts';\nexport const f = g;", RESTRICTED],
  ['actions/starts.ts', "import { f } from '../process/clean.ts';\nexport const g = f;", RESTRICTED],
  ['process/clean.ts', "import { f } from '../storage/awaited.ts';\nexport const g = f;", null],
  ['storage/traces.ts', "import { f } from '../tracing/clean.ts';\nexport const g = f;", null],
  ['tracing/clean.ts', 'export const f = 1;', null],
  ['tracing/stores.ts', "import { f } from '../storage/awaited.ts';\nexport const g = f;", RESTRICTED],
  ['core/deep/traces.ts', "import { f } from '../../tracing/clean.ts';\nexport const g = f;", RESTRICTED],
  ['commands/clean.ts', "import { f } from '../pipeline/clean.ts';\nexport const g = f;", null],
  ['pipeline/types.ts', "import { f } from '../commands/clean.ts';\nexport const g = f;", RESTRICTED],
  ['core/shape.ts', "import type { B } from './shape-b.ts';\nexport type A = B | 1;", 'import(no-cycle)'],
  ['core/shape-b.ts', "import type { A } from './shape.ts';\nexport type B = A[];", 'import(no-cycle)'],
  ['core/round.ts', "import { b } from './about.ts';\nexport const a = () => b;", 'import(no-cycle)'],
  ['core/about.ts', "import { a } from './round.ts';\nexport const b = () => a;", 'import(no-cycle)'],
];

describe('the linter', function () {
  this.timeout(60_000);
  let dir: string;
  let findings: { filename: string; code: string }[];

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-lint-'));
    for (const name of ['oxlint.config.mjs', 'tsconfig.json', 'package.json'])
      cpSync(join(ROOT, name), join(dir, name));
    symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
    for (const [file, text] of CASES) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), `${text}\n`);
    }
    const folders = [...new Set(CASES.map(([file]) => file.split('/')[0] ?? ''))];
    const oxlint = join(ROOT, 'node_modules/oxlint/bin/oxlint');
    const run = spawnSync(
      process.execPath,
      [oxlint, '-c', 'oxlint.config.mjs', '--type-aware', '-f', 'json', ...folders],
      {
        cwd: dir,
        encoding: 'utf8',
      },
    );
    findings = JSON.parse(run.stdout).diagnostics;
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  for (const [file, , rule] of CASES) {
    it(rule === null ? `leaves ${file} alone` : `finds ${rule} in ${file}`, () => {
      const found = findings.filter(({ filename }) => filename === file).map(({ code }) => code);
      expect([...new Set(found)].filter((code) => !code.startsWith('unicorn('))).to.deep.equal(
        rule === null ? [] : [rule],
      );
    });
  }
});

describe('the order of the folders in a layer', () => {
  const sources = listTracked('*.ts', '*.mjs');

  for (const [layer, order] of Object.entries(ORDER)) {
    const paths = sources
      .filter((file) => file.startsWith(`${layer}/`))
      .map((file) => file.slice(layer.length + 1).split('/'));

    it(`has a place for each folder of ${layer}`, () => {
      const folders = new Set(paths.filter(({ length }) => length > 1).map(([folder]) => folder));
      expect(order).to.include.members([...folders]);
    });

    it(`reaches each file of ${layer}: its patterns go three folders deep`, () => {
      expect(paths.filter(({ length }) => length > 4).map((path) => path.join('/'))).to.deep.equal([]);
    });
  }
});

describe('what the tools of the repository touch', () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-fix-'));
    for (const name of ['biome.json', 'package.json']) cpSync(join(ROOT, name), join(dir, name));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  it('is each folder with sources', () => {
    const folders = new Set(
      listTracked('*.ts', '*.mjs').flatMap((file) => (file.includes('/') ? [file.slice(0, file.indexOf('/'))] : [])),
    );
    const [, named] = /"\{([a-z,]+)\}\/\*\*/.exec(readFileSync(join(ROOT, 'biome.json'), 'utf8')) ?? [];
    expect(named!.split(',')).to.include.members([...folders]);
  });

  it('is all of the folder where no data is', () => {
    expect(formattedFiles(dir)).to.deep.equal(['.']);
  });

  it('is never a data directory, whatever it is called: it is neither rewritten nor shown', () => {
    const secret = '{"postgres_url":   "postgres://farthing:the-password@localhost"}';
    const files = [
      '.farthing/stores.json',
      'data/stores.json',
      'elsewhere/clickhouse/store/format.json',
      // Within sources, beside them, and where nothing runs any more.
      'storage/data/stores.json',
      'storage/data/clickhouse/data/store/serialization.json',
      'sql/stores.json',
      'sql/log/1.json',
      'bench/run/clickhouse/data/store/serialization.json',
      'stores.json',
    ];
    for (const file of files) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), secret);
    }
    const sources = ['core/a.ts', 'storage/a.ts', 'sql/migrate.ts'];
    for (const file of sources) {
      mkdirSync(dirname(join(dir, file)), { recursive: true });
      writeFileSync(join(dir, file), 'export const a   = 1');
    }
    // Of a folder that is both git knows the sources.
    for (const args of [
      ['init', '-q'],
      ['add', 'sql/migrate.ts'],
    ])
      spawnSync('git', args, { cwd: dir });
    const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
    const checked = spawnSync(process.execPath, [biome, 'check', ...formattedFiles(dir)], {
      cwd: dir,
      encoding: 'utf8',
    });
    expect(checked.stdout + checked.stderr)
      .to.include('core/a.ts')
      .and.to.include('sql/migrate.ts')
      .and.not.to.include('the-password');
    spawnSync(process.execPath, [biome, 'check', '--write', ...formattedFiles(dir)], { cwd: dir });
    for (const file of sources) expect(readFileSync(join(dir, file), 'utf8')).to.equal('export const a = 1;\n');
    for (const file of files) expect(readFileSync(join(dir, file), 'utf8')).to.equal(secret);
  });
});

function listTracked(...patterns: string[]): string[] {
  return spawnSync('git', ['ls-files', ...patterns], { cwd: ROOT, encoding: 'utf8' })
    .stdout.trim()
    .split('\n');
}
