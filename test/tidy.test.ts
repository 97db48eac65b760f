// What a linter cannot know about this house (ARCHITECTURE.md). Each rule says its reason when it is broken; an exception
// is a line in the rule's own list, with a reason of its own.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { readConfig } from '../config.ts';
import { measureHouse, RATCHET } from './support/house.ts';

const ROOT = join(import.meta.dirname, '..');
const { ORDER } = (await import(pathToFileURL(join(ROOT, 'oxlint.config.mjs')).href)) as {
  ORDER: Record<string, string[]>;
};
const OWN = 'test/tidy.test.ts';
const NOT_OURS = [
  'node_modules',
  '.git',
  '.farthing',
  'coverage',
  'console-dist',
  'package-lock.json',
  'LICENSE',
  '.env',
];
/** Made by `npm run check` from the OpenAPI document. */
const MADE = 'console/client/openapi.d.ts';

const files = filesBelow(ROOT);
const code = files.filter((file) => /\.(tsx?|mjs)$/.test(file) && file !== OWN);
const production = code.filter((file) => !/^(test|bench)\//.test(file) && file !== 'run.mjs');
const inFolders = (...folders: string[]) =>
  production.filter((file) => folders.some((each) => file.startsWith(`${each}/`)));

/** No line of these files may match; `except` lists files with the reason why they may. */
type LineRule = { name: string; why: string; in: string[]; never: RegExp; except?: Record<string, string> };

const LINE_RULES: LineRule[] = [
  {
    name: 'a model is asked through its tenant and environment',
    why: 'a bare .query() reads every tenant; use the model’s own questions, which are scoped by construction',
    in: production,
    never: /\b(?:[A-Z]\w*|model|this)\.(?:query|relatedQuery|knexQuery)\(|\.\$(?:query|relatedQuery)\(/,
    except: { 'storage/models/foundation/statements.ts': 'the one place where the owner is added' },
  },
  {
    name: 'a statement of SQL stands in storage or sql',
    why: 'storage is the only code that speaks SQL: give the statement a name there',
    in: inFolders('core', 'actions', 'integrations', 'api', 'pipeline', 'scheduler', 'process', 'commands'),
    never: /\b(?:transaction|trx|database|postgres|knex)\.raw\(/,
  },
  {
    name: 'a record is written through add, addAll and change',
    why: 'they tell the audit log who changed what, in the same transaction; a bare patch tells nobody',
    in: [...inFolders('actions', 'api', 'scheduler', 'commands'), ...inFolders('storage/models')],
    never:
      /\.(?:patch|insert|patchAndFetch\w*|updateAndFetch\w*|insertAndFetch|insertGraph|upsertGraph)\(|\)\.delete\(\)/,
    except: {
      'storage/models/foundation/statements.ts': 'the one place where it is told',
      'storage/models/foundation/insert-statements.ts': 'its inserts',
      'actions/foundation/workflows/run.ts': 'how far a workflow is, which is not audited',
      'storage/models/invoicing/invoice-line-item.ts': 'lines of an invoice, which are told with it',
      'storage/models/alerts/alert-states.ts': 'levels of alerts, which are not audited',
      'storage/models/payments/simulated-charges.ts':
        'charges in the books of the sandbox provider, which are not audited',
      'storage/models/reporting/export-parts.ts': 'how far an export is, which is not audited',
      'storage/models/foundation/oauth-sessions.ts':
        'flows that have begun; the connection that they create is audited',
      'storage/models/operations/import-files.ts': 'bytes of a file, which are not audited',
      'storage/models/operations/import-faults.ts': 'faults of an import, which are not audited',
      'actions/schedule/test-clocks/advance-test-clock.ts': 'how far a clock is, which is not audited',
      'actions/delivery/webhooks/change-endpoint.ts': 'deliveries, which are not audited',
      'actions/delivery/webhooks/send-delivery.ts': 'that an endpoint answers is no change that anybody made',
    },
  },
  {
    name: 'rows of ClickHouse are taken away in one place',
    why: 'replicas carry a delete out each by itself: it must name constants only, wait for all of them and look (storage/clickhouse/delete.ts)',
    in: production.filter((file) => !file.startsWith('sql/')),
    never: /\b(?:delete from|truncate table|alter table)\s+(?:events|event_\w+|usage_buckets|write_fences)\b/i,
  },
  {
    name: 'a connection to ClickHouse says whether it is one to a cluster',
    why: 'without the settings of a cluster a write is on one replica alone, and out of sight for those who read with them',
    in: production,
    never: /\bconnectClickHouse\((?!.*\bcluster\b)/,
    except: { 'storage/clickhouse/clickhouse.ts': 'makes it' },
  },
  {
    name: 'settings are read by config.ts',
    why: 'a setting that is read elsewhere has no default in .env.example, no check and no test',
    in: code,
    never: /\bprocess\.env\b/,
    except: {
      'config.ts': 'the reader',
      'run.mjs': 'runs before anything is installed',
      'integrations/s3/client.ts': 'sets a switch of a library, and reads nothing',
      'demo.ts': 'a client of its own: where the running service is, and its key',
      'console/vite.config.ts': 'runs at a build alone, and in the development of the console',
      'api/http/code-samples.ts': 'shows the text of a program that is not ours',
      'console/pages/first-bill/commands.ts': 'shows the text of a program that is not ours',
      'bench/processes.ts': 'hands its environment to a child process',
      'bench/serve.ts': 'is that child process',
      'test/examples/examples.test.ts': 'another file of examples can be named',
      'test/support/hooks.ts': 'mocha says so whether it is one of several workers',
      'test/kafka/compose.test.ts': 'hands its environment to a child process',
      'test/storage/embedded/postgres/postgres.test.ts': 'hands its path to a child process',
      ...Object.fromEntries(
        code.filter((file) => file.startsWith('test/support/')).map((file) => [file, 'test support']),
      ),
    },
  },
  {
    name: 'core and actions know no clock',
    why: 'the entrance says what time it is: what is decided then depends on its arguments only, and tests can move the clock',
    in: inFolders('core', 'actions'),
    never: /new Date\(\)|\bDate\.now\(|\bperformance\.now\(|\bTemporal\.Now\b/,
  },
  {
    name: 'core knows no chance',
    why: 'ids and random choices are arguments, so that the same input gives the same result',
    in: inFolders('core'),
    never: /\bMath\.random\(|\brandomUUID\b|\brandomBytes\b/,
  },
  {
    name: 'money and quantities are never JavaScript numbers',
    why: 'a double holds 15 digits and no tenth exactly; Decimal takes the text as it is',
    in: inFolders('core/rating', 'core/catalog/pricing', 'core/credits/wallet', 'core/invoicing/invoice', 'actions'),
    never: /\bparseFloat\(|\bNumber\([^)]*\b\w*(?:amount|quantity|price|total|balance|credit)\w*|\.toNumber\(/i,
  },
  {
    name: 'everything that is passed on is named',
    why: 'export * hides where a thing comes from; import it from the file that has it',
    in: code,
    never: /^export \*/,
  },
  {
    name: 'no test is skipped and none excludes the others',
    why: 'a test that does not run says nothing; fix it or take it out',
    in: code,
    never:
      /\b(?:describe|context|suite|it|specify|test)\.(?:only|skip)\(|\bx(?:it|describe|context|specify)\(|\bthis\.skip\(/,
  },
  {
    name: 'nothing is left for later in a comment',
    why: 'what is open belongs into an issue, where somebody looks',
    in: files.filter((file) => file !== OWN),
    never: /\b(?:TODO|FIXME|HACK|TBD)\b|not implemented|lorem ipsum/,
  },
  {
    name: 'no path and no host of one machine',
    why: 'it holds on the machine of its writer only',
    in: files.filter((file) => file !== OWN),
    never: /(?:^|[^\w.])\/(?:root|work|home|Users)\/|https?:\/\/(?:registry|repo|repo1|deb|pypi|proxy|snapshot)\./,
  },
  {
    name: 'only what is in the repository is cited',
    why: 'a reader of a clone has docs/rules, docs/decisions and nothing else: say it in own words, or write the rule down there',
    // A file of sql that was applied is never edited.
    in: files.filter((file) => file !== OWN && !/^sql\/(?:postgres|clickhouse)\//.test(file)),
    never:
      /§ ?\d|\b(?:pricing-and-invoicing|ingestion-and-metering|interface-specification|seed-differences)\b|\bbehaviou?r\/|\bdesign: |\bapi\/\d\d\b|\bthe specification\b|\(specification\b|; specification,/,
    except: { 'test/examples/examples.test.ts': 'another file of examples can be beside the repository' },
  },
  {
    name: 'documents say what is, in plain words',
    why: 'praise tells the reader nothing that can be checked',
    in: files.filter((file) => file.endsWith('.md')),
    never:
      /\b(?:blazing|seamless(?:ly)?|effortless(?:ly)?|cutting-edge|world-class|battle-tested|game-chang\w+|enterprise-grade)\b/i,
  },
];

describe('the house is tidy', () => {
  for (const rule of LINE_RULES) {
    it(rule.name, () => {
      expect(linesThatMatch(rule), rule.why).to.deep.equal([]);
    });
  }

  it('each folder and file has a name that says what is in it', () => {
    const vague = [
      'utils',
      'util',
      'helpers',
      'helper',
      'common',
      'types',
      'services',
      'controllers',
      'repositories',
      'dto',
      'misc',
      'lib',
    ];
    // api/http/services.ts is the record of what main.ts hands to every request, not a folder of services.
    const allowed = ['api/http/services.ts'];
    const found = code.filter(
      (file) => !allowed.includes(file) && file.split('/').some((part) => vague.includes(part.replace(/\.\w+$/, ''))),
    );
    expect(found, 'a thing without a better name belongs to the concept that uses it').to.deep.equal([]);
  });

  it('index.ts is a table of contents and nothing else', () => {
    const contents = ['core/metering/aggregations/index.ts', 'core/catalog/pricing/index.ts', 'integrations/index.ts'];
    const found = code.filter((file) => basename(file) === 'index.ts' && !contents.includes(file));
    expect(found, 'a barrel hides who uses what and makes cycles; import from the file itself').to.deep.equal([]);
  });

  it('each file of core opens with the rule that it implements', () => {
    const found = inFolders('core').filter((file) => !/^\/[/*]/.test(read(file)));
    expect(found, 'who reads a rule of money must find its words and its source first').to.deep.equal([]);
  });

  it('a rule that is cited stands on the page that is named', () => {
    const cited = files
      .filter((file) => file !== OWN && /\.(tsx?|mjs|sql|md)$/.test(file))
      .flatMap((file) => citationsOf(file).map((citation) => ({ file, ...citation })));
    expect(cited.filter(({ page }) => page.startsWith('docs/rules/'))).to.have.length.greaterThan(100);
    const found = cited.filter(({ page, rule }) => !files.includes(page) || !headingsOf(page).includes(rule));
    expect(
      found.map(({ file, page, rule }) => `${file}: ${page}, "${rule}"`),
      'who follows it must find the heading, as it is cited',
    ).to.deep.equal([]);
  });

  it('a decision that is cited is in docs/decisions', () => {
    const found = files
      .filter((file) => file !== OWN && /\.(tsx?|mjs|sql|md)$/.test(file))
      .flatMap((file) =>
        [...read(file).matchAll(/\bdocs\/decisions\/(\d{4})/g)].map(([, number]) => ({ file, number })),
      )
      .filter(
        ({ file, number }) =>
          !files.some((other) => other.startsWith(`docs/decisions/${number}-`)) &&
          // An applied migration is never edited: the index leads from its number to the page.
          !(file.startsWith('sql/') && read('docs/decisions/README.md').includes(`| ${number} | [`)),
      );
    expect(found, 'a number without a page').to.deep.equal([]);
  });

  it('the table of docs/rules lists every page, and no page has two rules of one name', () => {
    const pages = files.filter((file) => /^docs\/rules\/(?!README)/.test(file));
    const listed = [...read('docs/rules/README.md').matchAll(/^\| \[([a-z-]+\.md)\]\(\1\) \|/gm)].map(
      ([, page]) => page,
    );
    expect(listed).to.have.members(pages.map((page) => basename(page)));
    for (const page of pages) expect(new Set(headingsOf(page)), page).to.have.property('size', headingsOf(page).length);
  });

  it('docs/rules has its tables in the order of the domains', () => {
    const sections = read('docs/rules/README.md').split(/^## /m).slice(1);
    const headings = sections.map((section) => section.split('\n')[0]!.toLowerCase());
    expect(headings, 'ORDER of oxlint.config.mjs').to.deep.equal(ORDER.actions);
    for (const section of sections) expect(section, 'a heading without a page').to.match(/^\| \[[a-z-]+\.md\]/m);
  });

  it('what runs is what is tested: nothing is there for tests alone', () => {
    // Rules whose doors are still to be built.
    const waiting: Record<string, string> = {};
    const users = [...production, 'run.mjs'];
    // How often each word stands anywhere: that of an export once where it is declared, and once more where it is used.
    const times = new Map<string, number>();
    for (const file of users)
      for (const [word] of read(file).matchAll(/\w+/g)) times.set(word, (times.get(word) ?? 0) + 1);
    const found = production.flatMap((file) => {
      const names = [...read(file).matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)];
      return names.filter(([, name]) => times.get(name!)! < 2).map(([, name]) => `${file}: ${name}`);
    });
    expect(
      found,
      'a twin that only tests call stays right while the live one breaks: take it out, and test what runs',
    ).to.have.members(Object.keys(waiting));
  });

  it('a file stays below 400 lines', () => {
    // A longer file is listed here with its reason. Tests are tables and as long as their rules have cases.
    const listed: Record<string, string> = {
      'commands/verify-invoice.mjs': 'is copied and read by those who trust nobody: one file that needs no other',
    };
    const long = production.filter((file) => read(file).split('\n').length > 401);
    expect(
      long,
      'would somebody who looks for a line know that it is here? Split it, or list it with a reason',
    ).to.have.members(Object.keys(listed));
  });

  it('files of sql have a number of their own in their folder', () => {
    const sql = files.filter((file) => /^sql\/(postgres|clickhouse)\/[^/]+\.sql$/.test(file));
    expect(sql).to.be.an('array').that.is.not.empty;
    const misnamed = sql.filter((file) => !/^\d{4}-[a-z0-9-]+\.sql$/.test(basename(file)));
    expect(misnamed, 'the name gives the order: NNNN-name.sql').to.deep.equal([]);
    const numbers = sql.map((file) => `${dirname(file)}/${basename(file).slice(0, 4)}`);
    const twice = numbers.filter((number, index) => numbers.indexOf(number) !== index);
    expect(twice, 'two files with one number have no order').to.deep.equal([]);
  });

  it('each script of package.json is one of run.mjs, and what it runs is there', () => {
    const scripts: Record<string, string> = JSON.parse(read('package.json')).scripts;
    // A shell would stay between npm and what lives long or can be broken off, and die of a signal alone.
    const start = (name: string) =>
      ['check', 'fix'].includes(name) ? ['node'] : ['exec node', 'exec sh process/node.sh'];
    for (const [name, command] of Object.entries(scripts))
      expect(command).to.be.oneOf(start(name).map((node) => `${node} run.mjs ${name}`));
    const launcher = read('run.mjs');
    const table = launcher.slice(launcher.indexOf('const SCRIPTS'), launcher.indexOf('\n};'));
    const names = [...table.matchAll(/^ {2}'?([a-z:-]+)'?: \{/gm)].map(([, name]) => name);
    expect(names).to.have.members(Object.keys(scripts));
    const targets = [...table.matchAll(/file: '([^']+)'/g)].map(([, file]) => file);
    expect(files, 'the first command in a fresh clone must find its file').to.include.members(targets);
  });

  it('the flags of V8 stand in process/node.sh alone', () => {
    const found = files.filter(
      (file) => !/^test\/|\.md$/.test(file) && /semi-space-size|no-parallel-scavenge|heap-growing/.test(read(file)),
    );
    expect(found, 'a process that is started with others is not the one that was measured').to.have.members([
      'process/node.sh',
      // Mocha starts a node of its own for the tests, and takes its flags from nowhere else: the one that it has is the same.
      '.mocharc.json',
    ]);
    const semiSpace = (file: string) =>
      [...read(file).matchAll(/m(?:in|ax)-semi-space-size=\d+/g)].map(([flag]) => flag);
    expect(semiSpace('.mocharc.json')).to.deep.equal(semiSpace('process/node.sh'));
  });

  it('the map of ARCHITECTURE.md has each folder and each source at the top, and no other', () => {
    const map = read('ARCHITECTURE.md').split('```')[1] ?? '';
    const columns = map.split('\n').flatMap((line) => (/^\S/.test(line) ? line.split(/ {2,}/) : []));
    const named = columns.flatMap((column) => (/^(?:[\w./-]+(?:\/|\.ts) ?)+$/.test(column) ? column.split(' ') : []));
    const top = (path: string) => (path.includes('/') ? `${path.split('/')[0]}/` : path);
    const there = files.map(top).filter((name) => /^[a-z]+(?:\/|\.ts)$/.test(name));
    expect([...new Set(named.map(top))]).to.have.members([...new Set(there)]);
  });

  it('the lock file lists the packages of every platform, so that npm ci takes it anywhere', () => {
    type Locked = { os?: string[]; cpu?: string[]; optionalDependencies?: Record<string, string> };
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
    for (const [owner, { optionalDependencies = {} }] of Object.entries(packages))
      for (const name of Object.keys(optionalDependencies)) {
        const found = packages[`${owner}/node_modules/${name}`] ?? packages[`node_modules/${name}`];
        expect(found, `${name}, which ${owner} may need on another platform`).to.not.equal(undefined);
        if (/darwin|linux|win32/.test(name)) expect(found?.os, `${name} says where it is for`).to.not.equal(undefined);
      }
  });
});

describe('the language of the house', () => {
  const figures = measureHouse(ROOT);
  const allowed: Record<string, number> = JSON.parse(read('test/house.json'));

  for (const name of RATCHET) {
    it(`has no more ${name.replaceAll('_', ' ')} than before`, () => {
      const why = `\`npm run house -- --list ${name}\` lists them; \`npm run house -- --write\` records a smaller number`;
      expect(figures[name], why).to.equal(allowed[name]);
    });
  }

  it('begins three of four functions with a verb', () => {
    expect(figures.verb_first_percent).to.be.at.least(75);
  });

  it('uses a type name once', () => {
    expect(figures.type_names_used_twice / figures.type_names).to.be.at.most(0.05);
  });
});

describe('.env.example', () => {
  const lines = [...read('.env.example').matchAll(/^(# )?([A-Z][A-Z_]*)=(.*)$/gm)];
  const settings = lines.map(([, comment, name, value]) => ({
    name: name ?? '',
    value: value ?? '',
    set: comment === undefined,
  }));

  it('lists the settings of config.ts, each once', () => {
    const inConfig = [...read('config.ts').matchAll(/^ {2}([A-Z][A-Z_]*):/gm)].map(([, name]) => name);
    expect(settings.map(({ name }) => name)).to.have.members(inConfig);
  });

  it('shows the default of each, and leaves commented out what has none', () => {
    const defaults = Object.entries(readConfig({})).filter(([, value]) => value !== undefined);
    const shown = settings.filter(({ set }) => set).map(({ name, value }) => [name, value]);
    expect(shown).to.have.deep.members(defaults.map(([name, value]) => [name, String(value)]));
  });

  it('is accepted by config.ts with every comment taken away', () => {
    const all = Object.fromEntries(settings.map(({ name, value }) => [name, value]));
    const config: Record<string, unknown> = readConfig(all);
    for (const { name, value } of settings) expect(String(config[name]), name).to.equal(value);
  });
});

function linesThatMatch({ in: where, never, except = {} }: LineRule): string[] {
  return where
    .filter((file) => !(file in except))
    .flatMap((file) =>
      read(file)
        .split('\n')
        .flatMap((line, index) => (never.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
    );
}

/** `docs/rules/pages.md, "A rule"` wherever it stands, and `[pages.md](pages.md), "A rule"` in documents. */
function citationsOf(file: string): { page: string; rule: string }[] {
  const text = read(file).replace(/\n\s*(?:\*|\/\/|--)?\s*/g, ' ');
  const plain = [...text.matchAll(/\b((?:docs\/)?[\w/-]+\.md)`?, "([^"]+)"/g)].map(([, page, rule]) => [page, rule]);
  const linked = [...text.matchAll(/\]\(([\w./-]+\.md)\), "([^"]+)"/g)].map(([, page, rule]) => [
    relative(ROOT, join(ROOT, dirname(file), page!))
      .split(sep)
      .join('/'),
    rule,
  ]);
  return [...plain, ...linked].map(([page, rule]) => ({ page: page!, rule: rule! }));
}

function headingsOf(page: string): string[] {
  return [...read(page).matchAll(/^##+ (.+)$/gm)].map(([, heading]) => heading!);
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Every text file of the project, as paths with forward slashes. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const name = relative(ROOT, path).split(sep).join('/');
    if (NOT_OURS.includes(name) || name === MADE || entry.name === 'node_modules') return [];
    if (entry.isDirectory()) return filesBelow(path);
    return /\.(png|jpg|ico|gz|zip|woff2?|csv|tmp)$/.test(name) ? [] : [name];
  });
}
